/* slots.h: the slots that are traced, once, and their functions. A slot of a backend does not say whose
 * it is; these take the backend first. */
#ifndef MGPU_INTERNAL_TRACE_SLOTS_H
#define MGPU_INTERNAL_TRACE_SLOTS_H

#include "core/backend.h"

/* The tables of the backends as they were. */
extern const struct mgpu_backend *mgpu_untraced[MGPU_BACKENDS];

/* DO(name, slot, parameters after the device, their names) for each. */
#define MGPU_TRACED_SLOTS(DO, name)                                                                          \
  DO(name, module_load, (const void *data, size_t size, int level, void **out), (data, size, level, out))    \
  DO(name, module_unload, (void *module), (module))                                                          \
  DO(name, kernel_get, (void *module, const char *kernel, void **out), (module, kernel, out))                \
  DO(name, launch, (void *kernel, const struct mgpu_launch *how), (kernel, how))                             \
  DO(name, occupancy, (void *kernel, uint32_t smem, int *threads, int *blocks),                              \
     (kernel, smem, threads, blocks))                                                                        \
  DO(name, stream_sync, (void *stream), (stream))                                                            \
  DO(name, event_sync, (void *event), (event))                                                               \
  DO(name, event_record, (void *event, void *stream), (event, stream))                                       \
  DO(name, stream_wait_event, (void *stream, void *event), (stream, event))                                  \
  DO(name, alloc, (size_t size, void *stream, bool shared, void **out), (size, stream, shared, out))         \
  DO(name, free, (void *memory, void *stream, bool shared), (memory, stream, shared))                        \
  DO(name, memcpy, (void *to, const void *from, size_t size, void *stream), (to, from, size, stream))        \
  DO(name, memcpy2d,                                                                                         \
     (void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch, size_t width, size_t height,        \
      void *stream),                                                                                         \
     (to, to_pitch, from, from_pitch, width, height, stream))                                                \
  DO(name, memset, (void *to, uint64_t value, unsigned width, size_t count, void *stream),                   \
     (to, value, width, count, stream))                                                                      \
  DO(name, host_register, (void *memory, size_t size), (memory, size))                                       \
  DO(name, host_unregister, (void *memory), (memory))

#define MGPU_UNWRAP(...) __VA_ARGS__

#define DECLARE(name, slot, parameters, values)                                                              \
  int mgpu_traced_##slot(int backend, int device, MGPU_UNWRAP parameters);
MGPU_TRACED_SLOTS(DECLARE, )
#undef DECLARE

/* trace/sparse.c: fills in the sparse operations of the traced table. */
struct mgpu_sparse_ops;
void mgpu_traced_sparse(int backend, struct mgpu_sparse_ops *ops);

#endif
