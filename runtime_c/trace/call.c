/* call.c: notes what a call of a backend was, when the calling thread was inside, and when the work ran. */
#include "trace/call.h"

#include "host/schedule.h"
#include "trace/slots.h"

void mgpu_trace_call_describe(struct mgpu_trace_call *call, int backend, int device, const char *category,
                              const char *name) {
  static uint64_t number; /* atomic; the same in the events of one call */
  call->backend = backend;
  call->device = device;
  call->stream = NULL;
  call->work = NULL;
  call->put_off = false;
  call->mark = NULL;
  call->category = category;
  call->name = (struct mgpu_text){call->name_bytes, sizeof call->name_bytes, 0};
  call->detail = (struct mgpu_text){call->detail_bytes, sizeof call->detail_bytes, 0};
  mgpu_text_add(&call->name, "%s", name);
  mgpu_text_add(&call->detail, "\"call\":%llu,\"device\":\"%s:%d\"",
                (unsigned long long)__atomic_add_fetch(&number, 1, __ATOMIC_RELAXED),
                mgpu_untraced[backend]->name, device);
}

void mgpu_trace_call_on_stream(struct mgpu_trace_call *call, void *stream) {
  call->stream = stream;
  mgpu_text_add(&call->detail, ",\"stream\":\"%p\"", stream);
}

static struct mgpu_trace_event work_of(const struct mgpu_trace_call *call) {
  return (struct mgpu_trace_event){call->work, "work", call->detail.data};
}

static void begin(struct mgpu_trace_call *call, const char *work, bool put_off) {
  call->work = work;
  struct mgpu_trace_event event = work_of(call);
  call->put_off = put_off;
  if (call->put_off)
    mgpu_trace_host_put(call->backend, call->device, call->stream, &event);
  else if (work && mgpu_untraced[call->backend]->mark_create)
    call->mark = mgpu_trace_mark(call->backend, call->device, call->stream);
  call->outer = mgpu_thread()->times;
  mgpu_thread()->times = (struct mgpu_turn_times){0, 0};
  mgpu_trace_name_thread(false); /* before it runs blocks of a kernel, as threads of the pool do */
  call->begin = mgpu_trace_now();
}

void mgpu_trace_call_start(struct mgpu_trace_call *call, const char *work) {
  begin(call, work, work && mgpu_untraced[call->backend]->is_cpu && mgpu_host_schedule_on());
}

void mgpu_trace_call_start_at_once(struct mgpu_trace_call *call, const char *work) {
  begin(call, work, false);
}

int mgpu_trace_call_stop(struct mgpu_trace_call *call, int failure) {
  uint64_t end = mgpu_trace_now();
  struct mgpu_trace_event work = work_of(call);
  /* The work ran in the thread's turn, for which it may have waited. */
  struct mgpu_turn_times ran = mgpu_thread()->times;
  mgpu_thread()->times = call->outer;
  if (call->put_off)
    mgpu_trace_host_back();
  else if (call->work && mgpu_untraced[call->backend]->is_cpu && !failure)
    mgpu_trace_add_device(call->backend, call->device, call->stream, &work,
                          ran.began ? ran.began : call->begin, ran.ended ? ran.ended : end);
  mgpu_trace_finish(call->backend, call->device, call->stream, call->mark, failure ? NULL : &work);
  if (failure)
    mgpu_text_add(&call->detail, ",\"error\":%d", failure);
  struct mgpu_trace_event event = {call->name.data, call->category, call->detail.data};
  mgpu_trace_add(&event, call->begin, end, true);
  return failure;
}
