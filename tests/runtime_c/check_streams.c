/* check_streams.c: one stream of the host backend used by several threads: its work is in order. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, CALLS = 200, COUNT = 4000 };

struct shared {
  mgpuKernelSlot *kernel;
  void *stream;
  float *x, *sum;
  int flags[2]; /* of the kernel "slow": it runs, it has run */
};

static void *add(void *argument) {
  struct shared *shared = argument;
  float a = 1;
  uint64_t count = COUNT;
  void *params[] = {&a, &shared->x, &shared->sum, &count};
  for (int i = 0; i < CALLS; ++i)
    mgpuKernelLaunch(shared->kernel, COUNT / 250, 1, 1, 250, 1, 1, 0, 0, 0, 0, shared->stream, params, 4,
                     i % 2);
  CHECK_CLEAN();
  return NULL;
}

static void test_launches(mgpuKernelSlot *saxpy) {
  pthread_t threads[THREADS];
  struct shared shared = {.kernel = saxpy, .stream = mgpuStreamCreate()};
  shared.x = mgpuMemAlloc(COUNT * sizeof(float), NULL, false);
  shared.sum = mgpuMemAlloc(COUNT * sizeof(float), NULL, false);
  for (int i = 0; i < COUNT; ++i)
    shared.x[i] = 1, shared.sum[i] = 0;
  for (int i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, add, &shared);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < COUNT; ++i)
    CHECK(shared.sum[i] == THREADS * CALLS, "element %d is %g", i, (double)shared.sum[i]);
  mgpuMemFree(shared.x, NULL);
  mgpuMemFree(shared.sum, NULL);
  mgpuStreamDestroy(shared.stream);
  CHECK_CLEAN();
}

static void *run_slowly(void *argument) {
  struct shared *shared = argument;
  int *flags = shared->flags;
  void *params[] = {&flags};
  mgpuKernelLaunch(shared->kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, shared->stream, params, 1, 0);
  CHECK_CLEAN();
  return NULL;
}

/* Who waits for a stream waits for what another thread does on it: by the stream, or by an event. */
static void test_waits(mgpuKernelSlot *slow) {
  struct shared shared = {.kernel = slow, .stream = mgpuStreamCreate()};
  void *event = mgpuEventCreate();
  for (int by_event = 0; by_event < 2; ++by_event) {
    pthread_t thread;
    shared.flags[0] = shared.flags[1] = 0;
    pthread_create(&thread, NULL, run_slowly, &shared);
    while (!__atomic_load_n(&shared.flags[0], __ATOMIC_ACQUIRE))
      ;
    if (by_event) {
      mgpuEventRecord(event, shared.stream);
      mgpuEventSynchronize(event);
    } else {
      mgpuStreamSynchronize(shared.stream);
    }
    CHECK(shared.flags[1] == 1, "the kernel still runs");
    pthread_join(thread, NULL);
  }
  mgpuEventDestroy(event);
  mgpuStreamDestroy(shared.stream);
  CHECK_CLEAN();
}

void check_streams(mgpuKernelSlot *saxpy, mgpuKernelSlot *slow) {
  test_launches(saxpy);
  test_waits(slow);
}
