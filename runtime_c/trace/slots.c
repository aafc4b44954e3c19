/* slots.c: the slots that trace: each calls the backend's own and notes what it was, when the calling
 * thread was inside, and when the work ran. */
#include "trace/slots.h"

#include "trace/call.h"

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
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "module", "load module");
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"image\":\"%s\"", size, kinds[mgpu_image_blob(data, size)]);
  mgpu_trace_call_start(&call, NULL);
  int failure = mgpu_trace_call_stop(
      &call, mgpu_untraced[backend]->module_load(device, data, size, jit_level, &module->driver));
  if (failure)
    free(module);
  else
    *out = module;
  return failure;
}

int mgpu_traced_module_unload(int backend, int device, void *pointer) {
  struct module *module = pointer;
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "module", "unload module");
  mgpu_trace_call_start(&call, NULL);
  int failure = mgpu_trace_call_stop(&call, mgpu_untraced[backend]->module_unload(device, module->driver));
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
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "launch", "launch ");
  mgpu_text_add(&call.name, "%s", kernel->name);
  mgpu_trace_call_on_stream(&call, launch->stream);
  mgpu_text_add(&call.detail, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"dynamic_memory\":%u", grid[0],
                grid[1], grid[2], block[0], block[1], block[2], launch->smem);
  if (cluster[0])
    mgpu_text_add(&call.detail, ",\"cluster\":[%u,%u,%u]", cluster[0], cluster[1], cluster[2]);
  mgpu_trace_call_start(&call, kernel->name);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->launch(device, kernel->driver, launch));
}

/* A question: no work, and no line of the trace. */
int mgpu_traced_occupancy(int backend, int device, void *pointer, uint32_t smem, int *threads, int *blocks) {
  const struct kernel *kernel = pointer;
  return mgpu_untraced[backend]->occupancy(device, kernel->driver, smem, threads, blocks);
}

int mgpu_traced_stream_sync(int backend, int device, void *stream) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "wait", "wait for stream");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_trace_call_start(&call, NULL);
  int failure = mgpu_trace_call_stop(&call, mgpu_untraced[backend]->stream_sync(device, stream));
  mgpu_trace_collect(backend, device);
  return failure;
}

int mgpu_traced_event_sync(int backend, int device, void *event) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "wait", "wait for event");
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  mgpu_trace_call_start(&call, NULL);
  int failure = mgpu_trace_call_stop(&call, mgpu_untraced[backend]->event_sync(device, event));
  mgpu_trace_collect(backend, device);
  return failure;
}

int mgpu_traced_event_record(int backend, int device, void *event, void *stream) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "order", "record event");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  mgpu_trace_call_start(&call, NULL);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->event_record(device, event, stream));
}

int mgpu_traced_stream_wait_event(int backend, int device, void *stream, void *event) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "order", "stream waits for event");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"event\":\"%p\"", event);
  mgpu_trace_call_start(&call, NULL);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->stream_wait_event(device, stream, event));
}

int mgpu_traced_alloc(int backend, int device, size_t size, void *stream, bool shared, void **memory) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "memory", "allocate");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"shared\":%s", size, shared ? "true" : "false");
  mgpu_trace_call_start(&call, NULL);
  int failure = mgpu_untraced[backend]->alloc(device, size, stream, shared, memory);
  if (!failure)
    mgpu_text_add(&call.detail, ",\"address\":\"%p\"", *memory);
  return mgpu_trace_call_stop(&call, failure);
}

int mgpu_traced_free(int backend, int device, void *memory, void *stream, bool shared) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "memory", "free");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  mgpu_trace_call_start(&call, NULL);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->free(device, memory, stream, shared));
}

int mgpu_traced_memcpy(int backend, int device, void *to, const void *from, size_t size, void *stream) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "copy", "copy");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"to\":\"%p\",\"from\":\"%p\"", size, to, from);
  mgpu_trace_call_start(&call, "copy");
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->memcpy(device, to, from, size, stream));
}

int mgpu_traced_memcpy2d(int backend, int device, void *to, size_t to_pitch, const void *from,
                         ptrdiff_t from_pitch, size_t width, size_t height, void *stream) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "copy", "copy rows");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(
      &call.detail,
      ",\"bytes\":%zu,\"rows\":%zu,\"to\":\"%p\",\"to_pitch\":%zu,\"from\":\"%p\",\"from_pitch\":%td",
      width * height, height, to, to_pitch, from, from_pitch);
  mgpu_trace_call_start(&call, "copy rows");
  return mgpu_trace_call_stop(
      &call, mgpu_untraced[backend]->memcpy2d(device, to, to_pitch, from, from_pitch, width, height, stream));
}

int mgpu_traced_memset(int backend, int device, void *to, uint64_t value, unsigned width, size_t count,
                       void *stream) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "set", "set");
  mgpu_trace_call_on_stream(&call, stream);
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"element_bytes\":%u,\"to\":\"%p\"", width * count, width, to);
  mgpu_trace_call_start(&call, "set");
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->memset(device, to, value, width, count, stream));
}

int mgpu_traced_host_register(int backend, int device, void *memory, size_t size) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "memory", "register");
  mgpu_text_add(&call.detail, ",\"bytes\":%zu,\"address\":\"%p\"", size, memory);
  mgpu_trace_call_start(&call, NULL);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->host_register(device, memory, size));
}

int mgpu_traced_host_unregister(int backend, int device, void *memory) {
  struct mgpu_trace_call call;
  mgpu_trace_call_describe(&call, backend, device, "memory", "unregister");
  mgpu_text_add(&call.detail, ",\"address\":\"%p\"", memory);
  mgpu_trace_call_start(&call, NULL);
  return mgpu_trace_call_stop(&call, mgpu_untraced[backend]->host_unregister(device, memory));
}
