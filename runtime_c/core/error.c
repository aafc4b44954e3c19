/* error.c: keeps the first error of each thread until it is fetched. */
#include "core/error.h"

#include "core/thread.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the user asked for: errors on stderr or not, or what means neither. Read once. */
enum { UNKNOWN, NO, YES, WRONG };
static const char variable[] = "OFFLOAD_PRINT_ERRORS";
static int setting(void) {
  static atomic_int known = UNKNOWN;
  int answer = atomic_load_explicit(&known, memory_order_relaxed);
  if (answer == UNKNOWN) {
    const char *text = getenv(variable);
    bool off = !text || !*text || strcmp(text, "0") == 0;
    answer = off ? NO : strcmp(text, "1") == 0 ? YES : WRONG;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
  }
  return answer;
}

static bool printed(void) { return setting() == YES; }

int mgpu_error_setting_problem(void) {
  if (setting() != WRONG)
    return 0;
  const char *text = getenv(variable);
  return mgpu_fail(MGPU_ERROR_INVALID, "The environment variable %s is \"%s\", which should be 0 or 1.",
                   variable, text ? text : "");
}

static atomic_bool asked; /* has the program ever asked for errors? */

void mgpu_error_tell(const struct mgpu_thread *thread) {
  if (thread->error != MGPU_SUCCESS && !printed() && !atomic_load_explicit(&asked, memory_order_relaxed))
    fprintf(stderr, "offload: an error that the program did not ask about: %s\n", thread->message);
}

static void at_exit(void *unused) {
  (void)unused;
  mgpu_error_tell(mgpu_thread());
}

/* As in trace/trace.c, the C library's atexit. Threads that end before the process tell at their end. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void watch_exit(void) { __cxa_atexit(at_exit, NULL, &once); }

int mgpu_fail(int code, const char *format, ...) {
  struct mgpu_thread *thread = mgpu_thread();
  if (thread->error != MGPU_SUCCESS)
    return code;
  pthread_once(&once, watch_exit);
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(thread->message, sizeof thread->message, format, arguments);
  va_end(arguments);
  if (length < 0)
    strcpy(thread->message, "The error's message could not be formatted.");
  else if ((size_t)length >= sizeof thread->message)
    memcpy(thread->message + sizeof thread->message - 4, "...", 4);
  thread->error = code;
  if (printed())
    fprintf(stderr, "offload: error: %s\n", thread->message);
  return code;
}

int mgpu_pending(void) { return mgpu_thread()->error; }

int32_t mgpuGetLastError(void) {
  if (!atomic_load_explicit(&asked, memory_order_relaxed)) /* else its cache line stays shared */
    atomic_store_explicit(&asked, true, memory_order_relaxed);
  struct mgpu_thread *thread = mgpu_thread();
  int code = thread->error;
  thread->error = MGPU_SUCCESS;
  return code;
}

const char *mgpuGetLastErrorMessage(void) { return mgpu_thread()->message; }

void mgpuErrorExchange(mgpuKeptError *error) {
  if (!error) {
    mgpu_fail(MGPU_ERROR_INVALID, "mgpuErrorExchange needs an error to exchange.");
    return;
  }
  struct mgpu_thread *thread = mgpu_thread();
  const int code = thread->error;
  /* Mostly there is none, and its message nobody's. */
  if (code || error->code) {
    char message[MGPU_MESSAGE_BYTES];
    memcpy(message, thread->message, sizeof message);
    memcpy(thread->message, error->message, sizeof thread->message);
    memcpy(error->message, message, sizeof error->message);
  }
  thread->error = error->code;
  error->code = code;
}

void mgpu_text_add(struct mgpu_text *text, const char *format, ...) {
  if (text->used + 1 >= text->size)
    return;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text->data + text->used, text->size - text->used, format, arguments);
  va_end(arguments);
  if (length > 0)
    text->used += (size_t)length;
  if (text->used >= text->size)
    text->used = text->size - 1;
}

void mgpu_text_sizes(struct mgpu_text *text, int64_t count, const int64_t *sizes) {
  for (int64_t i = 0; i < count; ++i)
    mgpu_text_add(text, i ? ", %lld" : "%lld", (long long)sizes[i]);
}
