/* cusparselt_abi_check.c: compile-only; asserts that cuda/cusparselt.def agrees with NVIDIA's cusparseLt.h.
 * Build with cc -std=c11 -fsyntax-only -I<dir of cusparseLt.h> -I.. cusparselt_abi_check.c */
#include <stdalign.h> /* which the header of 0.8 needs */
#include <stddef.h>

#include <cusparseLt.h>

#define LT_FUNCTION(name, params)                                                                            \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), cusparseStatus_t(*) params), #name);
#if CUSPARSELT_VER_MAJOR > 0 || CUSPARSELT_VER_MINOR >= 8
#define LT_OPTIONAL(name, params) LT_FUNCTION(name, params)
#define LT_TEXT(name, params)                                                                                \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), const char *(*)params), #name);
#endif
#define LT_CONSTANT(name, value) _Static_assert((int)name == value, #name);
#include "cuda/cusparselt.def"

enum { ROOM = 13072 }; /* cuda/cusparselt.h: CUSPARSELT_ROOM */
_Static_assert(sizeof(cusparseLtHandle_t) <= ROOM && sizeof(cusparseLtMatDescriptor_t) <= ROOM, "room");
_Static_assert(sizeof(cusparseLtMatmulDescriptor_t) <= ROOM && sizeof(cusparseLtMatmulPlan_t) <= ROOM,
               "room");
_Static_assert(sizeof(cusparseLtMatmulAlgSelection_t) <= ROOM && alignof(cusparseLtMatmulPlan_t) <= 16,
               "room");
_Static_assert(sizeof(cusparseComputeType) == sizeof(int) && sizeof(cusparseLtPruneAlg_t) == sizeof(int),
               "enums");
