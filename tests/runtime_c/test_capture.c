/* test_capture.c: work that goes into a graph while its stream is captured. The stand-ins refuse, and print,
 * what might wait or allocate then; with a trace none of it is for the trace's sake. */
#include "core/handle.h"
#include "standins.h"

static struct container images;
static mgpuModuleSlot module = {NULL, NULL, "m", NULL};
static mgpuKernelSlot kernel = {&module, "kernel", NULL};

static void launch(void *stream) {
  int argument = 42;
  void *params[] = {&argument};
  mgpuKernelLaunch(&kernel, 2, 1, 1, 32, 1, 1, 0, 0, 0, 0, stream, params, 1, 0);
  CHECK_CLEAN();
}

/* What has nothing to do with the graph goes on: an array that a thread makes and drops, say. */
static void apart(void *stream) {
  int64_t in[8] = {1, 2, 3}, out[8] = {0};
  void *own = mgpuStreamCreate();
  for (int shared = 0; shared < 2; ++shared) {
    void *memory = mgpuMemAlloc(sizeof in, NULL, shared);
    mgpuMemcpy(memory, in, sizeof in, own);
    mgpuStreamSynchronize(own);
    mgpuMemcpy(out, memory, sizeof in, stream);
    mgpuStreamSynchronize(stream);
    CHECK(out[2] == 3, "the copy is there");
    mgpuMemFree(memory, own);
  }
  mgpuMemHostRegister(in, sizeof in);
  mgpuMemHostUnregister(in);
  mgpuStreamDestroy(own);
  CHECK_CLEAN();
}

void test_capture(const char *backend) {
  bool hip = strcmp(backend, "hip") == 0;
  struct standin driver = standin_open(hip ? "libamdhip64.so.6" : "libcuda.so.1");
  int (*capture)(const void *stream);
  *(void **)&capture = dlsym(driver.library, "standin_capture");
  unsigned char elf[128];
  size_t size = fake_elf(elf, hip ? 224 : 190, "image");
  container_add_image(&images, hip ? "rocdl" : "nvvm", hip ? "gfx942" : "sm_90", "bin", "m", elf, size);
  module.images_begin = images.data;
  module.images_end = images.data + images.size;
  CHECK(mgpuBackendUse(backend) == 0, "the stand-in driver");
  void *stream = mgpuStreamCreate(), *other = mgpuStreamCreate(), *event = mgpuEventCreate();
  const void *captured = mgpu_handle_of(stream)->driver;

  capture(captured);
  CHECK(mgpuStreamCapturing(stream) && !mgpuStreamCapturing(other), "one is captured");
  launch(stream); /* the first of all */
  launch(stream);
  launch(other);
  mgpuEventRecord(event, other);
  mgpuEventSynchronize(event); /* what has run by then is told to a trace */
  apart(other);
  launch(stream);
  mgpuStreamSynchronize(stream); /* which is refused */
  CHECK(mgpuGetLastError() != 0, "a captured stream is not waited for");
  CHECK(capture(NULL) == 3, "the graph has them");
  launch(stream);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  mgpuStreamDestroy(other);
  mgpuEventDestroy(event);
  CHECK_CLEAN();
}
