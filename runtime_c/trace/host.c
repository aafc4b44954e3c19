/* host.c: when work ran on the CPU: what host/schedule.c has put off says so itself, and the threads
 * that run a kernel's blocks have them in their lanes. */
#include "core/thread.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

struct mgpu_trace_work {
  int backend, device;
  void *stream;
  struct mgpu_trace_event event; /* its texts follow; the category is static */
  char texts[];
};

void mgpu_trace_host_put(int backend, int device, void *stream, const struct mgpu_trace_event *event) {
  size_t name = strlen(event->name) + 1, detail = strlen(event->detail) + 1;
  struct mgpu_trace_work *work = malloc(sizeof *work + name + detail);
  if (!work)
    return;
  *work = (struct mgpu_trace_work){.backend = backend, .device = device, .stream = stream, .event = *event};
  work->event.name = memcpy(work->texts, event->name, name);
  work->event.detail = memcpy(work->texts + name, event->detail, detail);
  mgpu_thread()->work = work;
}

struct mgpu_trace_work *mgpu_trace_host_take(void) {
  struct mgpu_thread *thread = mgpu_thread();
  struct mgpu_trace_work *work = thread->work;
  thread->work = NULL;
  return work;
}

bool mgpu_trace_host_back(void) {
  struct mgpu_trace_work *work = mgpu_trace_host_take();
  free(work);
  return work != NULL;
}

void mgpu_trace_host_ran(struct mgpu_trace_work *work, uint64_t begin) {
  mgpu_trace_add_device(work->backend, work->device, work->stream, &work->event, begin, mgpu_trace_now());
  free(work);
}

void mgpu_trace_host_blocks(const char *kernel, uint64_t first, uint64_t last, uint64_t begin) {
  char detail[96];
  struct mgpu_text text = {detail, sizeof detail, 0};
  mgpu_text_add(&text, "\"first_block\":%llu,\"blocks\":%llu", (unsigned long long)first,
                (unsigned long long)(last - first));
  mgpu_trace_name_thread(true);
  mgpu_trace_add(&(struct mgpu_trace_event){kernel, "blocks", detail}, begin, mgpu_trace_now(), false);
}
