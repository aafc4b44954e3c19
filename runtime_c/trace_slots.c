/* trace_slots.c: the table of backends that traces: each slot calls the backend's own and notes what it was,
 * when the calling thread was inside, and when the work ran. */
#include "host_schedule.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* Artifacts carry this: there is one of each function, not one per backend. */
#define ONCE __attribute__((noinline))

static struct mgpu_backend traced[MGPU_BACKENDS];
static const struct mgpu_backend *plain[MGPU_BACKENDS];

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

ONCE static void describe(struct call *call, int backend, int device, const char *category,
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
                (unsigned long long)__atomic_add_fetch(&number, 1, __ATOMIC_RELAXED), plain[backend]->name,
                device);
}

static void on_stream(struct call *call, void *stream) {
  call->stream = stream;
  mgpu_text_add(&call->detail, ",\"stream\":\"%p\"", stream);
}

static struct mgpu_trace_event work_of(const struct call *call) {
  return (struct mgpu_trace_event){call->work, "work", call->detail.data};
}

/* The clock starts. */
ONCE static void start(struct call *call, const char *work) {
  call->work = work;
  struct mgpu_trace_event event = work_of(call);
  call->put_off = work && plain[call->backend]->is_cpu && mgpu_host_schedule_on();
  if (call->put_off)
    mgpu_trace_host_put(call->backend, call->device, call->stream, &event);
  else if (work && plain[call->backend]->mark_create)
    call->mark = mgpu_trace_mark(call->backend, call->device, call->stream);
  call->begin = mgpu_trace_now();
}

/* The clock stops. Returns `failure`. */
ONCE static int stop(struct call *call, int failure) {
  uint64_t end = mgpu_trace_now();
  struct mgpu_trace_event work = work_of(call);
  if (call->put_off)
    mgpu_trace_host_back();
  else if (call->work && plain[call->backend]->is_cpu && !failure)
    mgpu_trace_add_device(call->backend, call->device, call->stream, &work, call->begin, end);
  mgpu_trace_finish(call->backend, call->device, call->stream, call->mark, failure ? NULL : &work);
  if (failure)
    mgpu_text_add(&call->detail, ",\"error\":%d", failure);
  struct mgpu_trace_event event = {call->name.data, call->category, call->detail.data};
  mgpu_trace_add(&event, call->begin, end, true);
  return failure;
}

ONCE static int module_load(int backend, int device, const void *data, size_t size, int jit_level,
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
  int failure = stop(&call, plain[backend]->module_load(device, data, size, jit_level, &module->driver));
  if (failure)
    free(module);
  else
    *out = module;
  return failure;
}

ONCE static int module_unload(int backend, int device, void *pointer) {
  struct module *module = pointer;
  struct call call;
  describe(&call, backend, device, "module", "unload module");
  start(&call, NULL);
  int failure = stop(&call, plain[backend]->module_unload(device, module->driver));
  for (struct kernel *kernel = module->kernels, *next; kernel; kernel = next) {
    next = kernel->next;
    free(kernel);
  }
  free(module);
  return failure;
}

ONCE static int kernel_get(int backend, int device, void *pointer, const char *name, void **out) {
  struct module *module = pointer;
  size_t length = strlen(name) + 1;
  struct kernel *kernel = calloc(1, sizeof *kernel + length);
  if (!kernel)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for the kernel \"%s\".", name);
  memcpy(kernel->name, name, length);
  int failure = plain[backend]->kernel_get(device, module->driver, name, &kernel->driver);
  if (failure) {
    free(kernel);
    return failure;
  }
  kernel->next = module->kernels;
  module->kernels = kernel;
  *out = kernel;
  return 0;
}

ONCE static int launch(int backend, int device, void *pointer, const struct mgpu_launch *launch) {
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
  return stop(&call, plain[backend]->launch(device, kernel->driver, launch));
}

