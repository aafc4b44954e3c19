/* pool.c: the threads that run the host backend's blocks.
 *
 * A job is divided into lanes, one for each thread, MOST_LANES of them at most. A thread takes its own in
 * chunks and then helps with the others'. The lanes of a job lie as those of the last one, so that what a
 * thread has in its cache, or on its side of the memory, is what it comes by again. Chunks get smaller toward
 * a lane's end, so that a thread that began late leaves little for the others to wait for. Its caller works
 * on a job too, and could finish it alone; so many callers at once never wait for each other's jobs, only for
 * threads that are inside their own. Callers and threads at work together are as many as there are
 * processors, or as there are callers: a thread leaves a job after its chunk when there are more.
 *
 * Each artifact has a pool. Threads come when a job can use them and go when there has been none for a while:
 * a process with a thousand artifacts has threads for those at work. Between jobs a thread first looks for
 * the next one for SPIN_NS: to sleep and be woken costs more than a kernel of some microseconds. */
#include "host/host.h"
#include "trace/trace.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_LANES = 64, CACHE_LINE = 64 };

struct lane {
  uint64_t next; /* atomic */
  uint64_t end;
} __attribute__((aligned(CACHE_LINE)));

struct job {
  mgpu_host_part *part;
  void *context;
  uint64_t least, most; /* in a chunk */
  struct job *link;
  unsigned helpers; /* at most so many threads of the pool */
  unsigned width;   /* lanes */
  int taken;        /* atomic: whether nothing is left in any lane */
  int failure;      /* atomic */
  unsigned workers; /* atomic: threads of the pool inside; grows under the pool's lock */
  struct lane lanes[MOST_LANES];
};

struct pool {
  pthread_mutex_t lock;
  pthread_cond_t work; /* a job came */
  pthread_cond_t done; /* a worker left a job */
  struct job *jobs;    /* those with callers still inside, oldest first */
  unsigned threads;    /* there now */
  unsigned wanted;     /* at most */
  unsigned active;     /* atomic; callers and threads inside jobs; changes under the lock */
  unsigned spinning;   /* threads that look for a job and take it without being woken */
  unsigned sleeping;
  unsigned waiting; /* callers that wait for threads to leave their jobs */
  unsigned posted;  /* atomic: jobs that have come */
  bool seats[];     /* taken by a thread, which begins with the lane behind its seat's number */
};

enum { IDLE_SECONDS = 3, SPIN_NS = 30000, PAUSES_PER_LOOK = 8 };

static struct pool *pool; /* atomic; made at first use, under mgpu_init_lock; never freed */

static void pause_a_little(void) {
  for (int i = 0; i < PAUSES_PER_LOOK; ++i)
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#else
    __asm__ volatile("");
#endif
}

/* Whether more are at work than there are processors. */
static bool crowded(const struct pool *in) {
  return __atomic_load_n(&in->active, __ATOMIC_RELAXED) > in->wanted + 1;
}

