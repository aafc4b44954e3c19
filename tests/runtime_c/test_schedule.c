/* test_schedule.c: work on the host's streams that is put off: what runs when, in which order, and what it
 * shows. */
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 64 };

static struct container images;
static mgpuModuleSlot module = {NULL, NULL, "m", NULL};
static mgpuKernelSlot saxpy = {&module, "saxpy", NULL}, reduce = {&module, "reduce", NULL},
                      lost = {&module, "lost", NULL}, calls_back = {&module, "calls_back", NULL};

static void load(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "cannot open %s", path);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  void *image = malloc(size);
  CHECK(fread(image, 1, size, file) == size, "cannot read %s", path);
  fclose(file);
  container_add_image(&images, "host", "", "bin", "m", image, size);
  module.images_begin = images.data;
  module.images_end = images.data + images.size;
  free(image);
}

static void copy(int *to, int *from, void *stream) { mgpuMemcpy(to, from, sizeof *to, stream); }

/* Nothing runs before a wait; then the stream's work is done, in its order. */
static void test_late(void) {
  void *stream = mgpuStreamCreate();
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    mgpuHostSchedule(seed);
    int x = 1, y = 2, z = 3;
    copy(&y, &x, stream);
    copy(&z, &y, stream);
    mgpuMemset32(&x, 9, 1, stream);
    CHECK(x == 1 && y == 2 && z == 3 && mgpuCount(MGPU_COUNT_QUEUED) == 3, "%d %d %d", x, y, z);
    mgpuStreamSynchronize(stream);
    CHECK(x == 9 && y == 1 && z == 1 && mgpuCount(MGPU_COUNT_QUEUED) == 0, "%d %d %d", x, y, z);
    copy(&y, &x, stream);
    mgpuHostSchedule(0);
    CHECK(y == 9, "switching it off runs what is left");
    copy(&z, &y, stream);
    CHECK(z == 9, "work is done at once when it is off");
  }
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
}

/* Copies and fills of views are work as well; the value of a fill is read at once. */
static void test_views(void) {
  void *stream = mgpuStreamCreate();
  mgpuHostSchedule(9);
  int from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0}, value = 5;
  const int64_t strides[] = {2}, sizes[] = {4};
  mgpuMemcpyStrided(to, strides, from, strides, sizes, 1, sizeof *to, stream);
  mgpuMemsetStrided(to + 1, strides, sizes, 1, &value, sizeof *to, stream);
  value = 6;
  CHECK(to[0] == 0 && to[1] == 0, "nothing has run");
  mgpuStreamSynchronize(stream);
  for (int i = 0; i < 8; ++i)
    CHECK(to[i] == (i % 2 ? 5 : from[i]), "element %d is %d", i, to[i]);
  mgpuHostSchedule(0);
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
}

/* A launch keeps the values of its parameters; its kernel may have barriers. */
static void test_parameters(void) {
  void *stream = mgpuStreamCreate();
  mgpuHostSchedule(5);
  float a = 2, x[100], out[100], *x_pointer = x, *out_pointer = out;
  for (int i = 0; i < 100; ++i) {
    x[i] = (float)i;
    out[i] = 1;
  }
  uint64_t n = 100;
  void *params[] = {&a, &x_pointer, &out_pointer, &n};
  mgpuKernelLaunch(&saxpy, 4, 1, 1, 32, 1, 1, 0, 0, 0, 0, stream, params, 4, 0);
  uint32_t sums[3] = {0}, *sums_pointer = sums, active = 50;
  void *others[] = {&sums_pointer, &active};
  mgpuKernelLaunch(&reduce, 3, 1, 1, 64, 1, 1, 0, 0, 0, 4 * 64, stream, others, 2, 0);
  a = 100;
  n = 0;
  active = 3;
  x_pointer = out_pointer = NULL;
  sums_pointer = NULL;
  params[0] = params[1] = others[0] = NULL;
  CHECK(out[7] == 1 && sums[2] == 0, "nothing has run");
  mgpuStreamSynchronize(stream);
  for (int i = 0; i < 100; ++i)
    CHECK(out[i] == 2 * (float)i + 1, "element %d is %g", i, (double)out[i]);
  CHECK(sums[2] == 50 * 51 / 2, "%u", sums[2]);
  mgpuHostSchedule(0);
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
}

