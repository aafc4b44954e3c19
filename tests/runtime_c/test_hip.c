/* test_hip.c: hip/hip.c over the stand-in library. */
#include "core/backend.h"
#include "standins.h"

static struct standin hip;

static int rank(const char *arch) {
  unsigned char elf[128];
  struct mgpu_image image = {elf, fake_elf(elf, 224, "x"), "", arch, "rocdl", "", "", "", ""};
  return mgpu_backend_hip.image_rank(0, &image);
}

static void test_ranks(void) { /* the device is a gfx942:sramecc+:xnack- */
  CHECK(rank("gfx942:sramecc+:xnack-") > rank("gfx942:xnack-") && rank("gfx942:xnack-") > rank("gfx942"),
        "features");
  CHECK(rank("gfx942") > rank("gfx9-4-generic") && rank("gfx9-4-generic") > 0, "generic");
  CHECK(rank("gfx942:xnack+") == 0 && rank("gfx942:sramecc+:xnack+") == 0, "wrong feature");
  CHECK(rank("gfx90a") == 0 && rank("gfx94") == 0 && rank("gfx9421") == 0 && rank("gfx11-generic") == 0,
        "other chips");
  struct mgpu_image text = {"s_endpgm", 8, "", "gfx942", "rocdl", "", "isa", "", ""};
  CHECK(mgpu_backend_hip.image_rank(0, &text) == 0, "assembly");
}

static int earlier;

static int waits(void) {
  int count = -earlier;
  for (const char *at = hip.log(); (at = strstr(at, "sync ")); ++at)
    ++count;
  return count;
}

static void launch(mgpuKernelSlot *kernel, int blocks, int wait) {
  mgpuKernelLaunch(kernel, blocks, 1, 1, 64, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, wait);
}

/* Work whose wait is left for later: one wait for all of it, also after a failure. */
static void test_waits_left(mgpuKernelSlot *kernel, mgpuKernelSlot *missing) {
  earlier = waits();
  mgpuWaitForLater();
  launch(kernel, 1, MGPU_WAIT_LATER);
  void *memory = mgpuMemAllocLater(64), *shared = mgpuMemAlloc(64, NULL, true);
  launch(kernel, 0, MGPU_WAIT_LATER); /* nothing */
  launch(kernel, 1, MGPU_WAIT_LATER);
  mgpuMemFreeLater(memory);
  CHECK(memory && waits() == 0, "%d waits before it is time", waits());
  launch(kernel, 1, MGPU_WAIT);
  CHECK(waits() == 1, "%d waits", waits());
  mgpuWaitForLater();
  CHECK(waits() == 1, "nothing is left");
  launch(kernel, 1, MGPU_WAIT_LATER);
  mgpuMemFreeLater(shared); /* which may go before the kernel */
  CHECK(waits() == 2, "%d waits before shared memory goes", waits());
  mgpuWaitForLater();
  mgpuWaitForLater();
  CHECK(mgpuMemAllocLater(0) == NULL && waits() == 3, "%d waits after the last", waits());
  CHECK_CLEAN();
  launch(kernel, 1, MGPU_WAIT_LATER);
  launch(missing, 1, MGPU_WAIT_LATER); /* fails, and so does all that follows */
  CHECK(waits() == 3, "%d waits at the failure", waits());
  launch(kernel, 1, MGPU_WAIT);
  CHECK(waits() == 4, "%d waits after the failure", waits());
  launch(kernel, 1, MGPU_WAIT);
  mgpuStreamSynchronize(NULL);
  CHECK(waits() == 4, "%d waits for nothing", waits());
  CHECK_ERROR(MGPU_ERROR_DRIVER, "hipErrorNotFound");
  launch(kernel, 1, MGPU_WAIT_LATER);
  launch(missing, 1, MGPU_WAIT);
  CHECK(waits() == 5, "%d waits where the last one fails", waits());
  CHECK_ERROR(MGPU_ERROR_DRIVER, "hipErrorNotFound");
  launch(kernel, 1, MGPU_WAIT_LATER);
  mgpuCheckSizes(1, (int64_t[]){-1}, 4, false, "here"); /* nobody takes it; the caller goes on */
  CHECK(waits() == 6, "%d waits before a failure is told", waits());
  CHECK_ERROR(MGPU_ERROR_MEMORY, "here: an allocation of shape (-1)");
}

