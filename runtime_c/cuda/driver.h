/* driver.h: the few types and constants of the CUDA driver API that the cuda backend needs, declared by
 * ourselves so that no vendor header is needed to build. checks/cuda_abi_check.c compares them with NVIDIA's.
 */
#ifndef MGPU_CUDA_DRIVER_H
#define MGPU_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* an enum in NVIDIA's header, as are the next five */
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef int CUjit_option;
typedef int CUmemPool_attribute;
typedef int CUlaunchAttributeID;
typedef int CUtensorMapDataType; /* and these */
typedef int CUtensorMapInterleave;
typedef int CUtensorMapSwizzle;
typedef int CUtensorMapL2promotion;
typedef int CUtensorMapFloatOOBfill;
typedef unsigned int cuuint32_t;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef size_t (*CUoccupancyB2DSize)(int);
typedef int CUstreamCaptureStatus; /* an enum in NVIDIA's header, as is the next */
typedef int CUstreamCaptureMode;

typedef struct CUtensorMap {
  _Alignas(64) cuuint64_t opaque[16];
} CUtensorMap;

typedef struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  int srcMemoryType; /* an enum in NVIDIA's header, as is the other */
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef union CUlaunchAttributeValue {
  char pad[64];
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int clusterSchedulingPolicyPreference;
  int cooperative;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

enum {
#define CUDA_CONSTANT(name, value) name = value,
#include "cuda/driver.def"
};

#define CUDA_FIELD(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type "." #field);
#include "cuda/driver.def"

struct cuda_driver {
#define CUDA_FUNCTION(name, params) CUresult(*name) params;
#define CUDA_OPTIONAL(name, params) CUresult(*name) params;
#include "cuda/driver.def"
};

#endif
