/* hipsparse_abi_check.c: compile-only; asserts that sparse/gpu.def agrees with AMD's hipsparse.h. Build with
 * cc -std=c11 -fsyntax-only -D__HIP_PLATFORM_AMD__ -I.. hipsparse_abi_check.c */
#include <hipsparse/hipsparse.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE hipsparseHandle_t
#define STREAM hipStream_t
#define VECTOR hipsparseDnVecDescr_t
#define MATRIX hipsparseDnMatDescr_t
#define SPARSE hipsparseSpMatDescr_t
#if hipsparseVersionMajor >= 3
#define CONST_VECTOR hipsparseConstDnVecDescr_t
#define CONST_MATRIX hipsparseConstDnMatDescr_t
#define CONST_SPARSE hipsparseConstSpMatDescr_t
#else
#define CONST_VECTOR VECTOR
#define CONST_MATRIX MATRIX
#define CONST_SPARSE SPARSE
#endif
#define SPGEMM hipsparseSpGEMMDescr_t
#define STATUS hipsparseStatus_t
#define TYPE hipDataType
#define INDEX hipsparseIndexType_t
#define BASE hipsparseIndexBase_t
#define ORDER hipsparseOrder_t
#define MODE hipsparseOperation_t
#define SPMV_WAY hipsparseSpMVAlg_t
#define SPMM_WAY hipsparseSpMMAlg_t
#define SDDMM_WAY hipsparseSDDMMAlg_t
#define SPGEMM_WAY hipsparseSpGEMMAlg_t

#define SPARSE_FUNCTION(name, params)                                                                        \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&hipsparse##name), hipsparseStatus_t(*) params),    \
                 #name);
#if hipsparseVersionMajor >= 3
#define SPARSE_TEXT(name, params)                                                                            \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&hipsparse##name), const char *(*)params), #name);
#endif
#define SPARSE_CONSTANT(name, value) _Static_assert((int)HIPSPARSE_##name == value, #name);
#define SPARSE_STATUS(name, value) SPARSE_CONSTANT(name, value)
#include "sparse/gpu.def"

#define HIP_SPARSE_CONSTANT(name, value) _Static_assert((int)name == value, #name);
#include "hip/sparse.def"

#if hipsparseVersionMajor >= 3
_Static_assert(HIPSPARSE_ORDER_ROW == 2, "row by row");
#elif hipsparseVersionMajor == 2 && hipsparseVersionMinor == 3 && hipsparseVersionPatch <= 2
_Static_assert(HIPSPARSE_ORDER_ROW == 0, "row by row");
#endif
_Static_assert(sizeof(hipsparseStatus_t) == sizeof(int) && sizeof(hipDataType) == sizeof(int),
               "enums are ints");
_Static_assert(sizeof(hipsparseOrder_t) == sizeof(int) && sizeof(hipsparseIndexType_t) == sizeof(int), "");