/* Whatever the calling thread's device is. */
static void test_marks(void) {
  mgpuSetDefaultDevice(1);
  void *stream = mgpuStreamCreate();
  mgpuSetDefaultDevice(0);
  CHECK(mgpuStreamDevice(stream) == 1 && mgpuStreamDevice(NULL) == 0, "where streams are");
  void *mark = mgpuStreamMark(stream), *event = mgpuEventCreate();
  CHECK(mark, "a mark on another device's stream");
  mgpuStreamWaitEvent(NULL, mark);
  mgpuEventSynchronize(mark);
  mgpuEventDestroy(mark);
  CHECK_CLEAN();
  mgpuEventRecord(event, stream);
  CHECK_ERROR(MGPU_ERROR_INVALID, "cannot be recorded on a stream of hip:1");
  mgpuEventDestroy(event);
  /* Whose another library's event is, only the driver knows. */
  int (*create_event)(void **, unsigned), (*destroy_event)(void *), (*set_device)(int), (*get_device)(int *);
  *(void **)&create_event = dlsym(hip.library, "hipEventCreateWithFlags");
  *(void **)&destroy_event = dlsym(hip.library, "hipEventDestroy");
  *(void **)&set_device = dlsym(hip.library, "hipSetDevice");
  *(void **)&get_device = dlsym(hip.library, "hipGetDevice");
  int before = 0;
  get_device(&before);
  set_device(1);
  create_event(&event, 2);
  set_device(before);
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(NULL, event);
  mgpuEventSynchronize(event);
  CHECK_CLEAN();
  destroy_event(event);
  mgpuStreamDestroy(stream);
}

/* A function's streams are of the device of the stream that it is called with, and behind what is there. */
static void test_scopes(void) {
  mgpuSetDefaultDevice(1);
  void *stream = mgpuStreamCreate();
  mgpuSetDefaultDevice(0);
  mgpuScope scope = {0, 0, NULL, {NULL}};
  mgpuSetThreadStream(stream);
  hip.clear();
  void *inside = mgpuScopeStream(&scope);
  CHECK(mgpuStreamDevice(inside) == 1, "on the device of the thread's stream");
  int event = 0, from = 0, waiter = 0, waited = 0;
  const char *recorded = strstr(hip.log(), "record "), *wait = strstr(hip.log(), "wait ");
  CHECK(recorded && sscanf(recorded, "record E%d S%d", &event, &from) == 2, "%s", hip.log());
  CHECK(wait && sscanf(wait, "wait S%d E%d", &waiter, &waited) == 2 && waited == event && waiter != from,
        "%s", hip.log());
  mgpuScopeEnd(&scope);
  mgpuSetThreadStream(NULL);
  hip.clear();
  CHECK(mgpuStreamDevice(mgpuScopeStream(&scope)) == 0 && !strstr(hip.log(), "wait "), "its own stream");
  mgpuScopeEnd(&scope);
  mgpuSetThreadStream(stream);
  mgpuStreamDestroy(stream);
  CHECK(mgpuScopeStream(&scope) == NULL && scope.count == 0, "none beside one that is gone");
  CHECK_ERROR(MGPU_ERROR_INVALID, "has been destroyed already");
  mgpuSetThreadStream(NULL);
}

