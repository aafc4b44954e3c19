/* driver.h: the few types and constants of the HIP API that the hip backend needs, declared by ourselves
 * so that no vendor header is needed to build. checks/hip_abi_check.c compares them with AMD's. */
#ifndef MGPU_HIP_DRIVER_H
#define MGPU_HIP_DRIVER_H

#include <stddef.h>

typedef int hipError_t; /* an enum in AMD's header, as are the next three */
typedef int hipDeviceAttribute_t;
typedef int hipMemcpyKind;
typedef int hipMemPoolAttr;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;

enum {
#define HIP_CONSTANT(name, value) name = value,
#include "hip/driver.def"
};

struct hip_driver {
#define HIP_FUNCTION(result, name, params) result(*name) params;
#define HIP_OPTIONAL(result, name, params) result(*name) params;
#define HIP_UNDECLARED(result, name, params) result(*name) params;
#include "hip/driver.def"
};

#endif