/* What stands behind an event runs before those who wait for it; what came later runs for some seeds only. */
static void test_events(void) {
  int later = 0;
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    mgpuHostSchedule(seed);
    void *a = mgpuStreamCreate(), *b = mgpuStreamCreate(), *event = mgpuEventCreate();
    int x = 1, y = 2, z = 3, other = 4;
    copy(&y, &x, a);
    mgpuEventRecord(event, a);
    copy(&other, &x, a);
    mgpuStreamWaitEvent(b, event);
    mgpuEventRecord(event, b); /* moves the event, not the wait */
    copy(&z, &y, b);
    if (seed % 2) {
      mgpuStreamSynchronize(b);
      CHECK(y == 1 && z == 1, "seed %d: %d %d", (int)seed, y, z);
    } else {
      mgpuEventSynchronize(event);
      CHECK(y == 1, "seed %d: %d", (int)seed, y);
    }
    later += other == 1;
    mgpuEventDestroy(event);
    mgpuStreamDestroy(a);
    mgpuStreamDestroy(b);
    mgpuHostSchedule(0);
    CHECK(other == 1 && z == 1, "work on streams that were destroyed");
  }
  CHECK(later > 0 && later < SEEDS / 2, "what nobody needs ran %d times", later);
  CHECK_CLEAN();
}

/* Without the event, most seeds show it. */
static void test_a_missing_wait(void) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    mgpuHostSchedule(seed);
    void *a = mgpuStreamCreate(), *b = mgpuStreamCreate();
    int x = 1, y = 2, z = 3;
    copy(&y, &x, a);
    copy(&z, &y, b);
    mgpuStreamSynchronize(b);
    wrong += z != 1;
    mgpuStreamDestroy(a);
    mgpuStreamDestroy(b);
    mgpuHostSchedule(0);
  }
  CHECK(wrong > SEEDS / 2, "%d of %d", wrong, SEEDS);
  CHECK_CLEAN();
}

/* More streams than the pool keeps, given back with work on them. */
static void test_destroyed_streams(void) {
  enum { MANY = 200 };
  static int from[MANY], to[MANY];
  void *streams[MANY];
  mgpuHostSchedule(3);
  for (int i = 0; i < MANY; ++i) {
    from[i] = i + 1;
    streams[i] = mgpuStreamCreate();
    copy(&to[i], &from[i], streams[i]);
  }
  for (int i = 0; i < MANY; ++i)
    mgpuStreamDestroy(streams[i]);
  CHECK(to[0] == 0 && to[MANY - 1] == 0, "nothing has run");
  mgpuHostSchedule(0);
  for (int i = 0; i < MANY; ++i)
    CHECK(to[i] == i + 1, "the work of stream %d is lost", i);
  CHECK_CLEAN();
}

/* Streams are in order, so such a wait waits for nothing that is not done; the last stream is in no pool. */
static void test_waiting_for_itself(void) {
  enum { MANY = 65 };
  int value = 0;
  void *streams[MANY], *event = mgpuEventCreate();
  mgpuHostSchedule(1);
  for (int i = 0; i < MANY; ++i)
    streams[i] = mgpuStreamCreate();
  void *last = streams[MANY - 1];
  mgpuMemset32(&value, 7, 1, last);
  mgpuEventRecord(event, last);
  mgpuStreamWaitEvent(last, event);
  mgpuEventRecord(event, streams[0]);
  for (int i = 0; i < MANY; ++i)
    mgpuStreamDestroy(streams[i]);
  mgpuHostSchedule(0);
  mgpuEventDestroy(event);
  CHECK(value == 7, "%d", value);
  CHECK_CLEAN();
}

/* A function with tokens whose second launch fails: what its first one uses is freed when that has ended. */
static void fail_with_tokens(void) {
  enum { COUNT = 1000 };
  mgpuScope scope = {0};
  float *memory = mgpuMemAlloc(COUNT * sizeof *memory, NULL, false);
  void *stream = mgpuScopeStream(&scope);
  mgpuMemset32(memory, 1, COUNT, stream);
  mgpuKernelLaunch(&saxpy, 1, 1, 1, 2000, 1, 1, 0, 0, 0, 0, mgpuScopeStream(&scope), NULL, 4, 0);
  mgpuScopeWait(&scope);
  mgpuMemFree(memory, NULL);
  mgpuScopeEnd(&scope);
}

