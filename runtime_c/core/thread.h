/* thread.h: what the runtime knows about the calling thread. */
#ifndef MGPU_INTERNAL_THREAD_H
#define MGPU_INTERNAL_THREAD_H

#include "core/backend.h"
#include "core/handle.h"

/* What compiled code has put on the thread's stream and waits for further on (MGPU_WAIT_LATER). */
enum { MGPU_UNWAITED_NAMES = 6 };
struct mgpu_unwaited {
  bool work;      /* there is any */
  unsigned named; /* of the first few kernels, each name once */
  const char *names[MGPU_UNWAITED_NAMES];
};

/* When the thread's last turn on a stream (host/turns.h) began and ended, by mgpu_trace_now, while there is a
 * trace; 0: not yet. */
struct mgpu_turn_times {
  uint64_t began, ended;
};

struct mgpu_thread {
  int error;                               /* the kept code */
  int device[MGPU_BACKENDS];               /* the current device */
  struct mgpu_handle **own[MGPU_BACKENDS]; /* own streams by device; NULL until the first */
  void *stream;                            /* mgpuSetThreadStream's, or NULL */
  void *scratch;                           /* the host backend's working memory, or NULL */
  void (*scratch_free)(void *scratch);
  uint64_t guards;              /* the next one's number (abi/guard.c); 0 before the first */
  struct guard *guard;          /* the innermost entry point that takes assertions (abi/guard.c), or NULL */
  struct mgpu_trace_work *work; /* what it is about to put on a stream (trace/host.c), or NULL */
  struct mgpu_unwaited unwaited;
  mgpuScope *scopes; /* the innermost scope that has streams, or NULL */
  const void *turn;  /* the turn (host/turns.h) of the launch whose blocks it runs, or NULL */
  struct mgpu_turn_times times;
  char *stack_end; /* the lowest address of its stack; NULL before it is asked for (sizes.c) */
  size_t stack_size;
  char message[MGPU_MESSAGE_BYTES]; /* of the last kept error */
};

/* The calling thread's state, made at first use; valid until the thread ends, for this thread alone. What it
 * holds is given back then. Never NULL: out of memory, it is one that has that error. */
struct mgpu_thread *mgpu_thread(void);

/* Whether calls of the calling thread that name no stream may mean that one, a driver's. */
bool mgpu_thread_has(const void *stream);

/* Out of the program that runs to its innermost entry point, which returns; comes back where there is none.
 */
void mgpu_leave(void);

#endif
