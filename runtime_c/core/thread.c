/* thread.c: the calling thread's state and its end. A thread-specific key and not a thread-local variable: an
 * artifact then needs nothing of the dynamic loader, and a key has the end of the thread with it.
 *
 * A process has PTHREAD_KEYS_MAX keys, 1024 with glibc, and each artifact takes one for good. Whoever
 * compiles and tries a thousand kernels would leave none to others, and OpenMP and most C++ extensions of
 * Python end without one: artifacts take the first quarter alone. One that gets none finds its threads in a
 * list by their pthread_t: what a thread that has ended held goes when another one has its pthread_t. */
#include "core/thread.h"

#include "core/error.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_failure;
static struct mgpu_thread none = {.error = MGPU_ERROR_MEMORY,
                                  .message = "Out of memory for this thread's state."};

static void at_end(void *pointer) {
  struct mgpu_thread *thread = pointer;
  mgpu_error_tell(thread);
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

/* Keys are numbers from 0, and the lowest free one is given. */
static void make_key(void) {
  key_failure = pthread_key_create(&key, at_end);
  if (!key_failure && key >= PTHREAD_KEYS_MAX / 4) {
    pthread_key_delete(key);
    key_failure = EAGAIN;
  }
}

static struct mgpu_thread *make(void) {
  struct mgpu_thread *thread = calloc(1, sizeof *thread);
  if (thread && !key_failure && pthread_setspecific(key, thread)) {
    free(thread);
    thread = NULL;
  }
  return thread;
}

/* A thread of the list. Its number is the system's, by which it is told from one that has ended: that one's
 * pthread_t, which is an address, comes again. The child of a fork has its parent's thread under another
 * number. */
struct listing {
  pthread_t owner;
  long number, process;
  struct mgpu_thread *thread;
  struct listing *next;
};

/* The state of a listing's owner, which the calling thread is. */
static struct mgpu_thread *owned(struct listing *own) {
  long number = syscall(SYS_gettid);
  if (own->number != number) {
    long process = getpid();
    bool is_forked = own->process != process && number == process;
    struct mgpu_thread *ended = is_forked ? NULL : own->thread;
    own->number = number;
    own->process = process;
    if (ended) {
      own->thread = NULL; /* what goes may ask for the calling thread's */
      at_end(ended);
    }
  }
  if (!own->thread)
    own->thread = make();
  return own->thread;
}

static struct mgpu_thread *listed(void) {
  static struct listing *first;
  pthread_t self = pthread_self();
  for (struct listing *at = __atomic_load_n(&first, __ATOMIC_ACQUIRE); at; at = at->next)
    if (pthread_equal(at->owner, self))
      return owned(at);
  struct listing *made = calloc(1, sizeof *made);
  if (!made)
    return NULL;
  *made =
      (struct listing){self, syscall(SYS_gettid), getpid(), NULL, __atomic_load_n(&first, __ATOMIC_RELAXED)};
  while (!__atomic_compare_exchange_n(&first, &made->next, made, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    ;
  return owned(made);
}

struct mgpu_thread *mgpu_thread(void) {
  pthread_once(&once, make_key);
  struct mgpu_thread *thread = key_failure ? listed() : pthread_getspecific(key);
  if (!thread && !key_failure)
    thread = make();
  return thread ? thread : &none;
}

bool mgpu_thread_has(const void *stream) {
  const struct mgpu_thread *thread = mgpu_thread();
  const struct mgpu_handle *set = thread->stream ? mgpu_handle_of(thread->stream) : NULL;
  bool found = thread->stream && stream == (set ? set->driver : thread->stream);
  for (int backend = 0; backend < MGPU_BACKENDS && !found; ++backend)
    for (int device = 0; thread->own[backend] && device < MGPU_MAX_DEVICES && !found; ++device)
      found = thread->own[backend][device] && thread->own[backend][device]->driver == stream;
  return found;
}