static void assert_in_guard(float *given) {
  _Alignas(16) unsigned char guard[MGPU_GUARD_BYTES];
  mgpuScope scope = {0};
  if (setjmp(*(jmp_buf *)mgpuGuardEnter(guard)) == 0) {
    mgpuMemset32(given, 1, 1000, mgpuScopeStream(&scope));
    mgpuAssertFail("it is so", "here");
  }
}

static void test_failures_with_tokens(void) {
  int64_t damaged = mgpuCount(MGPU_COUNT_LATE_WRITES);
  for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
    mgpuHostSchedule(seed);
    fail_with_tokens();
    CHECK_ERROR(MGPU_ERROR_INVALID, "2000");
    float *given = mgpuMemAlloc(1000 * sizeof *given, NULL, false); /* the caller's */
    assert_in_guard(given);
    CHECK_ERROR(MGPU_ERROR_ASSERT, "it is so");
    mgpuMemFree(given, NULL);
    mgpuHostSchedule(0);
  }
  CHECK(mgpuCount(MGPU_COUNT_LATE_WRITES) == damaged, "freed memory was written to");
  CHECK_CLEAN();
}

/* Fresh and freed memory have patterns, at the time when the stream comes there. */
static void test_memory(void) {
  mgpuHostSchedule(4);
  int64_t before = mgpuCount(MGPU_COUNT_ALLOCATIONS), damaged = mgpuCount(MGPU_COUNT_LATE_WRITES);
  void *a = mgpuStreamCreate(), *b = mgpuStreamCreate();
  unsigned char *shared = mgpuMemAlloc(10, a, true), *memory = mgpuMemAlloc(10, a, false);
  CHECK(shared[9] == 0xA7 && mgpuCount(MGPU_COUNT_QUEUED) == 1, "memory for the CPU is there at once");
  mgpuMemset8(memory, 7, 10, b); /* does not wait for the allocation */
  mgpuStreamSynchronize(b);
  mgpuStreamSynchronize(a);
  CHECK(memory[9] == 0xA7 || memory[9] == 7, "%d", memory[9]);
  mgpuMemset8(memory, 7, 10, a);
  mgpuMemFree(memory, a);
  mgpuMemFree(shared, a);
  CHECK(mgpuCount(MGPU_COUNT_ALLOCATIONS) == before, "freed, as far as the program can tell");
  mgpuStreamSynchronize(a);
  CHECK(memory[0] == 0xD5 && memory[9] == 0xD5, "%d", memory[0]);
  mgpuMemset8(memory, 7, 3, b); /* too late */
  mgpuStreamSynchronize(b);
  CHECK(mgpuCount(MGPU_COUNT_LATE_WRITES) == damaged + 1, "a write to freed memory is noticed");
  memory = mgpuMemAlloc(10, a, false);
  mgpuMemFree(memory, b); /* too early */
  mgpuStreamSynchronize(b);
  CHECK_ERROR(MGPU_ERROR_INVALID, "does not wait for the one that allocates it");
  mgpuStreamSynchronize(a);
  CHECK(memory[0] == 0xD5 && memory[9] == 0xD5, "%d: it may be somebody else's by now", memory[0]);
  CHECK_CLEAN();
  void *own = mgpuMemAlloc(8, NULL, false); /* no stream named: ready for all */
  CHECK(*(unsigned char *)own == 0xA7, "%d", *(unsigned char *)own);
  mgpuMemFree(own, NULL);
  mgpuStreamDestroy(a);
  mgpuStreamDestroy(b);
  mgpuHostSchedule(0);
  CHECK_CLEAN();
}

static int failed_in_between(void) {
  mgpuKernelLaunch(&lost, 3, 1, 1, 64, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 0);
  CHECK_CLEAN();
  mgpuHostSchedule(0);
  return mgpuGetLastError();
}

