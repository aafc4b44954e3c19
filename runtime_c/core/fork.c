/* fork.c: the lock of the slow paths, and what happens to the runtime in the child of a fork. */
#include "core/backend.h"
#include "core/handle.h"
#include "host/memory.h"
#include "host/schedule.h"
#include "host/turns.h"
#include "trace/trace.h"
#include "vendor/vendor.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void mgpu_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_unlock(void) { pthread_mutex_unlock(&lock); }

void mgpu_init_lock(void) { pthread_mutex_lock(&init_lock); }

void mgpu_init_unlock(void) { pthread_mutex_unlock(&init_lock); }

/* The locks are taken over the fork, so that the child sees no half-made change. */
static void before(void) {
  mgpu_lock();
  mgpu_trace_lock(); /* before the next: tracing may be what a driver is first used for */
  mgpu_init_lock();
  mgpu_handles_lock();
  mgpu_host_schedule_lock();
  mgpu_host_turns_lock();
  mgpu_host_memory_lock();
  mgpu_vendor_names_lock();
}

static void in_parent(void) {
  mgpu_vendor_names_unlock();
  mgpu_host_memory_unlock();
  mgpu_host_turns_unlock();
  mgpu_host_schedule_unlock();
  mgpu_handles_unlock();
  mgpu_init_unlock();
  mgpu_trace_unlock();
  mgpu_unlock();
}

static void in_child(void) {
  mgpu_host_schedule_in_child();
  mgpu_host_turns_in_child();
  mgpu_trace_in_child();
  in_parent();
  for (int i = 0; i < MGPU_BACKENDS; ++i)
    mgpu_backends[i]->after_fork();
}

#ifdef __GLIBC__
/* glibc keeps pthread_atfork out of libc.so.6, in an archive of its development package; this is what it
 * calls. Artifacts are linked on machines without that package. The last argument names the library whose
 * unloading ends the registration; artifacts are never unloaded. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
static void watch(void) { __register_atfork(before, in_parent, in_child, &lock); }
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
