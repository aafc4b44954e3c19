/* guard.c: how a failed assertion of host code, or memory that is not there, reaches the caller as an error.
 *
 * The entry point of a function that may fail so (compiled code, see host/assert.cpp) enters a guard and
 * calls setjmp on its buffer; the failure keeps its error and jumps there. Compiled code has nothing to clean
 * up on the way but its stream scopes, which the thread knows. */
#include "core/error.h"
#include "core/thread.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

struct guard {
  jmp_buf buffer;
  struct guard *previous;
  mgpuScope *scopes;
};

_Static_assert(sizeof(struct guard) <= MGPU_GUARD_BYTES, "compiled code makes room for a guard");

void *mgpuGuardEnter(void *memory) {
  struct mgpu_thread *thread = mgpu_thread();
  struct guard *guard = memory;
  guard->previous = thread->guard;
  guard->scopes = thread->scopes;
  thread->guard = guard;
  return guard->buffer;
}

void mgpuGuardLeave(void *memory) { mgpu_thread()->guard = ((struct guard *)memory)->previous; }

/* Out of all functions of the program that are running, with their streams given back. */
static _Noreturn void leave(struct mgpu_thread *thread) {
  struct guard *guard = thread->guard;
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

_Noreturn void mgpuAssertFail(const char *message, const char *place) {
  struct mgpu_thread *thread = mgpu_thread();
  struct guard *guard = thread->guard;
  if (!guard) { /* called from C, past the entry point: as the C library's assert */
    fprintf(stderr, "%s: assertion failed: %s\n", place, message);
    abort();
  }
  mgpu_fail(MGPU_ERROR_ASSERT, "%s: assertion failed: %s.", place, message);
  leave(thread);
}