/* A kernel's failure comes with the wait, or with the end of waiting. */
static void test_failure(void) {
  mgpuHostSchedule(6);
  void *stream = mgpuStreamCreate();
  mgpuKernelLaunch(&lost, 3, 1, 1, 64, 1, 1, 0, 0, 0, 0, stream, NULL, 0, 0);
  CHECK_CLEAN();
  mgpuStreamSynchronize(stream);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "lost");
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
  CHECK(failed_in_between() == MGPU_ERROR_BAD_IMAGE, "switching it off runs what is left");
  mgpuHostSchedule(6);
  mgpuStreamSynchronize(NULL); /* told once */
  mgpuHostSchedule(0);
  CHECK_CLEAN();
}

/* The child of a fork has the queues too. */
static void test_fork(void) {
  mgpuHostSchedule(7);
  void *stream = mgpuStreamCreate();
  int x = 1, y = 2;
  copy(&y, &x, stream);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mgpuStreamSynchronize(stream);
    _exit(y == 1 && mgpuGetLastError() == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %#x", (unsigned)status);
  CHECK(y == 2, "the parent's work still waits");
  mgpuHostSchedule(0);
  mgpuStreamDestroy(stream);
}

/* Chains over several streams in many threads, which run each other's work. */
static void *chains(void *argument) {
  enum { STREAMS = 3, STEPS = 40 };
  unsigned mine = *(unsigned *)argument;
  for (int round = 0; round < 30; ++round) {
    void *streams[STREAMS], *event = mgpuEventCreate();
    for (int i = 0; i < STREAMS; ++i)
      streams[i] = mgpuStreamCreate();
    int *values = mgpuMemAlloc((STEPS + 1) * sizeof *values, streams[0], false), *all = values, last = -1;
    mgpuMemset32(values, mine, 1, streams[0]);
    unsigned at = 0, random = mine * 97 + (unsigned)round;
    for (int i = 0; i < STEPS; ++i) {
      random = random * 1664525u + 1013904223u;
      unsigned next = (random >> 16) % STREAMS;
      mgpuEventRecord(event, streams[at]);
      mgpuStreamWaitEvent(streams[next], event);
      copy(all + i + 1, all + i, streams[next]);
      at = next;
    }
    copy(&last, all + STEPS, streams[at]);
    mgpuMemFree(values, streams[at]);
    mgpuStreamSynchronize(streams[at]);
    CHECK(last == (int)mine, "thread %u has %d", mine, last);
    mgpuEventDestroy(event);
    for (int i = 0; i < STREAMS; ++i)
      mgpuStreamDestroy(streams[i]);
  }
  CHECK_CLEAN();
  return NULL;
}

static void test_many_threads(void) {
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  unsigned numbers[THREADS];
  mgpuHostSchedule(8);
  for (unsigned i = 0; i < THREADS; ++i) {
    numbers[i] = i + 1;
    pthread_create(&threads[i], NULL, chains, &numbers[i]);
  }
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  mgpuHostSchedule(0);
  CHECK(mgpuCount(MGPU_COUNT_QUEUED) == 0 && mgpuCount(MGPU_COUNT_ALLOCATIONS) == 0, "left behind");
}

static void *copies(void *stop) {
  void *stream = mgpuStreamCreate();
  for (int i = 0; i < 50000; ++i) {
    int from = i, to = -1;
    copy(&to, &from, stream);
    mgpuStreamSynchronize(stream);
    CHECK(to == i, "the copy %d has not run", i);
  }
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
  __atomic_store_n((int *)stop, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* Whenever a thread switches it, what another puts on a stream then has run once that one has waited. */
static void test_switching(void) {
  pthread_t thread;
  int stop = 0;
  pthread_create(&thread, NULL, copies, &stop);
  for (uint64_t seed = 1; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); ++seed) {
    mgpuHostSchedule(seed);
    mgpuHostSchedule(0);
  }
  pthread_join(thread, NULL);
  CHECK(mgpuCount(MGPU_COUNT_QUEUED) == 0, "left behind");
  CHECK_CLEAN();
}

struct called {
  void *stream, *other;
  int one, two, three;
  bool waits_for_itself;
};

/* In a block that was launched on called->stream. */
static void in_a_block(void *pointer) {
  struct called *called = pointer;
  copy(&called->two, &called->one, called->stream); /* a part of the launch: at once */
  CHECK(called->two == 1, "%d", called->two);
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, called->stream);
  mgpuStreamWaitEvent(called->other, event);
  copy(&called->three, &called->two, called->other);
  mgpuEventRecord(event, called->other);
  if (!called->waits_for_itself) {
    mgpuStreamWaitEvent(called->stream, event); /* before what the block puts there next */
    CHECK(called->three == 1, "%d", called->three);
  }
  mgpuEventDestroy(event);
  mgpuStreamSynchronize(called->stream);
  mgpuStreamSynchronize(called->other);
  if (called->waits_for_itself) {
    CHECK_ERROR(MGPU_ERROR_INVALID, "calls back and waits for work that comes after the kernel");
    mgpuHostSchedule(0);
    CHECK_ERROR(MGPU_ERROR_INVALID, "calls mgpuHostSchedule");
  }
  CHECK_CLEAN();
}

/* What blocks call back is a part of their launch. Where it waits for what comes behind the launch, which
 * would wait for ever, it is told. */
static void test_called_back(void) {
  void (*function)(void *) = in_a_block;
  for (uint64_t seed = 0; seed <= SEEDS; ++seed)
    for (int itself = 0; itself <= (seed != 0); ++itself) {
      struct called called = {mgpuStreamCreate(), mgpuStreamCreate(), 1, 0, 0, itself}, *pointer = &called;
      void *params[] = {&function, &pointer};
      mgpuHostSchedule(seed);
      mgpuKernelLaunch(&calls_back, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, called.stream, params, 2, 0);
      if (itself)
        mgpuStreamWaitStream(called.other, called.stream);
      mgpuStreamSynchronize(called.stream);
      mgpuStreamSynchronize(called.other);
      CHECK(called.three == 1, "%d", called.three);
      mgpuHostSchedule(0);
      mgpuStreamDestroy(called.stream);
      mgpuStreamDestroy(called.other);
      CHECK_CLEAN();
    }
}

static void on_the_own_stream(void *pointer) {
  int *values = pointer;
  copy(&values[1], &values[0], NULL);
  mgpuStreamSynchronize(NULL);
  CHECK(values[1] == 1, "%d", values[1]);
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, NULL);
  mgpuEventSynchronize(event);
  mgpuEventDestroy(event);
  CHECK_CLEAN();
}

