/* fork.c: the lock of the slow paths, and what happens to the runtime in the child of a fork. */
#include "core/backend.h"
#include "core/handle.h"
#include "host/memory.h"
#include "host/schedule.h"
#include "host/turns.h"
#include "trace/trace.h"
#include "vendor/vendor.h"

#include <pthread.h>

/* A lock, and the thread that has it for itself: 0, which is no thread's, where none has. */
struct owned {
  pthread_mutex_t lock;
  pthread_t owner; /* atomic */
};

static struct owned slow = {PTHREAD_MUTEX_INITIALIZER, 0}, init = {PTHREAD_MUTEX_INITIALIZER, 0};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void own(struct owned *owned) {
  pthread_mutex_lock(&owned->lock);
  __atomic_store_n(&owned->owner, pthread_self(), __ATOMIC_RELAXED);
}

static void disown(struct owned *owned) {
  __atomic_store_n(&owned->owner, (pthread_t)0, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&owned->lock);
}

/* Only the thread itself makes it the owner, so that nothing else has to be seen in time. */
static bool is_own(const struct owned *owned) {
  pthread_t owner = __atomic_load_n(&owned->owner, __ATOMIC_RELAXED);
  return owner && pthread_equal(owner, pthread_self());
}

void mgpu_lock(void) { own(&slow); }

void mgpu_unlock(void) { disown(&slow); }

void mgpu_init_lock(void) { own(&init); }

void mgpu_init_unlock(void) { disown(&init); }

/* A driver that is being started may fork itself, to run a program that loads its kernel module. The child
 * does nothing else, and this thread has the locks. */
static bool is_of_a_driver(void) { return is_own(&slow) || is_own(&init); }

/* The locks are taken over the fork, so that the child sees no half-made change. */
static void before(void) {
  if (is_of_a_driver())
    return;
  pthread_mutex_lock(&slow.lock);
  mgpu_trace_lock(); /* before the next: tracing may be what a driver is first used for */
  pthread_mutex_lock(&init.lock);
  mgpu_handles_lock();
  mgpu_host_schedule_lock();
  mgpu_host_turns_lock();
  mgpu_host_memory_lock();
  mgpu_vendor_names_lock();
}

static void give_back(void) {
  mgpu_vendor_names_unlock();
  mgpu_host_memory_unlock();
  mgpu_host_turns_unlock();
  mgpu_host_schedule_unlock();
  mgpu_handles_unlock();
  pthread_mutex_unlock(&init.lock);
  mgpu_trace_unlock();
  pthread_mutex_unlock(&slow.lock);
}

static void in_parent(void) {
  if (!is_of_a_driver())
    give_back();
}

static void in_child(void) {
  if (is_of_a_driver())
    return;
  mgpu_host_schedule_in_child();
  mgpu_host_turns_in_child();
  mgpu_trace_in_child();
  give_back();
  for (int i = 0; i < MGPU_BACKENDS; ++i)
    mgpu_backends[i]->after_fork();
}

#ifdef __GLIBC__
/* glibc keeps pthread_atfork out of libc.so.6, in an archive of its development package; this is what it
 * calls. Artifacts are linked on machines without that package. The last argument names the library whose
 * unloading ends the registration; artifacts are never unloaded. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
static void watch(void) { __register_atfork(before, in_parent, in_child, &slow); }
#else
static void watch(void) { pthread_atfork(before, in_parent, in_child); }
#endif

/* A fork during another thread's first use has the child begin again. */
static void begin(void) {
  static bool watched;
  if (!watched) {
    watched = true;
    watch();
  }
  mgpu_trace_start();
}

void mgpu_first_use(void) { pthread_once(&once, begin); }
