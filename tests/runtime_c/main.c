/* main.c: runs one group of tests per process, because the backend in use belongs to the process.
 *   mgpu_test image | error | unasked ASKS | keys | host IMAGE.so ARTIFACT.so | schedule IMAGE.so |
 * schedule_env CODE | cuda | hip | capture BACKEND | tensor | sparse | cuda_sparse | hip_sparse | old_sparse
 * | unknown_order | late_driver BACKEND | no_sparse BACKEND TYPE PART | absent | env NAME CODE | hammer
 * BACKEND IMAGE.so ROUNDS | soak BACKEND IMAGE.so ARTIFACT.so LAUNCHES.
 * host and schedule want STANDIN_DEVICES=0, hammer 4; all but image, absent and env want the stand-ins in
 * LD_LIBRARY_PATH: no_sparse those of the drivers alone, old_sparse with an old hipSPARSE. */
#include "check.h"

#include <pthread.h>

/* Whatever this machine has: counting devices is never an error. Tests look at what is printed: nothing. */
static void test_absent(void) {
  CHECK(mgpuDeviceCount("cuda") >= 0 && mgpuDeviceCount("hip") >= 0 && mgpuDeviceCount("host") == 1,
        "devices");
  CHECK_CLEAN();
  CHECK(mgpuBackendName() != NULL, "some backend");
}

/* OFFLOAD_BACKEND as the caller has set it: the backend's name, or an error whose message has the text. */
static void test_environment(const char *wanted, int code) {
  const char *name = mgpuBackendName();
  if (code == MGPU_SUCCESS)
    CHECK(name && strcmp(name, wanted) == 0, "%s", name ? name : "no backend");
  else
    CHECK_ERROR(code, wanted);
}

/* What a process with more artifacts than thread-specific keys sees: the same. */
static void test_keys(void) {
  pthread_key_t key;
  while (pthread_key_create(&key, NULL) == 0)
    ;
  test_error();
  test_cuda();
}

static void *fail_in_thread(void *unused) {
  (void)unused;
  mgpuMemset32(NULL, 0, 4, NULL);
  return NULL;
}

/* Leaves errors that nobody asks about, as programs that stock MLIR lowered; `asks`: but for the first. */
static void test_unasked(bool asks) {
  pthread_t thread;
  pthread_create(&thread, NULL, fail_in_thread, NULL);
  pthread_join(thread, NULL);
  if (asks)
    mgpuGetLastError();
  mgpuBackendUse("metal");
}

int main(int count, char **arguments) {
  const char *group = count > 1 ? arguments[1] : "";
  if (strcmp(group, "image") == 0)
    test_image();
  else if (strcmp(group, "error") == 0)
    test_error();
  else if (strcmp(group, "unasked") == 0 && count == 3)
    test_unasked(atoi(arguments[2]) != 0);
  else if (strcmp(group, "keys") == 0)
    test_keys();
  else if (strcmp(group, "host") == 0 && count == 4)
    test_host(arguments[2], arguments[3]);
  else if (strcmp(group, "schedule") == 0 && count == 3)
    test_schedule(arguments[2]);
  else if (strcmp(group, "schedule_env") == 0 && count == 3)
    test_schedule_environment(atoi(arguments[2]));
  else if (strcmp(group, "cuda") == 0)
    test_cuda();
  else if (strcmp(group, "hip") == 0)
    test_hip();
  else if (strcmp(group, "capture") == 0 && count == 3)
    test_capture(arguments[2]);
  else if (strcmp(group, "tensor") == 0)
    test_tensor();
  else if (strcmp(group, "sparse") == 0)
    test_sparse();
  else if (strcmp(group, "cuda_sparse") == 0)
    test_cuda_sparse();
  else if (strcmp(group, "hip_sparse") == 0)
    test_hip_sparse();
  else if (strcmp(group, "old_sparse") == 0)
    test_old_sparse();
  else if (strcmp(group, "unknown_order") == 0)
    test_unknown_order();
  else if (strcmp(group, "no_sparse") == 0 && count == 5)
    test_no_sparse(arguments[2], atoi(arguments[3]), arguments[4]);
  else if (strcmp(group, "late_driver") == 0 && count == 3)
    test_late_driver(arguments[2]);
  else if (strcmp(group, "absent") == 0)
    test_absent();
  else if (strcmp(group, "env") == 0 && count == 4)
    test_environment(arguments[2], atoi(arguments[3]));
  else if (strcmp(group, "hammer") == 0 && count == 5)
    hammer(arguments[2], arguments[3], atol(arguments[4]));
  else if (strcmp(group, "soak") == 0 && count == 6)
    soak(arguments[2], arguments[3], arguments[4], atol(arguments[5]));
  else
    return 2;
  return 0;
}