/* A thread's stream waits for a launch; its blocks run on that thread, and use "its" stream. */
static void test_called_back_on_the_own_stream(void *own) {
  void (*function)(void *) = on_the_own_stream;
  mgpuSetThreadStream(own);
  for (uint64_t seed = 0; seed <= SEEDS; ++seed) {
    int values[4] = {0}, one = 1, *pointer = values;
    void *params[] = {&function, &pointer}, *stream = mgpuStreamCreate();
    mgpuHostSchedule(seed);
    copy(&values[0], &one, NULL); /* what does not wait for the launch comes first */
    mgpuKernelLaunch(&calls_back, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, stream, params, 2, 0);
    mgpuStreamWaitStream(NULL, stream);
    copy(&values[2], &values[1], NULL);
    mgpuStreamSynchronize(NULL);
    CHECK(values[2] == 1, "%d", values[2]);
    mgpuHostSchedule(0);
    mgpuStreamDestroy(stream);
    CHECK_CLEAN();
  }
  mgpuSetThreadStream(NULL);
}

static void forks(void *child) { *(int *)child = fork(); }

/* The child runs the launch to its end, and what comes behind. */
static void test_fork_in_a_block(void) {
  void (*function)(void *) = forks;
  int child = -1, *pointer = &child, one = 1, two = 0, three = 0, status = -1;
  void *params[] = {&function, &pointer}, *stream = mgpuStreamCreate();
  mgpuHostSchedule(3);
  mgpuKernelLaunch(&calls_back, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, stream, params, 2, 0);
  copy(&two, &one, stream);
  mgpuStreamSynchronize(stream);
  copy(&three, &two, stream);
  mgpuStreamSynchronize(stream);
  CHECK(three == 1 && mgpuCount(MGPU_COUNT_QUEUED) == 0, "%d", three);
  CHECK_CLEAN();
  if (child == 0)
    _exit(7);
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", (unsigned)status);
  mgpuHostSchedule(0);
  mgpuStreamDestroy(stream);
}

