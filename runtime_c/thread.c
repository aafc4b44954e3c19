/* thread.c: the calling thread's state and its end. A thread-specific key and not a thread-local variable: an
 * artifact then needs nothing of the dynamic loader, and a key has the end of the thread with it. */
#include "thread.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_failure;
static struct mgpu_thread none = {.error = MGPU_ERROR_MEMORY,
                                  .message = "Out of memory for this thread's state."};

static void at_end(void *pointer) {
  struct mgpu_thread *thread = pointer;
  for (int backend = 0; backend < MGPU_BACKENDS; ++backend) {
    struct mgpu_handle **own = thread->own[backend];
    for (int device = 0; own && device < MGPU_MAX_DEVICES; ++device)
      if (own[device])
        mgpu_handle_put(own[device]);
    free(own);
  }
  if (thread->scratch)
    thread->scratch_free(thread->scratch);
  free(thread);
}

static void make_key(void) { key_failure = pthread_key_create(&key, at_end); }

static struct mgpu_thread *make(void) {
  struct mgpu_thread *thread = key_failure ? NULL : calloc(1, sizeof *thread);
  if (thread && pthread_setspecific(key, thread)) {
    free(thread);
    thread = NULL;
  }
  return thread ? thread : &none;
}

struct mgpu_thread *mgpu_thread(void) {
  pthread_once(&once, make_key);
  struct mgpu_thread *thread = key_failure ? NULL : pthread_getspecific(key);
  return thread ? thread : make();
}
