/* cusparselt.h: the few types and constants of cuSPARSELt that are needed, declared by ourselves so that no
 * vendor header is needed to build. checks/cusparselt_abi_check.c compares them with NVIDIA's. */
#ifndef MGPU_CUSPARSELT_H
#define MGPU_CUSPARSELT_H

#include <stddef.h>
#include <stdint.h>

#include "sparse/gpu.h"

/* The library's structs are opaque, and their size has changed: 13072 bytes in 0.6, 1024 in 0.7, 512 since.
 */
enum { CUSPARSELT_ROOM = 13072 };
typedef struct cusparselt_object {
  _Alignas(16) uint8_t data[CUSPARSELT_ROOM];
} cusparseLtHandle_t, cusparseLtMatDescriptor_t, cusparseLtMatmulDescriptor_t, cusparseLtMatmulAlgSelection_t,
    cusparseLtMatmulPlan_t;

typedef int cusparseStatus_t; /* an enum in NVIDIA's headers, as are the others */
typedef int cudaDataType;
typedef int cusparseOrder_t;
typedef int cusparseOperation_t;
typedef int cusparseComputeType;
typedef int cusparseLtSparsity_t;
typedef int cusparseLtMatmulAlg_t;
typedef int cusparseLtPruneAlg_t;
typedef struct CUstream_st *cudaStream_t;

enum {
#define LT_CONSTANT(name, value) name = value,
#include "cuda/cusparselt.def"
};

struct cusparselt {
#define LT_FUNCTION(name, params) cusparseStatus_t(*name) params;
#define LT_OPTIONAL(name, params) cusparseStatus_t(*name) params;
#include "cuda/cusparselt.def"
};

/* cuda/cusparselt.c */
extern struct cusparselt mgpu_lt;
/* For the search and for statuses, which are cuSPARSE's. */
extern struct mgpu_sparse_vendor mgpu_lt_vendor;

/* Makes the handle of the device, which is current, if there is none, for one more plan. 0, or an error code
 * after mgpu_fail. */
int mgpu_lt_take(int device);
/* One plan less uses it. */
void mgpu_lt_give(int device);
/* The handle; for who has taken it. */
const cusparseLtHandle_t *mgpu_lt_handle(int device);

/* One call of the library: 0, or an error code after mgpu_fail. */
#define MGPU_LT(name, arguments) mgpu_sparse_result(&mgpu_lt_vendor, mgpu_lt.name arguments, #name, NULL)

#endif
