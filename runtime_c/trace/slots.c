/* slots.c: the slots that trace: each calls the backend's own and notes what it was, when the calling
 * thread was inside, and when the work ran. */
#include "trace/slots.h"

#include "host/schedule.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

/* What the backends' modules and kernels are in the traced table, so that kernels have their names. */
struct kernel {
  struct kernel *next;
  void *driver;
  char name[];
};

struct module {
  void *driver;
  struct kernel *kernels; /* under mgpu_lock */
};

/* A call of a slot. */
struct call {
  int backend, device;
  void *stream;
  const char *work; /* what it puts on the stream, whose own time is of interest; or NULL */
  bool put_off;     /* the work is the CPU's and runs later */
  void *mark;
  uint64_t begin;
  const char *category;
  struct mgpu_text name, detail;
  char name_bytes[256], detail_bytes[768];
};

static void describe(struct call *call, int backend, int device, const char *category, const char *name) {
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

static void on_stream(struct call *call, void *stream) {
  call->stream = stream;
  mgpu_text_add(&call->detail, ",\"stream\":\"%p\"", stream);
}

static struct mgpu_trace_event work_of(const struct call *call) {
  return (struct mgpu_trace_event){call->work, "work", call->detail.data};
}

/* The clock starts. */
static void start(struct call *call, const char *work) {
  call->work = work;
  struct mgpu_trace_event event = work_of(call);
  call->put_off = work && mgpu_untraced[call->backend]->is_cpu && mgpu_host_schedule_on();
  if (call->put_off)
    mgpu_trace_host_put(call->backend, call->device, call->stream, &event);
  else if (work && mgpu_untraced[call->backend]->mark_create)
    call->mark = mgpu_trace_mark(call->backend, call->device, call->stream);
  mgpu_trace_name_thread(false); /* before it runs blocks of a kernel, as threads of the pool do */
  call->begin = mgpu_trace_now();
}

/* The clock stops. Returns `failure`. */
static int stop(struct call *call, int failure) {
  uint64_t end = mgpu_trace_now();
  struct mgpu_trace_event work = work_of(call);
  if (call->put_off)
    mgpu_trace_host_back();
  else if (call->work && mgpu_untraced[call->backend]->is_cpu && !failure)
    mgpu_trace_add_device(call->backend, call->device, call->stream, &work, call->begin, end);
  mgpu_trace_finish(call->backend, call->device, call->stream, call->mark, failure ? NULL : &work);
  if (failure)
    mgpu_text_add(&call->detail, ",\"error\":%d", failure);
  struct mgpu_trace_event event = {call->name.data, call->category, call->detail.data};
  mgpu_trace_add(&event, call->begin, end, true);
  return failure;
}

int mgpu_traced_module_load(int backend, int device, const void *data, size_t size, int jit_level,
                            void **out) {
  static const char *const kinds[] = {
      [MGPU_BLOB_UNKNOWN] = "unknown", [MGPU_BLOB_TEXT] = "text",     [MGPU_BLOB_CUDA_ELF] = "cubin",
      [MGPU_BLOB_CUDA_FAT] = "fatbin", [MGPU_BLOB_AMD_ELF] = "hsaco", [MGPU_BLOB_AMD_BUNDLE] = "bundle",
      [MGPU_BLOB_HOST_ELF] = "elf",
  };
  struct module *module = calloc(1, sizeof *module);
  if (!module)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a module.");
  struct call call;
  describe(&call, backend, device, "module", "load module");
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"image\":\"%s\"", size, kinds[mgpu_image_blob(data, size)]);
  start(&call, NULL);
  int failure =
      stop(&call, mgpu_untraced[backend]->module_load(device, data, size, jit_level, &module->driver));
  if (failure)
    free(module);
  else
    *out = module;
  return failure;
}

