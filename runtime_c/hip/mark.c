/* mark.c: the HIP library's events with times. They keep no error, for the trace alone needs them, and leave
 * graphs alone that are being captured. */
#include "hip/backend.h"
#include "trace/trace.h"

/* Calls of the library on the device; true when `calls` gives hipSuccess. A failure, most often that a mark
 * has not been passed yet, is not left to who asks for the last one. */
#define TRY(device, calls)                                                                                   \
  do {                                                                                                       \
    int previous_;                                                                                           \
    const char *call_;                                                                                       \
    if (mgpu_hip_try_enter(device, &previous_, &call_))                                                      \
      return false;                                                                                          \
    int mode_ = mgpu_hip_outside_capture();                                                                  \
    hipError_t result_ = calls;                                                                              \
    mgpu_hip_back_to_capture(mode_);                                                                         \
    mgpu_hip_leave(device, previous_);                                                                       \
    if (result_)                                                                                             \
      mgpu_hip_vendor.after_failure();                                                                       \
    return result_ == hipSuccess;                                                                            \
  } while (0)

bool mgpu_hip_mark_create(int device, void **mark) {
  TRY(device, mgpu_hip.hipEventCreateWithFlags((hipEvent_t *)mark, hipEventDefault));
}

/* What a graph takes does not run now: there is no time to tell, and an event in a graph is never passed. */
static hipError_t record(hipEvent_t mark, hipStream_t stream) {
  int status = hipStreamCaptureStatusNone;
  hipError_t result = mgpu_hip.hipStreamIsCapturing ? mgpu_hip.hipStreamIsCapturing(stream, &status) : 0;
  if (result)
    return result;
  return status == hipStreamCaptureStatusNone ? mgpu_hip.hipEventRecord(mark, stream) : hipErrorInvalidValue;
}

bool mgpu_hip_mark_put(int device, void *mark, void *stream) { TRY(device, record(mark, stream)); }

/* The second time counts: the first has the start of the device in it. */
static hipError_t record_and_wait(hipEvent_t mark, uint64_t *at) {
  hipStream_t stream = NULL;
  hipError_t result = mgpu_hip.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
  if (result)
    return result;
  for (int i = 0; i < 2 && !result; ++i) {
    uint64_t before = mgpu_trace_now();
    result = mgpu_hip.hipEventRecord(mark, stream);
    if (!result)
      result = mgpu_hip.hipEventSynchronize(mark);
    *at = before + (mgpu_trace_now() - before) / 2;
  }
  mgpu_hip.hipStreamDestroy(stream);
  return result;
}

bool mgpu_hip_mark_now(int device, void *mark, uint64_t *at) { TRY(device, record_and_wait(mark, at)); }

static hipError_t elapsed(hipEvent_t from, hipEvent_t to, double *ns) {
  float milliseconds = 0;
  hipError_t result = mgpu_hip.hipEventElapsedTime(&milliseconds, from, to);
  *ns = (double)milliseconds * 1e6;
  return result;
}

bool mgpu_hip_mark_elapsed(int device, void *from, void *to, double *ns) {
  TRY(device, elapsed(from, to, ns));
}
