/* test_error.c: kept errors, and calls that are wrong whatever the backend. */
#include "check.h"
#include "core/error.h"

#include <pthread.h>

static void *other_thread(void *unused) {
  (void)unused;
  CHECK_CLEAN();
  mgpu_fail(MGPU_ERROR_MEMORY, "Another thread's.");
  CHECK_ERROR(MGPU_ERROR_MEMORY, "Another thread's.");
  return NULL;
}

void test_error(void) {
  CHECK_CLEAN();
  CHECK(mgpu_fail(MGPU_ERROR_INVALID, "The %s.", "first") == MGPU_ERROR_INVALID, "code");
  mgpu_fail(MGPU_ERROR_DRIVER, "The second.");
  CHECK(mgpuMemAlloc(16, NULL, false) == NULL, "a call after an error does nothing");
  CHECK(mgpuStreamCreate() == NULL && mgpuBackendName() == NULL, "so do these");
  pthread_t thread;
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "The first.");
  CHECK_CLEAN();
  CHECK_TEXT(mgpuGetLastErrorMessage(), "The first."); /* readable until the next one */

  /* Put aside, an error hinders nobody, and is not replaced. */
  mgpuKeptError aside = {0};
  mgpu_fail(MGPU_ERROR_DRIVER, "The program's.");
  mgpuErrorExchange(&aside);
  CHECK(aside.code == MGPU_ERROR_DRIVER && !mgpu_pending(), "it is aside");
  CHECK_TEXT(aside.message, "The program's.");
  mgpu_fail(MGPU_ERROR_MEMORY, "In between.");
  mgpuErrorExchange(&aside);
  CHECK(aside.code == MGPU_ERROR_MEMORY, "what failed in between");
  CHECK_TEXT(aside.message, "In between.");
  CHECK_ERROR(MGPU_ERROR_DRIVER, "The program's.");
  mgpuErrorExchange(NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs an error");

  char longer[3000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  mgpu_fail(MGPU_ERROR_INVALID, "%s", longer);
  CHECK(strlen(mgpuGetLastErrorMessage()) == 1023, "%zu", strlen(mgpuGetLastErrorMessage()));
  CHECK_ERROR(MGPU_ERROR_INVALID, "x...");

  CHECK(offload_api(MGPU_ABI_VERSION + 1) == NULL, "another version");
  const mgpuApi *api = offload_api(MGPU_ABI_VERSION);
  CHECK(api && api->size == sizeof(mgpuApi) && api->mgpuGetLastError == mgpuGetLastError, "the table");

  mgpuKernelLaunch(NULL, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its kernel");
  mgpuModuleSlot module = {NULL, NULL, "module", NULL};
  mgpuKernelSlot of_no_module = {NULL, "kernel", NULL}, nameless = {&module, NULL, NULL};
  mgpuKernelLaunch(&of_no_module, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its module");
  mgpuKernelLaunch(&nameless, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its name");
  CHECK(mgpuSharedGlobal(NULL) == NULL, "no global");
  CHECK_ERROR(MGPU_ERROR_INVALID, "the slot of a global");
  int32_t threads = 0, blocks = 0;
  CHECK(mgpuKernelOccupancy(NULL, 0, &threads, &blocks) == MGPU_ERROR_INVALID, "no kernel");
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its kernel");
  CHECK(mgpuKernelOccupancy(NULL, 0, NULL, &blocks) == MGPU_ERROR_INVALID, "no place");
  CHECK_ERROR(MGPU_ERROR_INVALID, "places for its answers");
  CHECK(mgpuScopeStream(NULL) == NULL, "no scope");
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a scope");
  mgpuScopeEnd(NULL);
  CHECK_CLEAN();

  CHECK(mgpuBackendUse("vulkan") == MGPU_ERROR_INVALID, "an unknown backend");
  CHECK_ERROR(MGPU_ERROR_INVALID, "vulkan");
  CHECK(mgpuDeviceCount("vulkan") == 0 && mgpuDeviceCount(NULL) == 0, "never an error");
  CHECK_CLEAN();
  mgpuDeviceInfo info;
  CHECK(mgpuDeviceGetInfo("host", 5, &info) == MGPU_ERROR_INVALID, "no such device");
  CHECK_ERROR(MGPU_ERROR_INVALID, "device 5");
  CHECK(mgpuModuleLoad("\1\2\3\4", 4) == NULL, "no image");
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "image");
  CHECK(mgpuModuleLoad("func.func @f() { return }", 25) == NULL, "text that is no PTX");
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "it is text without the directive .version");
  CHECK(mgpuModuleLoad(".version 8.0", SIZE_MAX) == NULL, "an image larger than memory");
  CHECK_ERROR(MGPU_ERROR_INVALID, "its size in bytes; it has 18446744073709551615");
  CHECK(mgpuModuleLoadJIT("", 3) == NULL, "no text");
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs the text");
}