int mgpu_traced_module_unload(int backend, int device, void *pointer) {
  struct module *module = pointer;
  struct call call;
  describe(&call, backend, device, "module", "unload module");
  start(&call, NULL);
  int failure = stop(&call, mgpu_untraced[backend]->module_unload(device, module->driver));
  for (struct kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
  free(module);
  return failure;
}

int mgpu_traced_kernel_get(int backend, int device, void *pointer, const char *name, void **out) {
  struct module *module = pointer;
  size_t length = strlen(name) + 1;
  struct kernel *kernel = calloc(1, sizeof *kernel + length);
  if (!kernel)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
  memcpy(kernel->name, name, length);
  int failure = mgpu_untraced[backend]->kernel_get(device, module->driver, name, &kernel->driver);
  if (failure) {
    free(kernel);
    return failure;
  }
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out = kernel;
  return 0;
}

int mgpu_traced_launch(int backend, int device, void *pointer, const struct mgpu_launch *launch) {
  struct kernel *kernel = pointer;
  const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
  struct call call;
  describe(&call, backend, device, "launch", "launch ");
  mgpu_text_add(&call.name, "%s", kernel->name);
  on_stream(&call, launch->stream);
  mgpu_text_add(&call.detail, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"dynamic_memory\":%u", grid[0],
                grid[1], grid[2], block[0], block[1], block[2], launch->smem);
  if (cluster[0])
    mgpu_text_add(&call.detail, ",\"cluster\":[%u,%u,%u]", cluster[0], cluster[1], cluster[2]);
  start(&call, kernel->name);
  return stop(&call, mgpu_untraced[backend]->launch(device, kernel->driver, launch));
}

int mgpu_traced_stream_sync(int backend, int device, void *stream) {
  struct call call;
  describe(&call, backend, device, "wait", "wait for stream");
  on_stream(&call, stream);
  start(&call, NULL);
  int failure = stop(&call, mgpu_untraced[backend]->stream_sync(device, stream));
  mgpu_trace_collect(backend, device);
  return failure;
}

int mgpu_traced_event_sync(int backend, int device, void *event) {
  struct call call;
  describe(&call, backend, device, "wait", "wait for event");
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  int failure = stop(&call, mgpu_untraced[backend]->event_sync(device, event));
  mgpu_trace_collect(backend, device);
  return failure;
}

int mgpu_traced_event_record(int backend, int device, void *event, void *stream) {
  struct call call;
  describe(&call, backend, device, "order", "record event");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  return stop(&call, mgpu_untraced[backend]->event_record(device, event, stream));
}

int mgpu_traced_stream_wait_event(int backend, int device, void *stream, void *event) {
  struct call call;
  describe(&call, backend, device, "order", "stream waits for event");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  return stop(&call, mgpu_untraced[backend]->stream_wait_event(device, stream, event));
}

int mgpu_traced_alloc(int backend, int device, size_t size, void *stream, bool shared, void **memory) {
  struct call call;
  describe(&call, backend, device, "memory", "allocate");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"shared\":%s", size, shared ? "true" : "false");
  start(&call, NULL);
  int failure = mgpu_untraced[backend]->alloc(device, size, stream, shared, memory);
  if (!failure)
    mgpu_text_add(&call.detail, ",\"address\":\"%p\"", *memory);
  return stop(&call, failure);
}

int mgpu_traced_free(int backend, int device, void *memory, void *stream, bool shared) {
  struct call call;
  describe(&call, backend, device, "memory", "free");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  start(&call, NULL);
  return stop(&call, mgpu_untraced[backend]->free(device, memory, stream, shared));
}

int mgpu_traced_memcpy(int backend, int device, void *to, const void *from, size_t size, void *stream) {
  struct call call;
  describe(&call, backend, device, "copy", "copy");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"to\":\"%p\",\"from\":\"%p\"", size, to, from);
  start(&call, "copy");
  return stop(&call, mgpu_untraced[backend]->memcpy(device, to, from, size, stream));
}

int mgpu_traced_memcpy2d(int backend, int device, void *to, size_t to_pitch, const void *from,
                         size_t from_pitch, size_t width, size_t height, void *stream) {
  struct call call;
  describe(&call, backend, device, "copy", "copy rows");
  on_stream(&call, stream);
  mgpu_text_add(
      &call.detail,
      ",\"bytes\":%zu,\"rows\":%zu,\"to\":\"%p\",\"to_pitch\":%zu,\"from\":\"%p\",\"from_pitch\":%zu",
      width * height, height, to, to_pitch, from, from_pitch);
  start(&call, "copy rows");
  return stop(
      &call, mgpu_untraced[backend]->memcpy2d(device, to, to_pitch, from, from_pitch, width, height, stream));
}

int mgpu_traced_memset(int backend, int device, void *to, uint64_t value, unsigned width, size_t count,
                       void *stream) {
  struct call call;
  describe(&call, backend, device, "set", "set");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"element_bytes\":%u,\"to\":\"%p\"", width * count, width, to);
  start(&call, "set");
  return stop(&call, mgpu_untraced[backend]->memset(device, to, value, width, count, stream));
}

int mgpu_traced_host_register(int backend, int device, void *memory, size_t size) {
  struct call call;
  describe(&call, backend, device, "memory", "register");
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"address\":\"%p\"", size, memory);
  start(&call, NULL);
  return stop(&call, mgpu_untraced[backend]->host_register(device, memory, size));
}

int mgpu_traced_host_unregister(int backend, int device, void *memory) {
  struct call call;
  describe(&call, backend, device, "memory", "unregister");
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  start(&call, NULL);
  return stop(&call, mgpu_untraced[backend]->host_unregister(device, memory));
}
