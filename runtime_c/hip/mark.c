/* mark.c: the HIP library's events with times. They keep no error, for the trace alone needs them. */
#include "hip/backend.h"
#include "trace/trace.h"

/* Calls of the library on the device; true when `calls` gives hipSuccess. */
#define TRY(device, calls)                                                                                   \
  do {                                                                                                       \
    int previous_;                                                                                           \
    const char *call_;                                                                                       \
    if (mgpu_hip_try_enter(device, &previous_, &call_))                                                      \
      return false;                                                                                          \
    hipError_t result_ = calls;                                                                              \
    mgpu_hip_leave(device, previous_);                                                                       \
    if (result_)                                                                                             \
      mgpu_hip_vendor.after_failure();                                                                       \
    return result_ == hipSuccess;                                                                            \
  } while (0)

bool mgpu_hip_mark_create(int device, void **mark) {
  TRY(device, mgpu_hip.hipEventCreateWithFlags((hipEvent_t *)mark, hipEventDefault));
}

bool mgpu_hip_mark_put(int device, void *mark, void *stream) {
  TRY(device, mgpu_hip.hipEventRecord(mark, stream));
}

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

bool mgpu_hip_mark_elapsed(int device, void *from, void *to, double *ns) {
  float milliseconds = 0;
  int previous;
  const char *call;
  if (mgpu_hip_try_enter(device, &previous, &call))
    return false;
  hipError_t result = mgpu_hip.hipEventElapsedTime(&milliseconds, from, to);
  mgpu_hip_leave(device, previous);
  if (result)
    mgpu_hip_vendor.after_failure(); /* most often: not yet */
  *ns = (double)milliseconds * 1e6;
  return result == hipSuccess;
}
