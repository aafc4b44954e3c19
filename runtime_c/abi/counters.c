/* counters.c: how much of everything there is at the moment, so that tests can tell that nothing is left
 * behind. */
#include "abi/descriptors.h"
#include "abi/module.h"
#include "core/allocations.h"
#include "core/handle.h"
#include "host/schedule.h"
#include "sparse/sparse.h"

int64_t mgpuCount(int32_t what) {
  switch (what) {
  case MGPU_COUNT_STREAMS:
    return mgpu_handles_count(MGPU_STREAM, true);
  case MGPU_COUNT_EVENTS:
    return mgpu_handles_count(MGPU_EVENT, true);
  case MGPU_COUNT_POOLED_STREAMS:
    return mgpu_handles_count(MGPU_STREAM, false);
  case MGPU_COUNT_POOLED_EVENTS:
    return mgpu_handles_count(MGPU_EVENT, false);
  case MGPU_COUNT_ALLOCATIONS:
    return (int64_t)mgpu_allocations_count();
  case MGPU_COUNT_MODULES:
    return mgpu_modules_count();
  case MGPU_COUNT_QUEUED:
    return (int64_t)mgpu_host_schedule_queued();
  case MGPU_COUNT_LATE_WRITES:
    return (int64_t)mgpu_host_schedule_late_writes();
  case MGPU_COUNT_DESCRIPTORS:
    return (int64_t)mgpu_descriptors_count();
  case MGPU_COUNT_OPERANDS:
    return (int64_t)mgpu_sparse_count();
  default:
    return -1;
  }
}