/* Streams that wait for each other in turn, as often as a loop of the program does, on a small stack. */
static void *in_turn(void *unused) {
  int x = 1, y = 0;
  void *a = mgpuStreamCreate(), *b = mgpuStreamCreate();
  for (int i = 0; i < 20000; ++i) {
    copy(&y, &x, a);
    mgpuStreamWaitStream(b, a);
    copy(&x, &y, b);
    mgpuStreamWaitStream(a, b);
  }
  mgpuStreamSynchronize(a);
  CHECK(y == 1 && mgpuCount(MGPU_COUNT_QUEUED) == 0, "%d", y);
  mgpuStreamDestroy(a);
  mgpuStreamDestroy(b);
  CHECK_CLEAN();
  return unused;
}

static void test_waiting_in_turn(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  mgpuHostSchedule(4);
  CHECK(pthread_create(&thread, &attributes, in_turn, NULL) == 0, "a thread");
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  mgpuHostSchedule(0);
}

/* Looking for each among all the others took minutes. */
static void test_many_allocations(void) {
  enum { MANY = 50000 };
  void *stream = mgpuStreamCreate(), **all = calloc(MANY, sizeof *all);
  mgpuHostSchedule(6);
  for (int i = 0; i < MANY; ++i)
    all[i] = mgpuMemAlloc(16, stream, false);
  mgpuStreamSynchronize(stream);
  for (int i = 0; i < MANY; ++i)
    mgpuMemFree(all[i], stream);
  mgpuHostSchedule(0);
  free(all);
  mgpuStreamDestroy(stream);
  CHECK(mgpuCount(MGPU_COUNT_ALLOCATIONS) == 0, "left behind");
  CHECK_CLEAN();
}

/* Modules, streams and events are counted. */
static void test_counters(void) {
  int64_t streams = mgpuCount(MGPU_COUNT_STREAMS), events = mgpuCount(MGPU_COUNT_EVENTS);
  void *stream = mgpuStreamCreate(), *event = mgpuEventCreate();
  CHECK(mgpuCount(MGPU_COUNT_STREAMS) == streams + 1 && mgpuCount(MGPU_COUNT_EVENTS) == events + 1, "live");
  int64_t pooled = mgpuCount(MGPU_COUNT_POOLED_STREAMS);
  mgpuStreamDestroy(stream);
  mgpuEventDestroy(event);
  CHECK(mgpuCount(MGPU_COUNT_STREAMS) == streams && mgpuCount(MGPU_COUNT_EVENTS) == events, "given back");
  CHECK(mgpuCount(MGPU_COUNT_POOLED_STREAMS) <= 64 && mgpuCount(MGPU_COUNT_POOLED_STREAMS) >= pooled, "pool");
  CHECK(mgpuCount(MGPU_COUNT_POOLED_EVENTS) > 0 && mgpuCount(MGPU_COUNT_MODULES) == 1, "modules");
  CHECK(mgpuCount(-1) == -1 && mgpuCount(100) == -1, "no such thing");
  CHECK_CLEAN();
}

void test_schedule(const char *image_path) {
  load(image_path);
  test_late();
  test_views();
  test_parameters();
  test_events();
  test_a_missing_wait();
  test_destroyed_streams();
  test_waiting_for_itself();
  test_failures_with_tokens();
  test_memory();
  test_failure();
  test_counters();
  test_fork();
  test_many_threads();
  test_switching();
  test_called_back();
  test_called_back_on_the_own_stream(NULL);
  void *set = mgpuStreamCreate();
  test_called_back_on_the_own_stream(set);
  mgpuStreamDestroy(set);
  test_fork_in_a_block();
  test_waiting_in_turn();
  test_many_allocations();
}

void test_schedule_environment(int code) {
  void *stream = mgpuStreamCreate();
  if (code != MGPU_SUCCESS) {
    CHECK(stream == NULL, "no stream");
    CHECK_ERROR(code, "OFFLOAD_HOST_SCHEDULE");
    return;
  }
  int x = 1, y = 2;
  copy(&y, &x, stream);
  CHECK(y == 2, "put off");
  mgpuStreamSynchronize(stream);
  CHECK(y == 1, "done");
  CHECK_CLEAN();
}
