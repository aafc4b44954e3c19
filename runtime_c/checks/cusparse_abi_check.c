/* cusparse_abi_check.c: compile-only; asserts that sparse/gpu.def agrees with NVIDIA's cusparse.h. Build with
 * cc -std=c11 -fsyntax-only -I<dir of cusparse.h> -I.. cusparse_abi_check.c */
#include <cusparse.h>
#include <stddef.h>
#include <stdint.h>

#define HANDLE cusparseHandle_t
#define STREAM cudaStream_t
#define VECTOR cusparseDnVecDescr_t
#define MATRIX cusparseDnMatDescr_t
#define SPARSE cusparseSpMatDescr_t
#define CONST_VECTOR cusparseConstDnVecDescr_t
#define CONST_MATRIX cusparseConstDnMatDescr_t
#define CONST_SPARSE cusparseConstSpMatDescr_t
#define SPGEMM cusparseSpGEMMDescr_t
#define STATUS cusparseStatus_t
#define TYPE cudaDataType
#define INDEX cusparseIndexType_t
#define BASE cusparseIndexBase_t
#define ORDER cusparseOrder_t
#define MODE cusparseOperation_t
#define SPMV_WAY cusparseSpMVAlg_t
#define SPMM_WAY cusparseSpMMAlg_t
#define SDDMM_WAY cusparseSDDMMAlg_t
#define SPGEMM_WAY cusparseSpGEMMAlg_t

#define SPARSE_FUNCTION(name, params)                                                                        \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&cusparse##name), cusparseStatus_t(*) params),      \
                 #name);
#define SPARSE_OPTIONAL(name, params) SPARSE_FUNCTION(name, params)
#define SPARSE_TEXT(name, params)                                                                            \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&cusparse##name), const char *(*)params), #name);
#define SPARSE_CONSTANT(name, value) _Static_assert((int)CUSPARSE_##name == value, #name);
#define SPARSE_STATUS(name, value) SPARSE_CONSTANT(name, value)
#include "sparse/gpu.def"

#define CUDA_SPARSE_CONSTANT(name, value) _Static_assert((int)name == value, #name);
#include "cuda/sparse.def"

_Static_assert(sizeof(cusparseStatus_t) == sizeof(int) && sizeof(cudaDataType) == sizeof(int),
               "enums are ints");
_Static_assert(sizeof(cusparseOrder_t) == sizeof(int) && sizeof(cusparseIndexType_t) == sizeof(int), "");
