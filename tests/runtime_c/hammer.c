/* hammer.c: many threads, each doing at random what the ABI has: memory, copies, fills, launches, streams and
 * events on any device, raw modules, and arrays that pass from thread to thread. Every array has a copy on
 * the side that says what must be in it. */
#include "work.h"

#include <pthread.h>

enum { THREADS = 32, ARRAYS = 6, MOST = 600, MAILBOX = 16 };

struct array {
  float *memory; /* the device's; NULL: there is none */
  float *wanted; /* MOST of them */
  uint64_t n;
  int device;
  void *stream; /* where its last work is; belongs to the array */
};

static struct work work;
static long rounds;
static pthread_mutex_t mail_lock = PTHREAD_MUTEX_INITIALIZER;
static struct array mail[MAILBOX];

static unsigned draw(uint64_t *state, unsigned below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((*state >> 33) % below);
}

static struct array array_new(uint64_t *state) {
  struct array array = {.wanted = malloc(MOST * sizeof(float)),
                        .device = (int)draw(state, (unsigned)work.devices)};
  array.n = 1 + draw(state, MOST);
  mgpuSetDefaultDevice(array.device);
  array.stream = mgpuStreamCreate();
  array.memory = mgpuMemAlloc(array.n * sizeof(float), array.stream, draw(state, 8) == 0);
  CHECK(array.wanted && array.stream && array.memory, "a new array");
  for (uint64_t i = 0; i < array.n; ++i)
    array.wanted[i] = (float)draw(state, 100);
  mgpuMemcpy(array.memory, array.wanted, array.n * sizeof(float), array.stream);
  mgpuStreamSynchronize(array.stream); /* `wanted` changes */
  return array;
}

static void array_check(const struct array *array) {
  float found[MOST];
  mgpuMemcpy(found, array->memory, array->n * sizeof(float), array->stream);
  mgpuStreamSynchronize(array->stream);
  CHECK_CLEAN();
  for (uint64_t i = 0; i < array->n; ++i)
    CHECK(found[i] == array->wanted[i], "element %d of %d is %g, not %g", (int)i, (int)array->n,
          (double)found[i], (double)array->wanted[i]);
}

static void array_free(struct array *array) {
  if (!array->memory)
    return;
  array_check(array);
  mgpuMemFree(array->memory, array->stream);
  mgpuStreamDestroy(array->stream);
  free(array->wanted);
  array->memory = NULL;
  CHECK_CLEAN();
}

static void array_fill(struct array *array, uint64_t *state) {
  float value = (float)draw(state, 100);
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  mgpuMemset32(array->memory, bits, array->n, array->stream);
  for (uint64_t i = 0; i < array->n; ++i)
    array->wanted[i] = value;
}

/* A third stream, of the waiter's device, hears of it through an event. */
static void wait_by_event(void *waiter, void *waited, int waited_device) {
  mgpuSetDefaultDevice(waited_device);
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, waited);
  mgpuStreamWaitEvent(waiter, event);
  mgpuEventDestroy(event);
}

/* to += a * from, by a slot's kernel or by one of a raw module. */
static void saxpy(struct array *to, struct array *from, uint64_t *state) {
  if (to->device != from->device || to->memory == from->memory)
    return;
  float a = (float)draw(state, 3);
  uint64_t n = to->n < from->n ? to->n : from->n;
  void *params[] = {&a, &from->memory, &to->memory, &n};
  intptr_t blocks = (intptr_t)((n + 63) / 64);
  wait_by_event(to->stream, from->stream, from->device);
  mgpuSetDefaultDevice(to->device);
  if (draw(state, 40) == 0) {
    void *module = mgpuModuleLoad(work.container.data, work.container.size);
    void *kernel = mgpuModuleGetFunction(module, "saxpy");
    CHECK(module && kernel, "a raw module");
    mgpuLaunchKernel(kernel, blocks, 1, 1, 64, 1, 1, 0, to->stream, params, NULL, 4);
    mgpuStreamSynchronize(to->stream);
    mgpuModuleUnload(module);
  } else {
    mgpuKernelLaunch(&work.saxpy, blocks, 1, 1, 64, 1, 1, 0, 0, 0, 0, to->stream, params, 4,
                     draw(state, 2) == 0);
  }
  mgpuStreamWaitStream(from->stream, to->stream);
  for (uint64_t i = 0; i < n; ++i) {
    to->wanted[i] += a * from->wanted[i];
    if (to->wanted[i] > 1e5f) { /* numbers stay exact */
      array_fill(to, state);
      break;
    }
  }
}

static void copy(struct array *to, struct array *from) {
  uint64_t n = to->n < from->n ? to->n : from->n;
  if (to->memory == from->memory)
    return;
  mgpuStreamWaitStream(to->stream, from->stream);
  mgpuMemcpy(to->memory, from->memory, n * sizeof(float), to->stream);
  wait_by_event(from->stream, to->stream, to->device);
  memcpy(to->wanted, from->wanted, n * sizeof(float));
}

/* Leaves the array for whoever comes and takes what lies there. */
static void pass_on(struct array *array, uint64_t *state) {
  struct array *place = &mail[draw(state, MAILBOX)], left = *array;
  pthread_mutex_lock(&mail_lock);
  *array = *place;
  *place = left;
  pthread_mutex_unlock(&mail_lock);
}

static void *hammer_thread(void *argument) {
  uint64_t state = (uintptr_t)argument * 7919 + 1;
  struct array arrays[ARRAYS] = {0};
  for (long round = 0; round < rounds; ++round) {
    struct array *one = &arrays[draw(&state, ARRAYS)], *other = &arrays[draw(&state, ARRAYS)];
    if (!one->memory)
      *one = array_new(&state);
    if (!other->memory)
      *other = array_new(&state);
    switch (draw(&state, 8)) {
    case 0:
      array_free(one);
      break;
    case 1:
      array_fill(one, &state);
      break;
    case 2:
      copy(one, other);
      break;
    case 3:
      pass_on(one, &state);
      break;
    case 4:
      array_check(one);
      break;
    default:
      saxpy(one, other, &state);
    }
    CHECK_CLEAN();
  }
  for (int i = 0; i < ARRAYS; ++i)
    array_free(&arrays[i]);
  return NULL;
}

void hammer(const char *backend, const char *image_path, long rounds_each) {
  pthread_t threads[THREADS];
  rounds = rounds_each;
  work_start(&work, backend, image_path);
  CHECK(strcmp(backend, "host") == 0 || work.devices == 4, "%d devices; STANDIN_DEVICES=4", work.devices);
  for (intptr_t i = 0; i < THREADS; ++i)
    CHECK(pthread_create(&threads[i], NULL, hammer_thread, (void *)i) == 0, "thread %d", (int)i);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < MAILBOX; ++i)
    array_free(&mail[i]);
  work_check_end(&work, 0);
  CHECK(mgpuCount(MGPU_COUNT_MODULES) == work.devices, "every device has had work");
  free(work.container.data);
}
