/* call.h: one traced call of a backend: from mgpu_trace_call_describe to mgpu_trace_call_stop, in one thread.
 */
#ifndef MGPU_INTERNAL_TRACE_CALL_H
#define MGPU_INTERNAL_TRACE_CALL_H

#include "core/thread.h"
#include "trace/trace.h"

/* A call of a slot. */
struct mgpu_trace_call {
  int backend, device;
  void *stream;
  const char *work; /* what it puts on the stream, whose own time is of interest; or NULL */
  bool put_off;     /* the work is the CPU's and runs later */
  void *mark;
  uint64_t begin;
  struct mgpu_turn_times outer; /* of the launch whose block has made this call */
  const char *category;
  struct mgpu_text name, detail;
  char name_bytes[256], detail_bytes[768];
};

/* `category` lives for ever, `name` is copied. */
void mgpu_trace_call_describe(struct mgpu_trace_call *call, int backend, int device, const char *category,
                              const char *name);
void mgpu_trace_call_on_stream(struct mgpu_trace_call *call, void *stream);
/* The clock starts. `work` (NULL: none) is what the call puts on its stream; it lives until the stop. */
void mgpu_trace_call_start(struct mgpu_trace_call *call, const char *work);
/* The same for work that the CPU has done when the call returns, even where other work is put off. */
void mgpu_trace_call_start_at_once(struct mgpu_trace_call *call, const char *work);
/* The clock stops. Returns `failure`. */
int mgpu_trace_call_stop(struct mgpu_trace_call *call, int failure);

#endif
