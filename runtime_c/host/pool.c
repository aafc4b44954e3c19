/* pool.c: the threads that run the host backend's blocks.
 *
 * A job is handed out in chunks by an atomic counter. Its caller works on it too, and could finish it alone;
 * so many callers at once never wait for each other's jobs, only for threads that are inside their own.
 *
 * Each artifact has a pool. Threads come when a job can use them and go when there has been none for a while:
 * a process with a thousand artifacts has threads for those at work. */
#include "host/host.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct job {
  mgpu_host_part *part;
  void *context;
  uint64_t total;
  uint64_t chunk;
  uint64_t next;    /* atomic */
  int failure;      /* atomic */
  unsigned workers; /* threads of the pool inside; under the pool's lock */
  struct job *link;
};

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t work; /* a job came */
  pthread_cond_t done; /* a worker left a job */
  struct job *jobs;    /* those with callers still inside, oldest first */
  unsigned threads;    /* there now */
  unsigned wanted;     /* at most */
};

enum { IDLE_SECONDS = 3 };

static struct pool *pool; /* atomic; made at first use, under mgpu_init_lock; never freed */

static void work_on(struct job *job) {
  while (__atomic_load_n(&job->failure, __ATOMIC_RELAXED) == 0) {
    uint64_t first = __atomic_fetch_add(&job->next, job->chunk, __ATOMIC_RELAXED);
    if (first >= job->total)
      break;
    uint64_t last = job->total - first > job->chunk ? first + job->chunk : job->total;
    int failure = job->part(job->context, first, last), none = 0;
    if (failure)
      __atomic_compare_exchange_n(&job->failure, &none, failure, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

static bool has_work(const struct job *job) {
  return __atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->total &&
         __atomic_load_n(&job->failure, __ATOMIC_RELAXED) == 0;
}

static struct job *find_work(const struct pool *from) {
  struct job *job = from->jobs;
  while (job && !has_work(job))
    job = job->link;
  return job;
}

/* Waits for a job under the pool's lock; NULL when none came for IDLE_SECONDS. */
static struct job *wait_for_work(struct pool *from) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += IDLE_SECONDS;
  struct job *job;
  int failure = 0;
  while (!(job = find_work(from)) && !failure)
    failure = pthread_cond_timedwait(&from->work, &from->lock, &until);
  return job;
}

static void *worker(void *argument) {
  struct pool *mine = argument;
  struct job *job;
  pthread_mutex_lock(&mine->lock);
  while ((job = wait_for_work(mine))) {
    ++job->workers;
    pthread_mutex_unlock(&mine->lock);
    work_on(job);
    pthread_mutex_lock(&mine->lock);
    if (--job->workers == 0)
      pthread_cond_broadcast(&mine->done);
  }
  --mine->threads;
  pthread_mutex_unlock(&mine->lock);
  return NULL;
}

unsigned mgpu_host_pool_width(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int width = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  return width > 0 ? (unsigned)width : 1;
}

static struct pool *make(void) {
  struct pool *made = calloc(1, sizeof *made);
  if (!made)
    return NULL;
  made->wanted = mgpu_host_pool_width() - 1;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->work, &attributes);
  pthread_cond_init(&made->done, NULL);
  pthread_condattr_destroy(&attributes);
  return made;
}

/* Under the pool's lock: as many threads as `useful` chunks can use. Fewer only take longer. */
static void hire(struct pool *to, uint64_t useful) {
  unsigned goal = useful < to->wanted ? (unsigned)useful : to->wanted;
  if (to->threads >= goal)
    return;
  sigset_t every, before; /* signals are for the program's threads */
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  while (to->threads < goal && pthread_create(&thread, &attributes, worker, to) == 0)
    ++to->threads;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct pool *get(void) {
  struct pool *now = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
  if (now)
    return now;
  mgpu_init_lock();
  if (!pool)
    __atomic_store_n(&pool, make(), __ATOMIC_RELEASE);
  now = pool;
  mgpu_init_unlock();
  return now;
}

void mgpu_host_pool_after_fork(void) { __atomic_store_n(&pool, NULL, __ATOMIC_RELEASE); }

int mgpu_host_pool_run(uint64_t total, mgpu_host_part *part, void *context) {
  struct pool *now = total > 1 ? get() : NULL;
  if (!now || now->wanted == 0)
    return part(context, 0, total);
  /* The latter bounds for how long blocks still run after one has failed. */
  enum { CHUNKS_PER_THREAD = 8, MOST_PER_CHUNK = 1 << 16 };
  uint64_t chunk = total / ((now->wanted + 1) * (uint64_t)CHUNKS_PER_THREAD);
  struct job job = {.part = part, .context = context, .total = total};
  job.chunk = !chunk ? 1 : chunk < MOST_PER_CHUNK ? chunk : MOST_PER_CHUNK;
  uint64_t chunks = (total - 1) / job.chunk + 1;

  pthread_mutex_lock(&now->lock);
  struct job **end = &now->jobs;
  while (*end)
    end = &(*end)->link;
  *end = &job;
  hire(now, chunks - 1);
  if (chunks > now->threads)
    pthread_cond_broadcast(&now->work);
  else
    for (uint64_t i = 1; i < chunks; ++i)
      pthread_cond_signal(&now->work);
  pthread_mutex_unlock(&now->lock);

  work_on(&job);

  pthread_mutex_lock(&now->lock);
  struct job **place = &now->jobs;
  while (*place != &job)
    place = &(*place)->link;
  *place = job.link;
  while (job.workers)
    pthread_cond_wait(&now->done, &now->lock);
  pthread_mutex_unlock(&now->lock);
  return job.failure;
}
