/* table.c: replaces the table of backends by one whose slots trace. Slots that are not traced stay the
 * backend's. */
#include "sparse/sparse.h"
#include "trace/slots.h"
#include "trace/trace.h"

const struct mgpu_backend *mgpu_untraced[MGPU_BACKENDS];
static struct mgpu_backend traced[MGPU_BACKENDS];
static struct mgpu_sparse_ops sparse[MGPU_BACKENDS];

#define DEFINE(name, slot, parameters, values)                                                               \
  static int name##_##slot(int device, MGPU_UNWRAP parameters) {                                             \
    return mgpu_traced_##slot(MGPU_BACKEND_##name, device, MGPU_UNWRAP values);                              \
  }
#define REPLACE(name, slot, parameters, values) traced[MGPU_BACKEND_##name].slot = name##_##slot;

#define MGPU_BACKEND(name)                                                                                   \
  MGPU_TRACED_SLOTS(DEFINE, name)                                                                            \
  static void wrap_##name(void) {                                                                            \
    mgpu_untraced[MGPU_BACKEND_##name] = mgpu_backends[MGPU_BACKEND_##name];                                 \
    traced[MGPU_BACKEND_##name] = *mgpu_backends[MGPU_BACKEND_##name];                                       \
    MGPU_TRACED_SLOTS(REPLACE, name)                                                                         \
    mgpu_traced_sparse(MGPU_BACKEND_##name, &sparse[MGPU_BACKEND_##name]);                                   \
    traced[MGPU_BACKEND_##name].sparse = &sparse[MGPU_BACKEND_##name];                                       \
    mgpu_backends[MGPU_BACKEND_##name] = &traced[MGPU_BACKEND_##name];                                       \
  }
#include "core/backends.def"
#undef MGPU_BACKEND

void mgpu_trace_wrap(void) {
  if (mgpu_untraced[0]) /* before the fork that this process is the child of */
    return;
#define MGPU_BACKEND(name) wrap_##name();
#include "core/backends.def"
#undef MGPU_BACKEND
}
