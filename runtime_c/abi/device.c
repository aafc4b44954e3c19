/* device.c: what bindings ask about devices, and the calling thread's current one. */
#include "core/error.h"
#include "core/thread.h"

#include <string.h>

int32_t mgpuDeviceCount(const char *name) {
  mgpu_first_use();
  int backend = name ? mgpu_backend_find(name) : -1;
  return backend < 0 ? 0 : mgpu_backend_devices(backend);
}

int32_t mgpuDeviceGetInfo(const char *name, int32_t device, mgpuDeviceInfo *info) {
  if (mgpu_pending())
    return mgpu_pending();
  if (!name || !info)
    return mgpu_fail(MGPU_ERROR_INVALID,
                     "mgpuDeviceGetInfo needs a backend's name and a place for its answer.");
  mgpu_first_use();
  int backend = mgpu_backend_find(name);
  if (backend < 0)
    return mgpu_fail(MGPU_ERROR_INVALID, "The backend \"%s\" is unknown; known are cuda, hip and host.",
                     name);
  int count = mgpu_backend_devices(backend);
  if (count == 0)
    return mgpu_fail(MGPU_ERROR_NO_DEVICE, "The backend \"%s\" has no device here: %s.", name,
                     mgpu_backends[backend]->why_absent());
  if (device < 0 || device >= count)
    return mgpu_fail(MGPU_ERROR_INVALID, "There is no device %d; the backend \"%s\" has %d here.", device,
                     name, count);
  memset(info, 0, sizeof *info);
  return mgpu_backends[backend]->device_info(device, info);
}

void mgpuSetDefaultDevice(int32_t device) {
  if (mgpu_pending())
    return;
  int backend = mgpu_backend_active(NULL, NULL, NULL);
  if (backend < 0)
    return;
  int count = mgpu_backend_devices(backend);
  if (device < 0 || device >= count)
    mgpu_fail(MGPU_ERROR_INVALID, "There is no device %d; the backend \"%s\" has %d here.", device,
              mgpu_backends[backend]->name, count);
  else
    mgpu_thread()->device[backend] = device;
}

int32_t mgpuGetDefaultDevice(void) {
  if (mgpu_pending())
    return 0;
  int backend = mgpu_backend_active(NULL, NULL, NULL);
  return backend < 0 ? 0 : mgpu_thread()->device[backend];
}