/* Takes a chunk of a lane: a quarter of what is left, within the job's bounds. False when nothing is. */
static bool take(const struct job *job, struct lane *of, uint64_t *first, uint64_t *last) {
  uint64_t next = __atomic_load_n(&of->next, __ATOMIC_RELAXED);
  do {
    uint64_t left = of->end - next, chunk = left / 4;
    if (!left)
      return false;
    chunk = chunk < job->least ? job->least : chunk > job->most ? job->most : chunk;
    *first = next;
    *last = next + (chunk < left ? chunk : left);
  } while (!__atomic_compare_exchange_n(&of->next, &next, *last, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return true;
}

/* Works on the job, from a lane on, until there is nothing left of it, or, a thread of the pool, until the
 * pool is crowded. Returns how much was done. */
static uint64_t work_on(struct job *job, unsigned lane, const struct pool *leaves) {
  uint64_t count = 0, first, last;
  for (unsigned empty = 0; empty < job->width;) {
    if (__atomic_load_n(&job->failure, __ATOMIC_RELAXED) || (leaves && crowded(leaves)))
      return count;
    if (!take(job, &job->lanes[(lane + empty) % job->width], &first, &last)) {
      ++empty;
      continue;
    }
    int failure = job->part(job->context, first, last), none = 0;
    count += last - first;
    if (failure)
      __atomic_compare_exchange_n(&job->failure, &none, failure, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&job->taken, 1, __ATOMIC_RELAXED);
  return count;
}

static bool has_work(const struct job *job) {
  return !__atomic_load_n(&job->taken, __ATOMIC_RELAXED) &&
         __atomic_load_n(&job->failure, __ATOMIC_RELAXED) == 0;
}

/* The functions from here on are called with the pool's lock held. */

static bool wants_more(const struct job *job) {
  return has_work(job) && __atomic_load_n(&job->workers, __ATOMIC_RELAXED) < job->helpers;
}

static void add_active(struct pool *to, unsigned count) {
  __atomic_store_n(&to->active, to->active + count, __ATOMIC_RELAXED);
}

/* A job for one more thread; NULL when there is none, or no processor for it. */
static struct job *find_work(const struct pool *from) {
  struct job *job = from->active > from->wanted ? NULL : from->jobs;
  while (job && !wants_more(job))
    job = job->link;
  return job;
}

/* Looks for the next job without sleeping; lets go of the lock meanwhile. */
static struct job *spin_for_work(struct pool *from) {
  struct job *job = find_work(from);
  unsigned posted = __atomic_load_n(&from->posted, __ATOMIC_RELAXED);
  if (job)
    return job;
  ++from->spinning;
  pthread_mutex_unlock(&from->lock);
  uint64_t end = mgpu_trace_now() + SPIN_NS;
  while (__atomic_load_n(&from->posted, __ATOMIC_ACQUIRE) == posted && mgpu_trace_now() < end)
    pause_a_little();
  pthread_mutex_lock(&from->lock);
  --from->spinning;
  return find_work(from);
}

/* NULL when none came for IDLE_SECONDS. A thread that comes too late for the job it was woken for looks for
 * the next one before it sleeps again: else it would be late for every one of many short ones. */
static struct job *wait_for_work(struct pool *from) {
  struct job *job;
  while (!(job = spin_for_work(from))) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    ++from->sleeping;
    int failure = pthread_cond_timedwait(&from->work, &from->lock, &until);
    --from->sleeping;
    if (failure)
      return find_work(from);
  }
  return job;
}

/* Wakes as many sleeping threads as can help with `useful` of a job. */
static void wake(struct pool *in, uint64_t useful) {
  uint64_t room = in->active > in->wanted ? 0 : in->wanted + 1 - in->active;
  uint64_t helpers = useful < room ? useful : room, ready = in->spinning;
  uint64_t woken = helpers > ready ? helpers - ready : 0;
  if (woken && woken >= in->sleeping)
    pthread_cond_broadcast(&in->work);
  else
    for (uint64_t i = 0; i < woken; ++i)
      pthread_cond_signal(&in->work);
}

/* The others take the lock themselves. */

static void *worker(void *argument) {
  struct pool *mine = argument;
  struct job *job;
  unsigned seat = 0;
  pthread_mutex_lock(&mine->lock);
  while (mine->seats[seat])
    ++seat; /* as many as threads */
  mine->seats[seat] = true;
  while ((job = wait_for_work(mine))) {
    __atomic_add_fetch(&job->workers, 1, __ATOMIC_RELAXED);
    add_active(mine, 1);
    if (find_work(mine))
      wake(mine, 1); /* this thread may have been counted as ready for more than one job */
    pthread_mutex_unlock(&mine->lock);
    work_on(job, (seat + 1) % job->width, mine);
    pthread_mutex_lock(&mine->lock);
    add_active(mine, -1u);
    if (mine->waiting)
      pthread_cond_broadcast(&mine->done);
    /* The last of this job: its caller may return, and the job with it. */
    __atomic_sub_fetch(&job->workers, 1, __ATOMIC_RELEASE);
  }
  mine->seats[seat] = false;
  --mine->threads;
  pthread_mutex_unlock(&mine->lock);
  return NULL;
}

unsigned mgpu_host_pool_width(void) {
  cpu_set_t sets[8] = {0}; /* one is of 1024 processors; Linux refuses fewer than it may have */
  int width = sched_getaffinity(0, sizeof sets, sets) == 0 ? CPU_COUNT_S(sizeof sets, sets) : 0;
  return width > 0 ? (unsigned)width : 1;
}

static struct pool *make(void) {
  unsigned wanted = mgpu_host_pool_width() - 1;
  struct pool *made = calloc(1, sizeof *made + wanted * sizeof *made->seats);
  if (!made)
    return NULL;
  made->wanted = wanted;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->work, &attributes);
  pthread_cond_init(&made->done, NULL);
  pthread_condattr_destroy(&attributes);
  return made;
}

/* Under the pool's lock: as many threads as `useful` of a job can use. Fewer only take longer. */
static void hire(struct pool *to, uint64_t useful) {
  unsigned free_threads = to->spinning + to->sleeping, room = to->wanted - to->threads;
  uint64_t missing = useful > free_threads ? useful - free_threads : 0;
  unsigned goal = to->threads + (missing < room ? (unsigned)missing : room);
  if (to->threads >= goal || to->active > to->wanted)
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

/* Returns when no thread of the pool is inside the job, which has left the list. */
static void wait_for_workers(struct pool *in, struct job *job) {
  uint64_t end = mgpu_trace_now() + SPIN_NS;
  while (__atomic_load_n(&job->workers, __ATOMIC_ACQUIRE) && mgpu_trace_now() < end)
    pause_a_little();
  if (!__atomic_load_n(&job->workers, __ATOMIC_ACQUIRE))
    return;
  pthread_mutex_lock(&in->lock);
  ++in->waiting;
  while (__atomic_load_n(&job->workers, __ATOMIC_ACQUIRE))
    pthread_cond_wait(&in->done, &in->lock);
  --in->waiting;
  pthread_mutex_unlock(&in->lock);
}

/* A job of `total`, for so many threads. */
static void lay_out(struct job *job, uint64_t total, unsigned threads) {
  /* The last bounds for how long blocks still run after one has failed. */
  enum { MOST_CHUNKS = 64, FEWEST_CHUNKS = 8, MOST_PER_CHUNK = 1 << 16 };
  unsigned useful = threads < total ? threads : (unsigned)total;
  job->helpers = useful - 1;
  job->width = useful < MOST_LANES ? useful : MOST_LANES;
  uint64_t part = total / job->width, longer = total % job->width, begin = 0;
  uint64_t least = part / MOST_CHUNKS, most = part / FEWEST_CHUNKS;
  job->most = !most ? 1 : most < MOST_PER_CHUNK ? most : MOST_PER_CHUNK;
  job->least = !least ? 1 : least < job->most ? least : job->most;
  job->link = NULL;
  job->taken = job->failure = 0;
  job->workers = 0;
  for (unsigned i = 0; i < job->width; ++i) {
    uint64_t end = begin + part + (i < longer);
    job->lanes[i] = (struct lane){begin, end};
    begin = end;
  }
}

int mgpu_host_pool_run(uint64_t total, unsigned threads, mgpu_host_part *part, void *context,
                       struct mgpu_host_share *mine) {
  struct pool *now = total > 1 && threads > 1 ? get() : NULL;
  uint64_t begin = mine ? mgpu_trace_now() : 0;
  if (!now || now->wanted == 0) {
    int failure = part(context, 0, total);
    if (mine)
      *mine = (struct mgpu_host_share){total, mgpu_trace_now() - begin};
    return failure;
  }
  struct job job;
  lay_out(&job, total, threads <= now->wanted ? threads : now->wanted + 1);
  job.part = part;
  job.context = context;

  pthread_mutex_lock(&now->lock);
  struct job **place = &now->jobs;
  while (*place)
    place = &(*place)->link;
  *place = &job;
  add_active(now, 1);
  hire(now, job.helpers);
  wake(now, job.helpers);
  __atomic_store_n(&now->posted, now->posted + 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&now->lock);

  begin = mine ? mgpu_trace_now() : 0;
  uint64_t count = work_on(&job, 0, NULL);
  if (mine)
    *mine = (struct mgpu_host_share){count, mgpu_trace_now() - begin};

  pthread_mutex_lock(&now->lock);
  for (place = &now->jobs; *place != &job;)
    place = &(*place)->link;
  *place = job.link;
  add_active(now, -1u);
  if (find_work(now))
    wake(now, 1);
  pthread_mutex_unlock(&now->lock);
  wait_for_workers(now, &job);
  return __atomic_load_n(&job.failure, __ATOMIC_RELAXED);
}