ONCE static int stream_sync(int backend, int device, void *stream) {
  struct call call;
  describe(&call, backend, device, "wait", "wait for stream");
  on_stream(&call, stream);
  start(&call, NULL);
  int failure = stop(&call, plain[backend]->stream_sync(device, stream));
  mgpu_trace_collect(backend, device);
  return failure;
}

ONCE static int event_sync(int backend, int device, void *event) {
  struct call call;
  describe(&call, backend, device, "wait", "wait for event");
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  int failure = stop(&call, plain[backend]->event_sync(device, event));
  mgpu_trace_collect(backend, device);
  return failure;
}

ONCE static int event_record(int backend, int device, void *event, void *stream) {
  struct call call;
  describe(&call, backend, device, "order", "record event");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  return stop(&call, plain[backend]->event_record(device, event, stream));
}

ONCE static int stream_wait_event(int backend, int device, void *stream, void *event) {
  struct call call;
  describe(&call, backend, device, "order", "stream waits for event");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  start(&call, NULL);
  return stop(&call, plain[backend]->stream_wait_event(device, stream, event));
}

ONCE static int alloc(int backend, int device, size_t size, void *stream, bool shared, void **memory) {
  struct call call;
  describe(&call, backend, device, "memory", "allocate");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"shared\":%s", size, shared ? "true" : "false");
  start(&call, NULL);
  int failure = plain[backend]->alloc(device, size, stream, shared, memory);
  if (!failure)
    mgpu_text_add(&call.detail, ",\"address\":\"%p\"", *memory);
  return stop(&call, failure);
}

ONCE static int release(int backend, int device, void *memory, void *stream, bool shared) {
  struct call call;
  describe(&call, backend, device, "memory", "free");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  start(&call, NULL);
  return stop(&call, plain[backend]->free(device, memory, stream, shared));
}

ONCE static int copy(int backend, int device, void *to, const void *from, size_t size, void *stream) {
  struct call call;
  describe(&call, backend, device, "copy", "copy");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"to\":\"%p\",\"from\":\"%p\"", size, to, from);
  start(&call, "copy");
  return stop(&call, plain[backend]->memcpy(device, to, from, size, stream));
}

ONCE static int copy_rows(int backend, int device, void *to, size_t to_pitch, const void *from,
                          size_t from_pitch, size_t width, size_t height, void *stream) {
  struct call call;
  describe(&call, backend, device, "copy", "copy rows");
  on_stream(&call, stream);
  mgpu_text_add(
      &call.detail,
      ",\"bytes\":%zu,\"rows\":%zu,\"to\":\"%p\",\"to_pitch\":%zu,\"from\":\"%p\",\"from_pitch\":%zu",
      width * height, height, to, to_pitch, from, from_pitch);
  start(&call, "copy rows");
  return stop(&call, plain[backend]->memcpy2d(device, to, to_pitch, from, from_pitch, width, height, stream));
}

ONCE static int fill(int backend, int device, void *to, uint64_t value, unsigned width, size_t count,
                     void *stream) {
  struct call call;
  describe(&call, backend, device, "set", "set");
  on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"element_bytes\":%u,\"to\":\"%p\"", width * count, width, to);
  start(&call, "set");
  return stop(&call, plain[backend]->memset(device, to, value, width, count, stream));
}

ONCE static int host_register(int backend, int device, void *memory, size_t size) {
  struct call call;
  describe(&call, backend, device, "memory", "register");
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"address\":\"%p\"", size, memory);
  start(&call, NULL);
  return stop(&call, plain[backend]->host_register(device, memory, size));
}

ONCE static int host_unregister(int backend, int device, void *memory) {
  struct call call;
  describe(&call, backend, device, "memory", "unregister");
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  start(&call, NULL);
  return stop(&call, plain[backend]->host_unregister(device, memory));
}

/* A slot has no place for its backend, so each backend has its own functions, which say it. */
#define SLOT(backend, slot, function, params, arguments)                                                     \
  static int backend##_##slot params { return function arguments; }
