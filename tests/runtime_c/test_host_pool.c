/* test_host_pool.c: the pool of the host backend and its division of work, called directly. */
#include "check.h"
#include "host/host.h"

#include <pthread.h>
#include <time.h>

enum { ITEMS = 5000, MOST_CALLERS = 64 };

struct job {
  unsigned char done[ITEMS];
  uint64_t fails_at;
};

static int mark(void *context, uint64_t first, uint64_t last) {
  struct job *job = context;
  for (uint64_t i = first; i < last; ++i) {
    __atomic_add_fetch(&job->done[i], 1, __ATOMIC_RELAXED);
    if (i == job->fails_at)
      return MGPU_ERROR_DRIVER;
  }
  return 0;
}

static void *run_many(void *argument) {
  static uint64_t cost; /* of all threads together */
  uint64_t own = 0;
  for (uint64_t round = 0; round < 300; ++round) {
    struct job job = {.fails_at = UINT64_MAX};
    uint64_t total = 1 + (round * 7919 + (uintptr_t)argument) % ITEMS;
    uint64_t *known = round % 3 == 0 ? &cost : &own;
    CHECK(mgpu_host_split(total, mark, &job, known) == 0, "round %llu", (unsigned long long)round);
    for (uint64_t i = 0; i < ITEMS; ++i)
      CHECK(job.done[i] == (i < total), "item %llu was done %d times", (unsigned long long)i, job.done[i]);
  }
  return NULL;
}

static void test_all_done_once(void) {
  pthread_t threads[8];
  for (uintptr_t i = 0; i < 8; ++i)
    pthread_create(&threads[i], NULL, run_many, (void *)i);
  for (int i = 0; i < 8; ++i)
    pthread_join(threads[i], NULL);
}

static void test_failure(void) {
  for (uint64_t at = 0; at < ITEMS; at += 499) {
    uint64_t known = at % 2; /* to the pool, or here */
    struct job job = {.fails_at = at};
    CHECK(mgpu_host_split(ITEMS, mark, &job, &known) == MGPU_ERROR_DRIVER, "a failure at %d", (int)at);
  }
}

static int rest(void *context, uint64_t first, uint64_t last) {
  uint64_t *ns = context;
  for (uint64_t i = first; i < last; ++i)
    nanosleep(&(struct timespec){.tv_nsec = (long)*ns}, NULL);
  return 0;
}

static pthread_t main_thread;
static int by_others;

static int who(void *context, uint64_t first, uint64_t last) {
  if (!pthread_equal(pthread_self(), main_thread))
    __atomic_add_fetch(&by_others, 1, __ATOMIC_RELAXED);
  return rest(context, first, last);
}

/* However heavy it was, and whatever the system does in between. */
static void become_light(uint64_t *cost) {
  struct job job = {.fails_at = UINT64_MAX};
  for (int i = 0; i < 1000 && (*cost == 0 || *cost > 1000 * 1000); ++i)
    mgpu_host_split(8, mark, &job, cost);
  CHECK(*cost && *cost < 1000 * 1000, "a mark costs %llu ps", (unsigned long long)*cost);
}

/* A light kernel stays where it is launched; one that is heavy is shared, two blocks as well as many, and
 * also the first time that it is heavy. */
static void test_division(void) {
  uint64_t cost = 0, ns = 0;
  bool others = mgpu_host_pool_width() > 1;
  main_thread = pthread_self();
  become_light(&cost);
  ns = 2000000;
  mgpu_host_split(16, who, &ns, &cost);
  CHECK(!others || by_others, "none of 16 blocks of 2 ms was shared at once");
  CHECK(cost > 1000ull * 1000 * 1000, "2 ms cost %llu ps", (unsigned long long)cost);
  by_others = 0;
  for (int i = 0; i < 20; ++i)
    mgpu_host_split(2, who, &ns, &cost);
  CHECK(!others || by_others >= 10, "of 20 pairs of blocks of 2 ms, %d were shared", by_others);
  become_light(&cost);
}

static pthread_t callers[MOST_CALLERS];
static int inside, callers_count, past_half, late_helpers, handled;
static pthread_barrier_t known;

static bool is_caller(void) {
  for (int i = 0; i < callers_count; ++i)
    if (pthread_equal(pthread_self(), callers[i]))
      return true;
  return false;
}

/* The first block of each job waits until all callers are inside; nobody of the pool may begin anything
 * between then and the time that half a job's blocks are done, but for what it was about to begin. */
static int watch(void *context, uint64_t first, uint64_t last) {
  uint64_t ns = 20000;
  (void)context;
  if (first == 0)
    __atomic_add_fetch(&inside, 1, __ATOMIC_ACQ_REL);
  while (first == 0 && __atomic_load_n(&inside, __ATOMIC_ACQUIRE) < callers_count)
    rest(&ns, 0, 1);
  if (__atomic_add_fetch(&handled, (int)(last - first), __ATOMIC_RELAXED) > ITEMS / 2)
    __atomic_store_n(&past_half, 1, __ATOMIC_RELEASE);
  if (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) == callers_count &&
      !__atomic_load_n(&past_half, __ATOMIC_ACQUIRE) && !is_caller())
    __atomic_add_fetch(&late_helpers, 1, __ATOMIC_RELAXED);
  return rest(&ns, 0, 1);
}

static void *call(void *unused) {
  (void)unused;
  pthread_barrier_wait(&known);
  mgpu_host_pool_run(ITEMS, MGPU_HOST_ALL_THREADS, watch, NULL, NULL);
  return NULL;
}

/* As many callers as processors: the pool's threads leave them to them. */
static void test_crowd(void) {
  unsigned width = mgpu_host_pool_width();
  callers_count = width < 2 ? 2 : width > MOST_CALLERS ? MOST_CALLERS : (int)width;
  if (callers_count < (int)width)
    return; /* more processors than this test has threads */
  pthread_barrier_init(&known, NULL, (unsigned)callers_count + 1);
  for (int i = 0; i < callers_count; ++i)
    pthread_create(&callers[i], NULL, call, NULL);
  pthread_barrier_wait(&known);
  for (int i = 0; i < callers_count; ++i)
    pthread_join(callers[i], NULL);
  CHECK(late_helpers < (int)width, "%d chunks were begun by the pool among %d callers", late_helpers,
        callers_count);
}

void check_host_pool(void) {
  test_all_done_once();
  test_failure();
  test_division();
  test_crowd();
}
