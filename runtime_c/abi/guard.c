/* guard.c: how a failed assertion of host code, or memory that is not there, reaches the caller as an error.
 *
 * The entry point of a function that may fail so (compiled code, see host/assert.cpp) enters a guard and
 * calls setjmp on its buffer; the failure keeps its error and jumps there. What compiled code leaves behind
 * on the way is given back here: its stream scopes, which the thread knows, and the memory and operands that
 * it made under this guard, which bear the guard's number. An inner guard that was left in order has handed
 * out what it made. */
#include "abi/guard.h"

#include "abi/stream.h"
#include "core/allocations.h"
#include "core/error.h"
#include "core/thread.h"
#include "sparse/sparse.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

struct guard {
  jmp_buf buffer;
  struct guard *previous;
  mgpuScope *scopes;
  uint64_t number;
};

_Static_assert(sizeof(struct guard) <= MGPU_GUARD_BYTES, "compiled code makes room for a guard");

/* Each thread has numbers of its own. */
static uint64_t next_number(struct mgpu_thread *thread) {
  enum { BITS = 40 };
  static uint64_t threads; /* atomic */
  if (!thread->guards)
    thread->guards = (__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) << BITS) + 1;
  return thread->guards++;
}

void *mgpuGuardEnter(void *memory) {
  struct mgpu_thread *thread = mgpu_thread();
  struct guard *guard = memory;
  guard->number = next_number(thread);
  guard->previous = thread->guard;
  guard->scopes = thread->scopes;
  thread->guard = guard;
  return guard->buffer;
}

void mgpuGuardLeave(void *memory) { mgpu_thread()->guard = ((struct guard *)memory)->previous; }

uint64_t mgpu_guard_number(void) {
  const struct guard *guard = mgpu_thread()->guard;
  return guard ? guard->number : 0;
}

/* Gives back the operands and the memory of a guard once the work of the thread's stream that uses them has
 * ended; that of its scopes has. */
static void give_back(const struct guard *guard) {
  enum { AT_ONCE = 64 };
  const void *memory[AT_ONCE];
  size_t count = mgpu_allocations_under(guard->number, memory, AT_ONCE);
  if (!count && !mgpu_sparse_count())
    return;
  struct mgpu_place place;
  if (mgpu_stream_place(NULL, &place) == 0)
    mgpu_backends[place.backend]->stream_sync(place.device, place.driver);
  mgpu_sparse_destroy_under(guard->number);
  for (; count; count = mgpu_allocations_under(guard->number, memory, AT_ONCE))
    for (size_t i = 0; i < count; ++i)
      mgpuMemFree((void *)(uintptr_t)memory[i], NULL);
}

/* Out of all functions of the program that are running, with what they had given back. */
static _Noreturn void leave(struct mgpu_thread *thread) {
  struct guard *guard = thread->guard;
  mgpuWaitForLater();
  mgpu_scopes_finish(
      guard->scopes); /* the caller may free what it has given as soon as it hears of the failure */
  give_back(guard);
  while (thread->scopes != guard->scopes)
    mgpuScopeEnd(thread->scopes);
  thread->guard = guard->previous;
  longjmp(guard->buffer, 1);
}

void mgpu_leave(void) {
  struct mgpu_thread *thread = mgpu_thread();
  if (thread->guard)
    leave(thread);
}

void mgpuCheckAllocation(const void *memory, uint64_t bytes) {
  struct mgpu_thread *thread = mgpu_thread();
  if (!memory && bytes && thread->guard && mgpu_pending())
    leave(thread);
}

/* Called from C, past the entry point, it ends as the C library's assert does. */
static _Noreturn void fail(const char *place, const char *words, const char *message, const char *sizes) {
  struct mgpu_thread *thread = mgpu_thread();
  mgpuWaitForLater(); /* first: if a kernel has failed, an entry point with a guard tells that */
  if (!thread->guard) {
    fprintf(stderr, "%s: %s%s%s\n", place, words, message, sizes);
    abort();
  }
  mgpu_fail(MGPU_ERROR_ASSERT, "%s: %s%s%s.", place, words, message, sizes);
  leave(thread);
}

_Noreturn void mgpuAssertFail(const char *message, const char *place) {
  fail(place, "assertion failed: ", message, "");
}

_Noreturn void mgpuSizesFail(const char *message, const char *place, int64_t first, int64_t second) {
  char sizes[64];
  snprintf(sizes, sizeof sizes, ": %lld and %lld", (long long)first, (long long)second);
  fail(place, "", message, sizes);
}
