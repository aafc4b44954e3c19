/* cuda_abi_check.c: compile-only; asserts that cuda/driver.def agrees with NVIDIA's cuda.h. Build with
 * cc -std=c11 -fsyntax-only -I<dir of cuda.h> -I.. cuda_abi_check.c */
#include <cuda.h>
#include <stddef.h>

#define CUDA_FUNCTION(name, params)                                                                          \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) params), #name);
#define CUDA_OPTIONAL(name, params) CUDA_FUNCTION(name, params)
#define CUDA_CONSTANT(name, value) _Static_assert((int)name == value, #name);
#define CUDA_FIELD(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type "." #field);
#include "cuda/driver.def"

/* cuda/driver.h declares NVIDIA's enums as int. */
_Static_assert(sizeof(CUresult) == sizeof(int) && sizeof(CUdevice_attribute) == sizeof(int),
               "enums are ints");
_Static_assert(sizeof(CUfunction_attribute) == sizeof(int) && sizeof(CUjit_option) == sizeof(int),
               "enums are ints");
_Static_assert(sizeof(CUmemPool_attribute) == sizeof(int) && sizeof(CUlaunchAttributeID) == sizeof(int), "");
_Static_assert(sizeof(CUtensorMap) == 128 && _Alignof(CUtensorMap) >= 64, "descriptors");
_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "copy struct");
_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "launch structs");
_Static_assert(sizeof(CUdeviceptr) == sizeof(unsigned long long) && sizeof(CUdevice) == sizeof(int), "");
