/* mark.c: the CUDA driver's events with times. They keep no error, for the trace alone needs them, and leave
 * graphs alone that are being captured. */
#include "cuda/backend.h"
#include "trace/trace.h"

/* Calls of the driver in the device's context; true when `calls` gives CUDA_SUCCESS. */
#define TRY(device, calls)                                                                                   \
  do {                                                                                                       \
    CUcontext previous_;                                                                                     \
    const char *call_;                                                                                       \
    if (mgpu_cuda_try_enter(device, &previous_, &call_))                                                     \
      return false;                                                                                          \
    CUstreamCaptureMode mode_ = mgpu_cuda_outside_capture();                                                 \
    CUresult result_ = calls;                                                                                \
    mgpu_cuda_back_to_capture(mode_);                                                                        \
    mgpu_cuda_leave(device, previous_);                                                                      \
    return result_ == CUDA_SUCCESS;                                                                          \
  } while (0)

bool mgpu_cuda_mark_create(int device, void **mark) {
  TRY(device, mgpu_cuda.cuEventCreate((CUevent *)mark, CU_EVENT_DEFAULT));
}

/* What a graph takes does not run now: there is no time to tell, and an event in a graph is never passed. */
static CUresult record(CUevent mark, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = mgpu_cuda.cuStreamIsCapturing ? mgpu_cuda.cuStreamIsCapturing(stream, &status) : 0;
  if (result)
    return result;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? mgpu_cuda.cuEventRecord(mark, stream)
                                                 : CUDA_ERROR_INVALID_VALUE;
}

bool mgpu_cuda_mark_put(int device, void *mark, void *stream) { TRY(device, record(mark, stream)); }

/* The second time counts: the first has the start of the device in it. */
static CUresult record_and_wait(CUevent mark, uint64_t *at) {
  CUstream stream = NULL;
  CUresult result = mgpu_cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result)
    return result;
  for (int i = 0; i < 2 && !result; ++i) {
    uint64_t before = mgpu_trace_now();
    result = mgpu_cuda.cuEventRecord(mark, stream);
    if (!result)
      result = mgpu_cuda.cuEventSynchronize(mark);
    *at = before + (mgpu_trace_now() - before) / 2;
  }
  mgpu_cuda.cuStreamDestroy_v2(stream);
  return result;
}

bool mgpu_cuda_mark_now(int device, void *mark, uint64_t *at) { TRY(device, record_and_wait(mark, at)); }

static CUresult elapsed(CUevent from, CUevent to, double *ns) {
  float milliseconds = 0;
  CUresult result = mgpu_cuda.cuEventElapsedTime(&milliseconds, from, to);
  *ns = (double)milliseconds * 1e6;
  return result;
}

bool mgpu_cuda_mark_elapsed(int device, void *from, void *to, double *ns) {
  TRY(device, elapsed(from, to, ns));
}