void test_hip(void) {
  hip = standin_open("libamdhip64.so.6");
  int (*set_device)(int), (*get_device)(int *);
  *(void **)&set_device = dlsym(hip.library, "hipSetDevice");
  *(void **)&get_device = dlsym(hip.library, "hipGetDevice");
  unsigned char elf[128];
  struct container images = {NULL, 0};
  size_t size = fake_elf(elf, 190, "nvidia");
  container_add_image(&images, "nvvm", "sm_90", "bin", "m", elf, size);
  size = fake_elf(elf, 224, "wrong");
  container_add_image(&images, "rocdl", "gfx942:xnack+", "bin", "m", elf, size);
  size = fake_elf(elf, 224, "right");
  container_add_image(&images, "rocdl", "gfx942", "bin", "m", elf, size);
  static mgpuModuleSlot module;
  module = (mgpuModuleSlot){images.data, images.data + images.size, "m", NULL};
  static mgpuKernelSlot kernel = {&module, "kernel", NULL}, missing = {&module, "missing", NULL};

  CHECK(mgpuBackendUse("hip") == 0 && strcmp(mgpuBackendName(), "hip") == 0, "hip");
  mgpuDeviceInfo info;
  CHECK(mgpuDeviceGetInfo("hip", 0, &info) == 0 && info.warp_size == 64, "info");
  CHECK(strcmp(info.chip, "gfx942:sramecc+:xnack-") == 0, "%s", info.chip);
  test_ranks();

  set_device(1); /* the caller's */
  mgpuKernelLaunch(&kernel, 2, 1, 1, 64, 1, 1, 0, 0, 0, 8, NULL, NULL, 0, 1);
  CHECK_CLEAN();
  int device = -1;
  get_device(&device);
  CHECK(device == 1, "the caller's device is put back");
  CHECK_TEXT(hip.log(), "load right on 0\n");
  test_marks();
  CHECK_TEXT(hip.log(), "launch kernel grid 2 1 1 block 64 1 1 smem 8 stream 1\nsync S1\n");
  mgpuKernelLaunch(&kernel, 2, 1, 1, 64, 1, 1, 2, 1, 1, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "clusters");
  mgpuKernelLaunch(&kernel, 1 << 26, 1, 1, 64, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "4294967296 threads along x (67108864 blocks of 64)");
  mgpuKernelLaunch(&kernel, (1 << 26) - 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_CLEAN();
  mgpuKernelLaunch(&missing, 2, 1, 1, 64, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "hipErrorNotFound");
  test_waits_left(&kernel, &missing);

  uint64_t *memory = mgpuMemAlloc(808, NULL, false), *shared = mgpuMemAlloc(8, NULL, true), back[101];
  mgpuMemset8(memory, 0, 808, NULL);
  mgpuMemset64(memory, 0x1122334455667788u, 100, NULL);
  mgpuMemset16(memory, 3, 1, NULL);
  mgpuMemset32(memory + 1, 4, 1, NULL);
  mgpuMemcpy(back, memory, 808, NULL);
  CHECK(back[0] == 0x1122334455660003u && back[1] == 0x1122334400000004u, "fills");
  for (int i = 2; i < 100; ++i)
    CHECK(back[i] == 0x1122334455667788u, "element %d", i);
  CHECK(back[100] == 0, "past the fill");
  if (!getenv("STANDIN_NO_POOLS"))
    CHECK_TEXT(hip.log(), "pool keeps 1073741824\n");
  mgpuMemFree(memory, NULL);
  mgpuMemFree(shared, NULL);
  check_strided();
  check_guard();
  CHECK(hip.live(MEMORY) == 0, "all freed");
  test_scopes();

  hip.fail(700);
  mgpuStreamSynchronize(NULL);
  CHECK_ERROR(MGPU_ERROR_DRIVER,
              "hipStreamSynchronize on hip:0 failed with hipErrorIllegalAddress (700): stand-in. "
              "Work that was put on the device earlier caused it");
  hip.fail(0);
  int (*last_error)(void);
  *(void **)&last_error = dlsym(hip.library, "hipGetLastError");
  CHECK(last_error() == 0, "other libraries do not find our failures");
  static char foreign[256]; /* a stream of another library, about which the library does not answer */
  void (*fail_once)(const char *, int, int);
  *(void **)&fail_once = dlsym(hip.library, "standin_count");
  fail_once("hipStreamGetDevice", 1, 400);
  CHECK(mgpuStreamDevice(foreign) == 0, "the thread's device, then");
  fail_once(NULL, 0, 0);
  CHECK(last_error() == 0, "nor that it was asked in vain");

  void *stream = mgpuStreamCreate(), *event = mgpuEventCreate();
  mgpuEventRecord(event, NULL);
  mgpuStreamWaitEvent(stream, event);
  mgpuEventSynchronize(event);
  mgpuStreamWaitStream(NULL, stream);
  mgpuEventDestroy(stream);
  mgpuEventDestroy(event);
  CHECK_CLEAN();
  size = fake_elf(elf, 224, "broken");
  CHECK(mgpuModuleLoad(elf, size) == NULL, "broken");
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "hipErrorInvalidImage");
  CHECK(last_error() == 0, "not this one either, nor those of a trace");
  char ptx[] = ".version 8.0";
  CHECK(mgpuModuleLoadJIT(ptx, 1) == NULL, "PTX");
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE, "nvvm");

  memory = mgpuMemAlloc(8, NULL, false);
  CHECK(mgpuBackendUse(NULL) == 0, "choose again");
  CHECK(strcmp(mgpuBackendName(), "cuda") == 0, "cuda comes first: %s", mgpuBackendName());
  CHECK(mgpuBackendUse("host") == 0, "host");
  mgpuMemFree(memory, NULL);
  CHECK(hip.live(MEMORY) == 0, "memory goes back to where it came from");
  CHECK_CLEAN();
  mgpuKernelLaunch(&kernel, 2, 1, 1, 64, 1, 1, 0, 0, 0, 8, NULL, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE, "fits host:0");
  CHECK_TEXT(mgpuGetLastErrorMessage(), "Build for this device, too: --target host.");
}
