/* check_guard.c: what a function had made when an assertion of it failed, on the backend in use. */
#include "check.h"

#include <setjmp.h>

struct guarded {
  _Alignas(16) unsigned char room[MGPU_GUARD_BYTES];
};

enum { FIRST = MGPU_COUNT_STREAMS, LAST = MGPU_COUNT_OPERANDS };

static void count_all(int64_t counts[]) {
  for (int what = FIRST; what <= LAST; ++what)
    counts[what] = mgpuCount(what);
}

/* A failing function: memory of a stream, shared memory, both in use by work that nobody waits for, an
 * operand. */
static void fail_with_all(void) {
  mgpuScope scope = {0};
  void *stream = mgpuScopeStream(&scope);
  float *device = mgpuMemAlloc(4096, stream, false), *shared = mgpuMemAlloc(4096, NULL, true);
  mgpuMemset32(device, 1, 1024, stream);
  mgpuMemcpy(shared, device, 4096, stream);
  mgpuCreateDnVec(1024, device, 0, stream);
  mgpuAssertFail("it is so", "here");
}

static void call_failing(void) {
  struct guarded guard;
  if (setjmp(*(jmp_buf *)mgpuGuardEnter(guard.room)) == 0)
    fail_with_all();
  CHECK_ERROR(MGPU_ERROR_ASSERT, "here: assertion failed: it is so.");
}

static void call_with_sizes(void) {
  struct guarded guard;
  if (setjmp(*(jmp_buf *)mgpuGuardEnter(guard.room)) == 0)
    mgpuSizesFail("one has to be as long as the other", "here", 3, INT64_MIN);
  CHECK_ERROR(MGPU_ERROR_ASSERT, "here: one has to be as long as the other: 3 and -9223372036854775808.");
}

/* A function in order: what it returns is its caller's, also when that one fails. */
static void *call_returning(void) {
  struct guarded guard;
  if (setjmp(*(jmp_buf *)mgpuGuardEnter(guard.room)))
    return NULL;
  void *memory = mgpuMemAlloc(64, NULL, true);
  mgpuGuardLeave(guard.room);
  return memory;
}

static void *volatile returned;

static void call_both(void) {
  struct guarded guard;
  if (setjmp(*(jmp_buf *)mgpuGuardEnter(guard.room)) == 0) {
    returned = call_returning();
    fail_with_all();
  }
  CHECK_ERROR(MGPU_ERROR_ASSERT, "it is so");
}

void check_guard(void) {
  int64_t before[LAST + 1], after[LAST + 1];
  void *kept = mgpuMemAlloc(64, NULL, false);
  for (int i = 0; i < 10; ++i) /* until the pools are as full as they get */
    call_failing();
  count_all(before);
  for (int i = 0; i < 500; ++i)
    call_failing();
  count_all(after);
  for (int what = FIRST; what <= LAST; ++what)
    CHECK(before[what] == after[what], "count %d went from %lld to %lld", what, (long long)before[what],
          (long long)after[what]);
  call_with_sizes();
  call_both();
  CHECK(mgpuCount(MGPU_COUNT_ALLOCATIONS) == after[MGPU_COUNT_ALLOCATIONS] + 1, "what was returned stays");
  mgpuMemFree(returned, NULL);
  call_failing(); /* the same place on the stack, another guard */
  mgpuMemFree(kept, NULL);
  CHECK_CLEAN();
}
