/* sparse.h: the parts of the CUDA backend's sparse operations. */
#ifndef MGPU_INTERNAL_CUDA_SPARSE_H
#define MGPU_INTERNAL_CUDA_SPARSE_H

#include "sparse/gpu.h"

/* cuda/sparse.c: enters a device's context to release something: false where there is nothing any more. */
bool mgpu_cuda_reach(int device, void **previous);

/* cuda/sparse_2to4.c: slots of struct mgpu_sparse_ops, through cuSPARSELt. */
int mgpu_cuda_plan_2to4(const struct mgpu_sparse_call *call, enum mgpu_prune prune, int64_t sizes[3]);
int mgpu_cuda_product_2to4(const struct mgpu_sparse_call *call, void *const buffers[3]);
void mgpu_cuda_release_2to4(struct mgpu_sparse *matrix);
void mgpu_cuda_trim_2to4(void);

#endif
