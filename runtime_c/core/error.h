/* error.h: the calling thread's kept error. Every function here is safe in any thread and touches only the
 * calling thread's state. */
#ifndef MGPU_INTERNAL_ERROR_H
#define MGPU_INTERNAL_ERROR_H

#include "mgpu.h"

/* Keeps `code` and the formatted sentence, unless an error is already kept (the first one wins). Messages
 * longer than 1 KiB are cut with "...". Returns `code`, which is never MGPU_SUCCESS. */
int mgpu_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The kept code, or MGPU_SUCCESS. A function that would touch a device returns at once when it is not 0. */
int mgpu_pending(void);

/* Keeps an error where OFFLOAD_PRINT_ERRORS has a value that means nothing, and returns its code; else 0. */
int mgpu_error_setting_problem(void);

/* When the thread or the process ends: writes its kept error to stderr, if there is one and the program has
 * never asked for any. What stock MLIR lowers to never does, and a run under mlir-runner would end as if all
 * had gone well. */
struct mgpu_thread;
void mgpu_error_tell(const struct mgpu_thread *thread);

/* A text that is built piece by piece into a fixed buffer; it is always terminated and is cut when full. */
struct mgpu_text {
  char *data;
  size_t size; /* of the buffer, at least 1 */
  size_t used; /* without the terminator */
};

void mgpu_text_add(struct mgpu_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds numbers with commas between them. */
void mgpu_text_sizes(struct mgpu_text *text, int64_t count, const int64_t *sizes);

#endif
