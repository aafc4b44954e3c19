/* sizes.c: memory that host code asks for and that cannot be: sizes below zero, more bytes than 64 bits
 * count, more than the stack of the thread has left. The error is kept and the program left (guard.c). */
#include "core/error.h"
#include "core/thread.h"

#include <pthread.h>

enum { STACK_RESERVE = 64 * 1024 }; /* for what runs on top: calls of the runtime and of drivers */

/* Bytes between here and the end of this thread's stack; INT64_MAX where the system does not say, or this is
 * another stack, as coroutines have. */
static int64_t stack_left(void) {
  struct mgpu_thread *thread = mgpu_thread();
  char here;
  if (!thread->stack_end) {
    pthread_attr_t attributes;
    void *start = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes))
      return INT64_MAX;
    if (pthread_attr_getstack(&attributes, &start, &size) == 0) {
      thread->stack_end = start;
      thread->stack_size = size;
    }
    pthread_attr_destroy(&attributes);
    if (!thread->stack_end)
      return INT64_MAX;
  }
  if ((uintptr_t)&here - (uintptr_t)thread->stack_end >= thread->stack_size)
    return INT64_MAX;
  int64_t left = (int64_t)(&here - thread->stack_end) - STACK_RESERVE;
  return left > 0 ? left : 0;
}

/* The bytes of an array; -1 for a size below zero or a product that does not fit. */
static int64_t array_bytes(int64_t rank, const int64_t *sizes, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  bool empty = false, fits = true;
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0)
      return -1;
    empty |= sizes[i] == 0;
    fits &= !__builtin_mul_overflow(bytes, sizes[i], &bytes);
  }
  return empty ? 0 : fits ? bytes : -1;
}

void mgpuCheckSizes(int64_t rank, const int64_t *sizes, int64_t elementBytes, bool onStack,
                    const char *place) {
  int64_t bytes = array_bytes(rank, sizes, elementBytes);
  int64_t left = onStack && bytes > 0 ? stack_left() : INT64_MAX;
  if (bytes >= 0 && bytes <= left)
    return;
  char words[200] = ""; /* which sizes of rank 0 leave so */
  struct mgpu_text shape = {words, sizeof words, 0};
  mgpu_text_sizes(&shape, rank, sizes);
  mgpuWaitForLater(); /* first: a kernel that has failed is what there is to tell */
  if (bytes < 0)
    mgpu_fail(MGPU_ERROR_MEMORY,
              "%s: an allocation of shape (%s) with elements of %lld bytes: sizes must not be negative, and "
              "the whole less than 2^63 bytes.",
              place, shape.data, (long long)elementBytes);
  else
    mgpu_fail(MGPU_ERROR_MEMORY,
              "%s: memref.alloca of shape (%s) takes %lld bytes, and the thread's stack has %lld left: use "
              "memref.alloc.",
              place, shape.data, (long long)bytes, (long long)left);
  mgpu_leave();
}

void mgpuCheckMemory(bool missing, const char *place) {
  if (!missing)
    return;
  mgpuWaitForLater();
  mgpu_fail(MGPU_ERROR_MEMORY, "%s: there is no memory for this allocation.", place);
  mgpu_leave();
}
