/* check_fork.c: what the child of a fork may do with what its parent got from a driver: give it back. */
#include "check.h"
#include "vendor/vendor.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_child(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %#x", (unsigned)status);
}

static char registered[64];

/* In the child a thread that has no stream of its own, and makes none, gives back what is its parent's. */
static void *fork_and_release(void *memory) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mgpuMemFree(memory, NULL);
    CHECK_CLEAN();
    mgpuMemHostUnregister(registered);
    CHECK_CLEAN();
    mgpuMemHostUnregister(registered); /* nobody's any more */
    CHECK_CLEAN();
    _exit(0);
  }
  check_child(child);
  return NULL;
}

static void test_fork_in_a_thread(void) {
  enum { MORE_THAN_ARE_POOLED = 65 };
  pthread_t thread;
  void *memory = mgpuMemAlloc(8, NULL, false), *held[MORE_THAN_ARE_POOLED];
  for (int i = 0; i < MORE_THAN_ARE_POOLED; ++i)
    held[i] = mgpuStreamCreate();
  mgpuMemHostRegister(registered, sizeof registered);
  pthread_create(&thread, NULL, fork_and_release, memory);
  pthread_join(thread, NULL);
  for (int i = 0; i < MORE_THAN_ARE_POOLED; ++i)
    mgpuStreamDestroy(held[i]);
  mgpuMemFree(memory, NULL);
  mgpuMemHostUnregister(registered);
  CHECK_CLEAN();
}

static void *hold_names(void *held) {
  mgpu_vendor_names_lock();
  __atomic_store_n((int *)held, 1, __ATOMIC_RELEASE);
  usleep(50000);
  mgpu_vendor_names_unlock();
  return NULL;
}

/* Another thread may be reading the name of a kernel: the child can forget it all the same. */
static void test_fork_with_a_name(void) {
  char ptx[] = ".version 8.0\n.target sm_90";
  void *raw = mgpuModuleLoadJIT(ptx, 3);
  CHECK(raw && mgpuModuleGetFunction(raw, "kernel"), "a kernel");
  pthread_t thread;
  int held = 0;
  pthread_create(&thread, NULL, hold_names, &held);
  pthread_detach(thread); /* the child cannot join it */
  while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
    usleep(1000);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mgpuModuleUnload(raw);
    CHECK_CLEAN();
    _exit(0);
  }
  check_child(child);
  mgpuModuleUnload(raw);
  CHECK_CLEAN();
}

static void test_fork(mgpuKernelSlot *kernel) {
  int argument = 42;
  void *params[] = {&argument}, *memory = mgpuMemAlloc(8, NULL, false);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    mgpuMemFree(memory, NULL); /* its parent's: nothing to do here */
    CHECK_CLEAN();
    mgpuKernelLaunch(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, NULL, params, 1, 1);
    CHECK_ERROR(MGPU_ERROR_DRIVER, "forked after CUDA had been used");
    CHECK(mgpuMemAlloc(8, NULL, false) == NULL, "no memory either");
    CHECK_ERROR(MGPU_ERROR_DRIVER, "forked");
    CHECK(mgpuBackendUse("host") == 0 && mgpuMemAlloc(8, NULL, false), "the host still works");
    _exit(0);
  }
  check_child(child);
  mgpuMemFree(memory, NULL);
  CHECK_CLEAN();
}

void check_fork(mgpuKernelSlot *kernel) {
  test_fork_in_a_thread();
  test_fork_with_a_name();
  test_fork(kernel);
}
