/* test_late_driver.c: a driver that fails at first and works later, as one does whose service is still
 * starting. */
#include "standins.h"

#include <pthread.h>

static const char *backend;

static void *count(void *unused) {
  (void)unused;
  mgpuDeviceInfo info;
  for (int i = 0; i < 200; ++i)
    if (mgpuDeviceCount(backend) == 0 && mgpuDeviceGetInfo(backend, 0, &info))
      CHECK_ERROR(MGPU_ERROR_NO_DEVICE, "has no device here");
  return NULL;
}

static void expect(int code, const char *part) {
  CHECK(mgpuBackendUse(backend) == MGPU_ERROR_NO_DEVICE, "none yet");
  CHECK_ERROR(MGPU_ERROR_NO_DEVICE, part);
  char number[16];
  snprintf(number, sizeof number, "(%d)", code);
  CHECK_TEXT(mgpuGetLastErrorMessage(), number);
}

void test_late_driver(const char *name) {
  enum { NO_DEVICE = 100, NOT_READY = 802, UNKNOWN = 999, DEVICES = 2 };
  struct standin driver = standin_open(strcmp(name, "cuda") == 0 ? "libcuda.so.1" : "libamdhip64.so.6");
  backend = name;
  driver.fail(UNKNOWN);
  CHECK(mgpuDeviceCount(name) == 0, "it fails");
  CHECK_CLEAN();
  driver.fail(NOT_READY);
  expect(NOT_READY, "it is asked again the next time, but may need a new process");
  driver.fail(UNKNOWN);
  expect(UNKNOWN, "it is asked again the next time");
  driver.fail(NO_DEVICE);
  expect(NO_DEVICE, "Init.");
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    pthread_create(&threads[i], NULL, count, NULL);
  driver.fail(0);
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  CHECK(mgpuDeviceCount(name) == DEVICES && mgpuBackendUse(name) == 0, "it is there");
  CHECK_CLEAN();
}