#define ALL_SLOTS(name, id)                                                                                  \
  SLOT(name, module_load, module_load, (int d, const void *data, size_t size, int level, void **out),        \
       (id, d, data, size, level, out))                                                                      \
  SLOT(name, module_unload, module_unload, (int d, void *module), (id, d, module))                           \
  SLOT(name, kernel_get, kernel_get, (int d, void *module, const char *kernel, void **out),                  \
       (id, d, module, kernel, out))                                                                         \
  SLOT(name, launch, launch, (int d, void *kernel, const struct mgpu_launch *how), (id, d, kernel, how))     \
  SLOT(name, stream_sync, stream_sync, (int d, void *stream), (id, d, stream))                               \
  SLOT(name, event_sync, event_sync, (int d, void *event), (id, d, event))                                   \
  SLOT(name, event_record, event_record, (int d, void *event, void *stream), (id, d, event, stream))         \
  SLOT(name, stream_wait_event, stream_wait_event, (int d, void *stream, void *event),                       \
       (id, d, stream, event))                                                                               \
  SLOT(name, alloc, alloc, (int d, size_t size, void *stream, bool shared, void **out),                      \
       (id, d, size, stream, shared, out))                                                                   \
  SLOT(name, free, release, (int d, void *memory, void *stream, bool shared),                                \
       (id, d, memory, stream, shared))                                                                      \
  SLOT(name, memcpy, copy, (int d, void *to, const void *from, size_t size, void *stream),                   \
       (id, d, to, from, size, stream))                                                                      \
  SLOT(name, memcpy2d, copy_rows,                                                                            \
       (int d, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,  \
        void *stream),                                                                                       \
       (id, d, to, to_pitch, from, from_pitch, width, height, stream))                                       \
  SLOT(name, memset, fill, (int d, void *to, uint64_t value, unsigned width, size_t count, void *stream),    \
       (id, d, to, value, width, count, stream))                                                             \
  SLOT(name, host_register, host_register, (int d, void *memory, size_t size), (id, d, memory, size))        \
  SLOT(name, host_unregister, host_unregister, (int d, void *memory), (id, d, memory))

#define MGPU_BACKEND(name) ALL_SLOTS(name, MGPU_BACKEND_##name)
#include "backends.def"
#undef MGPU_BACKEND

/* Slots that are not traced stay the backend's. */
#define REPLACE(name, slot) traced[MGPU_BACKEND_##name].slot = name##_##slot;
#define MGPU_BACKEND(name)                                                                                   \
  static void wrap_##name(void) {                                                                            \
    plain[MGPU_BACKEND_##name] = mgpu_backends[MGPU_BACKEND_##name];                                         \
    traced[MGPU_BACKEND_##name] = *plain[MGPU_BACKEND_##name];                                               \
    REPLACE(name, module_load)                                                                               \
    REPLACE(name, module_unload)                                                                             \
    REPLACE(name, kernel_get)                                                                                \
    REPLACE(name, launch)                                                                                    \
    REPLACE(name, stream_sync)                                                                               \
    REPLACE(name, event_sync)                                                                                \
    REPLACE(name, event_record)                                                                              \
    REPLACE(name, stream_wait_event)                                                                         \
    REPLACE(name, alloc)                                                                                     \
    REPLACE(name, free)                                                                                      \
    REPLACE(name, memcpy)                                                                                    \
    REPLACE(name, memcpy2d)                                                                                  \
    REPLACE(name, memset)                                                                                    \
    REPLACE(name, host_register)                                                                             \
    REPLACE(name, host_unregister)                                                                           \
    mgpu_backends[MGPU_BACKEND_##name] = &traced[MGPU_BACKEND_##name];                                       \
  }
#include "backends.def"
#undef MGPU_BACKEND

void mgpu_trace_wrap(void) {
#define MGPU_BACKEND(name) wrap_##name();
#include "backends.def"
#undef MGPU_BACKEND
}
