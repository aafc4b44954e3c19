/* test_cuda.c: cuda/cuda.c, and what is common to drivers with real streams, over the stand-in driver. */
#include "cuda/backend.h"
#include "standins.h"

#include <pthread.h>

static struct standin cuda;
static int (*get_current)(void **);
static int (*set_current)(void *);

static int rank(const char *arch, const void *data, size_t size) {
  struct mgpu_image image = {data, size, "", arch, "nvvm", "", "", "", ""};
  return mgpu_backend_cuda.image_rank(0, &image);
}

static void test_ranks(void) { /* the device is an sm_90 */
  unsigned char elf[128];
  size_t size = fake_elf(elf, 190, "x");
  const char ptx[] = ".version 8.0", fat[] = "\x50\xED\x55\xBA....";
  CHECK(rank("sm_90", elf, size) > rank("sm_90", fat, 8), "cubin before fat binary");
  CHECK(rank("sm_90a", elf, size) > rank("sm_90", elf, size), "exact variant first");
  CHECK(rank("sm_90", fat, 8) > rank("sm_90", ptx, 12), "code before text");
  CHECK(rank("sm_90", ptx, 12) > rank("sm_80", ptx, 12) && rank("sm_80", ptx, 12) > rank("sm_75", ptx, 12),
        "text");
  CHECK(rank("sm_75", ptx, 12) > 0 && rank("sm_100", ptx, 12) == 0, "text runs from its version on");
  CHECK(rank("sm_80", elf, size) == 0 && rank("sm_100", elf, size) == 0, "code runs on its major version");
  CHECK(rank("sm_80", fat, 8) == rank("sm_80", ptx, 12), "the text in a fat binary");
  CHECK(rank("sm_90a", ptx, 12) > 0 && rank("sm_80a", ptx, 12) == 0 && rank("sm_80f", fat, 8) == 0,
        "variants");
  CHECK(rank("gfx942", elf, size) == 0 && rank("sm_", elf, size) == 0 && rank("sm_90x", elf, size) == 0,
        "names");
  CHECK(rank("sm_90", "BC\xC0\xDE", 4) == 0, "bitcode");
}

/* Chips whose stand-in there is not: what the backend knows of the device is replaced. */
static int rank_on(int major, int minor, const char *arch, const void *data, size_t size) {
  struct mgpu_cuda_device *device = &mgpu_cuda_devices[0], before = *device;
  device->major = major;
  device->minor = minor;
  int found = rank(arch, data, size);
  *device = before;
  return found;
}

static void test_ranks_elsewhere(void) {
  unsigned char elf[128];
  size_t size = fake_elf(elf, 190, "x");
  const char ptx[] = ".version 8.0";
  CHECK(rank_on(10, 3, "sm_100f", elf, size) > rank_on(10, 3, "sm_100", elf, size) &&
            rank_on(10, 3, "sm_100", elf, size) > rank_on(10, 3, "sm_90", ptx, 12),
        "a family's code");
  CHECK(rank_on(10, 3, "sm_103", elf, size) > rank_on(10, 3, "sm_100f", elf, size), "the chip's own first");
  CHECK(rank_on(10, 3, "sm_100a", elf, size) == 0 && rank_on(12, 0, "sm_100f", elf, size) == 0,
        "not others'");
  CHECK(rank_on(10, 0, "sm_103f", elf, size) == 0, "a family starts at its chip");
  CHECK(rank_on(8, 7, "sm_87", elf, size) > rank_on(8, 7, "sm_80", ptx, 12) &&
            rank_on(8, 7, "sm_80", ptx, 12) > rank_on(8, 7, "sm_86", elf, size) &&
            rank_on(8, 7, "sm_86", elf, size) > 0,
        "a system-on-chip takes foreign code last");
  CHECK(rank_on(8, 9, "sm_87", elf, size) < rank_on(8, 9, "sm_80", ptx, 12), "nor do others take its code");
  CHECK(rank_on(10, 1, "sm_100f", elf, size) == 0 && rank_on(10, 1, "sm_101f", elf, size) > 0, "families");
}

static struct container images;
static mgpuModuleSlot module = {NULL, NULL, "m", NULL};
static mgpuKernelSlot kernel = {&module, "kernel", NULL}, absent = {&module, "missing", NULL};

static void launch(mgpuKernelSlot *slot, int smem, void *stream, int cluster, int wait) {
  int argument = 42;
  void *params[] = {&argument};
  mgpuKernelLaunch(slot, 2, 3, 4, 32, 2, 1, cluster, cluster != 0, cluster != 0, smem, stream, params, 1,
                   wait);
}

/* Several kernels of ours may be one function of the driver, which knows one limit of dynamic memory. */
static void test_dynamic_memory(void) {
  mgpuKernelSlot one = {&module, "twin", NULL}, other = one;
  launch(&one, 150000, NULL, 0, 0);
  launch(&other, 60000, NULL, 0, 0);
  launch(&one, 150000, NULL, 0, 0);
  CHECK_CLEAN();
  launch(&other, 231424, NULL, 0, 0); /* all that there is */
  CHECK_CLEAN();
  launch(&other, 231425, NULL, 0, 0);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs 232449 bytes of workgroup memory (1024 static, 231425 dynamic)");
  free(one.state);
  free(other.state);
}

static void check_occupancy(mgpuKernelSlot *slot, int smem, int size, int threads, int blocks) {
  int found = -1;
  CHECK(mgpuKernelOccupancy(slot, smem, &size, &found) == 0, "no failure");
  CHECK(size == threads && found == blocks, "%d blocks of %d threads, not %d of %d", found, size, blocks,
        threads);
}

/* A question has an answer, and changes nothing for launches. */
static void test_occupancy(void) {
  mgpuKernelSlot asked = {&module, "asked", NULL};
  check_occupancy(&asked, 100000, 256, 256, 2);
  check_occupancy(&asked, 231424, 0, 256, 1);
  check_occupancy(&asked, 231425, 256, 256, 0);
  check_occupancy(&asked, INT32_MAX, 0, 768, 0);
  check_occupancy(&asked, 60000, 256, 256, 3);
  launch(&asked, 150000, NULL, 0, 0);
  CHECK_CLEAN();
  launch(&asked, 231425, NULL, 0, 0);
  CHECK_ERROR(MGPU_ERROR_INVALID, "sm_90 allows 232448");
  free(asked.state);
}

static void test_launch(void) {
  void *before = (void *)0x10, *after = NULL;
  set_current(before); /* another library's context */
  launch(&kernel, 16, NULL, 0, 1);
  CHECK_CLEAN();
  get_current(&after);
  CHECK(after == before, "the caller's context is put back");
  set_current(NULL);
  CHECK_TEXT(cuda.log(), "load exact on 0 with 0 options\n");
  CHECK_TEXT(cuda.log(),
             "launch kernel grid 2 3 4 block 32 2 1 cluster 0 smem 16 stream 1 arg 42\nsync S1\n");
  cuda.clear();
  launch(&kernel, 100000, NULL, 0, 0);
  launch(&kernel, 100000, NULL, 0, 0);
  CHECK(strcmp(cuda.log(),
               "set attribute 8 to 231424\n"
               "launch kernel grid 2 3 4 block 32 2 1 cluster 0 smem 100000 stream 1 arg 42\n"
               "launch kernel grid 2 3 4 block 32 2 1 cluster 0 smem 100000 stream 1 arg 42\n") == 0,
        "%s", cuda.log());
  launch(&kernel, 300000, NULL, 0, 0);
  CHECK_ERROR(MGPU_ERROR_INVALID, "sm_90 allows 232448");
  cuda.clear();
  launch(&kernel, 0, (void *)2, 0, 0); /* CUDA's per-thread stream */
  CHECK_TEXT(cuda.log(), "stream -2");
  launch(&absent, 0, NULL, 0, 0);
  launch(&kernel, 0, NULL, 0, 0);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "CUDA_ERROR_NOT_FOUND");
  mgpuKernelLaunch(&kernel, 1, 1, 1, 2000, 1, 1, 0, 0, 0, 0, NULL, NULL, 0, 0);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "\"kernel\" with grid (1, 1, 1), block (2000, 1, 1) and 0 bytes of dynamic "
                                 "workgroup memory on cuda:0 failed with");
}

static void launch_clusters(intptr_t x, intptr_t y, intptr_t z) {
  int argument = 42;
  void *params[] = {&argument};
  mgpuKernelLaunch(&kernel, 32, 4, 8, 64, 1, 1, x, y, z, 0, NULL, params, 1, 0);
}

static void test_cooperative(void *function, intptr_t cluster, const char *expected) {
  int argument = 42;
  void *params[] = {&argument};
  cuda.clear();
  mgpuLaunchKernelCooperative(function, 8, 1, 1, cluster, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
  CHECK_CLEAN();
  CHECK_TEXT(cuda.log(), expected);
}

static void test_clusters(void) {
  static const char launched[] = "launch kernel grid 32 4 8 block 64 1 1 cluster";
  cuda.clear();
  launch_clusters(2, 4, 1);
  CHECK_CLEAN();
  CHECK(strncmp(cuda.log(), "clusters of 2 4 1, policy 1\nlaunch kernel grid 32 4 8 block 64 1 1 cluster 2 ",
                76) == 0,
        "%s", cuda.log());
  cuda.clear();
  launch_clusters(1, 1, 1); /* as none */
  CHECK(strncmp(cuda.log(), launched, sizeof launched - 1) == 0, "%s", cuda.log());
  cuda.clear();
  launch_clusters(16, 1, 1);
  launch_clusters(4, 4, 1);
  CHECK_CLEAN(); /* more blocks than any device must take: the kernel is told so, once */
  CHECK_TEXT(cuda.log(), "set attribute 14 to 1\nclusters of 16 1 1, policy 1\n");
  CHECK_TEXT(cuda.log(), "arg 42\nclusters of 4 4 1, policy 1\n");
  launch_clusters(32, 1, 1);
  CHECK_ERROR(MGPU_ERROR_DRIVER,
              "cluster (32, 1, 1) and 0 bytes of dynamic workgroup memory on cuda:0 failed with "
              "CUDA_ERROR_INVALID_CLUSTER_SIZE");
  launch_clusters(3, 1, 1);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "grid (32, 4, 8), block (64, 1, 1), cluster (3, 1, 1)");
  launch_clusters(-1, 1, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "cluster of (-1, 1, 1)");
}

static void test_second_device(void) {
  cuda.clear();
  mgpuSetDefaultDevice(1);
  CHECK(mgpuGetDefaultDevice() == 1, "device 1");
  launch(&kernel, 0, NULL, 0, 0);
  launch(&kernel, 0, NULL, 0, 0);
  CHECK_CLEAN();
  CHECK_TEXT(cuda.log(), "load exact on 1");
  CHECK(cuda.live(MODULES) == 2, "one module per device, not %d", cuda.live(MODULES));
  void *stream = mgpuStreamCreate();
  mgpuSetDefaultDevice(0);
  launch(&kernel, 0, stream, 0, 0); /* goes where the stream is */
  mgpuStreamWaitStream(NULL, stream);
  mgpuStreamDestroy(stream);
  mgpuSetDefaultDevice(2);
  CHECK_ERROR(MGPU_ERROR_INVALID, "device 2");
}

static void test_streams(void) {
  cuda.clear();
  void *a = mgpuStreamCreate(), *b = mgpuStreamCreate(), *event = mgpuEventCreate();
  mgpuEventRecord(event, a); /* which numbers they have in the log */
  mgpuStreamSynchronize(b);
  char sa[8], sb[8], ee[8], wanted[256];
  CHECK(sscanf(strstr(cuda.log(), "record "), "record %7s %7s\nsync %7s", ee, sa, sb) == 3, "%s", cuda.log());
  cuda.clear();
  mgpuStreamWaitEvent(b, event);
  mgpuStreamSynchronize(event);
  mgpuEventSynchronize(a);
  snprintf(wanted, sizeof wanted, "wait %s %s\nsync %s\nsync %s\n", sb, ee, ee, sa);
  CHECK(strcmp(cuda.log(), wanted) == 0, "%s", cuda.log());
  cuda.clear();
  mgpuStreamWaitEvent(b, a); /* a stream as the event */
  CHECK(strncmp(cuda.log(), "record E", 8) == 0, "%s", cuda.log());
  snprintf(wanted, sizeof wanted, "wait %s E", sb);
  CHECK_TEXT(cuda.log(), wanted);
  cuda.clear();
  mgpuStreamWaitStream(b, b);
  CHECK(*cuda.log() == 0, "%s", cuda.log());
  mgpuEventRecord(a, b); /* a stream as the event to record */
  snprintf(wanted, sizeof wanted, "wait %s E", sa);
  CHECK_TEXT(cuda.log(), wanted);
  int streams = cuda.live(STREAMS), events = cuda.live(EVENTS);
  mgpuEventDestroy(a);
  mgpuStreamDestroy(event);
  mgpuStreamDestroy(b);
  for (int i = 0; i < 100; ++i) {
    void *stream = mgpuStreamCreate(), *next = mgpuEventCreate();
    mgpuEventDestroy(next);
    mgpuStreamDestroy(stream);
  }
  CHECK(cuda.live(STREAMS) == streams && cuda.live(EVENTS) == events, "handles are pooled");
  void *held[200];
  for (int i = 0; i < 200; ++i)
    held[i] = mgpuStreamCreate();
  CHECK(cuda.live(STREAMS) >= 200, "200 streams");
  for (int i = 0; i < 200; ++i)
    mgpuStreamDestroy(held[i]);
  CHECK(cuda.live(STREAMS) <= 64 + 4, "the pool is bounded: %d", cuda.live(STREAMS));
  CHECK_CLEAN();

  mgpuScope scope = {0, 0, NULL, {NULL}};
  for (int i = 0; i < 40; ++i)
    CHECK(mgpuScopeStream(&scope), "stream %d", i);
  CHECK(mgpuModuleGetFunction(NULL, "x") == NULL, "makes an error");
  CHECK(mgpuScopeStream(&scope) == NULL, "an error is kept");
  mgpuScopeEnd(&scope); /* runs all the same */
  CHECK_ERROR(MGPU_ERROR_INVALID, "module");
  CHECK(scope.count == 0, "given back");

  void *raw; /* another library's stream */
  int (*create)(void **, unsigned);
  int (*destroy)(void *);
  *(void **)&create = dlsym(cuda.library, "cuStreamCreate");
  *(void **)&destroy = dlsym(cuda.library, "cuStreamDestroy_v2");
  void *context;
  int (*retain)(void **, int);
  *(void **)&retain = dlsym(cuda.library, "cuDevicePrimaryCtxRetain");
  retain(&context, 0);
  set_current(context);
  CHECK(create(&raw, 1) == 0, "raw stream");
  mgpuSetThreadStream(raw);
  cuda.clear();
  launch(&kernel, 0, NULL, 0, 1);
  snprintf(wanted, sizeof wanted, "stream %d arg", *(int *)raw);
  CHECK_TEXT(cuda.log(), wanted);
  mgpuEventSynchronize(mgpuSetThreadStream(NULL));
  CHECK_CLEAN();
  mgpuSetDefaultDevice(1); /* the stream stays where it is */
  cuda.clear();
  launch(&kernel, 0, raw, 0, 1);
  CHECK_CLEAN();
  CHECK_TEXT(cuda.log(), wanted);
  mgpuMemFree(mgpuMemAlloc(64, raw, false), raw);
  CHECK_CLEAN();
  mgpuSetDefaultDevice(0);
  destroy(raw);
  set_current(NULL);
}

static void *own_stream(void *unused) {
  (void)unused;
  launch(&kernel, 0, NULL, 0, 1);
  CHECK_CLEAN();
  return NULL;
}

static void test_thread_end(void) {
  int before = 0;
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, own_stream, NULL);
    pthread_join(thread, NULL);
    if (i == 0)
      before = cuda.live(STREAMS);
  }
  CHECK(cuda.live(STREAMS) == before, "a thread's stream goes back to the pool");
}

static void test_memory(void) {
  int before = cuda.live(MEMORY);
  uint64_t *memory = mgpuMemAlloc(800, NULL, false), *shared = mgpuMemAlloc(64, NULL, true), back[100];
  CHECK(memory && shared && cuda.live(MEMORY) == before + 2, "memory");
  mgpuMemset64(memory, 0x1122334455667788u, 99, NULL);
  mgpuMemset64(memory, 0x0000000500000005u, 1, NULL);
  mgpuMemset32(memory + 1, 7, 1, NULL);
  mgpuMemset16(memory + 2, 9, 1, NULL);
  mgpuMemset8(memory + 3, 0, 8, NULL);
  mgpuMemcpy(back, memory, sizeof back, NULL);
  CHECK(back[0] == 0x0000000500000005u && back[1] == 0x1122334400000007u, "%llx",
        (unsigned long long)back[1]);
  CHECK(back[2] == 0x1122334455660009u && back[3] == 0 && back[98] == 0x1122334455667788u, "fills");
  CHECK(mgpuMemAlloc(1ull << 50, NULL, false) == NULL, "too much");
  mgpuMemFree(memory, NULL); /* with an error kept */
  mgpuMemFree(shared, NULL);
  CHECK_ERROR(MGPU_ERROR_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(cuda.live(MEMORY) == before, "all freed");
  memory = mgpuMemAlloc(8, NULL, false);
  mgpuSetDefaultDevice(1);
  mgpuMemFree(memory, NULL);
  mgpuSetDefaultDevice(0);
  CHECK_CLEAN();
  CHECK(cuda.live(MEMORY) == before, "freed from another device");
  cuda.clear();
  mgpuMemHostRegister(back, sizeof back);
  mgpuMemref1d seen = mgpuMemGetDeviceMemRef1dFloat(NULL, (float *)back, 2, 3, 4);
  CHECK(seen.allocated == back && seen.aligned == back, "registered memory has an address there");
  CHECK(seen.offset == 2 && seen.size == 3 && seen.stride == 4, "the rest of the memref stays");
  mgpuMemHostUnregister(back);
  seen = mgpuMemGetDeviceMemRef1dInt32(NULL, (int32_t *)back, 0, 3, 1);
  CHECK(!seen.aligned, "nothing for memory that is not registered");
  CHECK_ERROR(MGPU_ERROR_DRIVER, "cuMemHostGetDevicePointer");
  CHECK_TEXT(cuda.log(), "register 800\nunregister\n");
  CHECK_CLEAN();
  mgpuMemHostRegister(back, sizeof back);
  mgpuMemset32(NULL, 0, 1, NULL);
  seen = mgpuMemGetDeviceMemRef1dFloat(NULL, (float *)back, 0, 3, 1);
  CHECK(!seen.aligned, "nothing after an error");
  mgpuMemHostUnregister(back);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its destination");
  void *event = mgpuEventCreate();
  mgpuSetThreadStream(event);
  seen = mgpuMemGetDeviceMemRef1dFloat(NULL, (float *)back, 0, 3, 1);
  CHECK(!seen.aligned, "nor where the thread has no stream");
  CHECK_ERROR(MGPU_ERROR_INVALID, "a stream is needed here");
  mgpuSetThreadStream(NULL);
  mgpuEventDestroy(event);
}

/* Memory is taken back where it was registered, whatever the thread uses by then. */
static void test_registered(void) {
  char memory[64], other[64];
  mgpuMemHostRegister(memory, sizeof memory);
  mgpuSetDefaultDevice(1);
  mgpuMemHostRegister(other, sizeof other);
  mgpuMemHostUnregister(memory);
  CHECK_CLEAN();
  CHECK(mgpuBackendUse("host") == 0, "another backend");
  mgpuMemHostRegister(memory, sizeof memory);
  mgpuMemHostUnregister(other);
  mgpuMemHostUnregister(memory);
  CHECK_CLEAN();
  CHECK(mgpuBackendUse("cuda") == 0, "and back");
  mgpuMemHostUnregister(other);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "cuMemHostUnregister on cuda:1");
  mgpuMemHostUnregister(NULL);
  mgpuSetDefaultDevice(0);
  CHECK_CLEAN();
}

/* What running work did wrong is told by whichever call comes next. */
static void test_late_failures(void) {
  mgpuKernelSlot unasked = {&module, "unasked", NULL};
  void *stream = mgpuStreamCreate(), *memory = mgpuMemAlloc(64, stream, true);
  launch(&unasked, 0, stream, 0, 0);
  cuda.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  mgpuStreamSynchronize(stream);
  CHECK_ERROR(MGPU_ERROR_DRIVER,
              "cuStreamSynchronize on cuda:0 failed with CUDA_ERROR_ILLEGAL_ADDRESS (700): "
              "stand-in. Work that was put on the device earlier caused it");
  CHECK(mgpuMemAlloc(64, stream, false) == NULL, "another call");
  CHECK_ERROR(MGPU_ERROR_DRIVER,
              "The allocation of 64 bytes on cuda:0 failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK_TEXT(mgpuGetLastErrorMessage(), "earlier caused it");
  launch(&kernel, 0, stream, 0, 0);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "earlier caused it");
  launch(&unasked, 100000, stream, 0, 0); /* not for its memory */
  CHECK_ERROR(MGPU_ERROR_DRIVER, "cuFuncSetAttribute on cuda:0 failed with CUDA_ERROR_ILLEGAL_ADDRESS (700): "
                                 "stand-in. Work that was put on the device earlier caused it");
  cuda.fail(1);
  mgpuStreamSynchronize(stream);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "Work that was put on the device earlier may have caused it");
  launch(&kernel, 0, stream, 0, 0);
  CHECK(mgpuGetLastError() == MGPU_ERROR_DRIVER && !strstr(mgpuGetLastErrorMessage(), "earlier"), "its own");
  /* The driver has shut down before the program's last objects go. */
  cuda.fail(CUDA_ERROR_DEINITIALIZED);
  mgpuMemFree(memory, stream);
  mgpuMemHostUnregister(&stream);
  CHECK_CLEAN();
  CHECK(mgpuMemAlloc(64, stream, false) == NULL, "nothing new is made");
  CHECK_ERROR(MGPU_ERROR_DRIVER, "CUDA_ERROR_DEINITIALIZED");
  cuda.fail(0);
  int (*driver_free)(uint64_t);
  *(void **)&driver_free = dlsym(cuda.library, "cuMemFree_v2");
  set_current(mgpu_cuda_devices[0].context);
  CHECK(driver_free((uintptr_t)memory) == 0, "the driver still has it");
  set_current(NULL);
  mgpuMemFree(mgpuMemAlloc(0, stream, false), stream);
  launch(&unasked, 100000, stream, 0, 0);
  mgpuStreamDestroy(stream);
  free(unasked.state);
  CHECK_CLEAN();
}

/* A kernel that is gone is no longer named. */
static void test_last_kernel(void) {
  char ptx[] = ".version 8.0\n.target sm_90";
  int argument = 1;
  void *params[] = {&argument}, *raw = mgpuModuleLoadJIT(ptx, 3),
       *function = mgpuModuleGetFunction(raw, "culprit");
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL, 1);
  cuda.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  mgpuStreamSynchronize(NULL);
  CHECK_ERROR(MGPU_ERROR_DRIVER,
              "caused it; the kernel launched last there is \"culprit\"; the driver may refuse");
  cuda.fail(0);
  mgpuModuleUnload(raw);
  cuda.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  mgpuStreamSynchronize(NULL);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "earlier caused it; the driver may refuse");
  cuda.fail(0);
}

static void test_modules(void) {
  int before = cuda.live(MODULES);
  char ptx[] = ".version 8.0\n.target sm_90";
  void *raw = mgpuModuleLoadJIT(ptx, 3);
  CHECK(raw && mgpuModuleGetFunction(raw, "jitted"), "PTX");
  CHECK_TEXT(cuda.log(), "with 3 options");
  void *function = mgpuModuleGetFunction(raw, "jitted");
  mgpuSetDefaultDevice(1); /* raw modules follow the thread to its device */
  int argument = 1;
  void *params[] = {&argument};
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL, 1);
  mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
  mgpuLaunchClusterKernel(function, 1, 2, 4, 3, 6, 8, 16, 2, 1, 64, NULL, params, NULL);
  mgpuSetDefaultDevice(0);
  CHECK_CLEAN();
  CHECK_TEXT(cuda.log(), "clusters of 2 1 1, policy 1\nlaunch jitted grid 4 1 1 block 1 1 1 cluster 2");
  CHECK_TEXT(cuda.log(),
             "clusters of 1 2 4, policy 1\nlaunch jitted grid 3 6 8 block 16 2 1 cluster 1 smem 64");
  CHECK(cuda.live(MODULES) == before + 2, "on two devices");
  mgpuModuleUnload(raw);
  CHECK(cuda.live(MODULES) == before, "unloaded from both");
  char broken[] = ".broken";
  CHECK(mgpuModuleLoadJIT(broken, 3) == NULL, "broken PTX");
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "ptxas: syntax error in line 7");
  unsigned char elf[128];
  size_t size = fake_elf(elf, 190, "raw cubin");
  raw = mgpuModuleLoad(elf, size);
  CHECK(raw, "a cubin");
  function = mgpuModuleGetFunction(raw, "kernel");
  test_cooperative(function, 1, "cooperative\nlaunch kernel grid 8 1 1 block 64 1 1 cluster 1 ");
  test_cooperative(function, 2, "cooperative\nclusters of 2 1 1, policy 1\nlaunch kernel grid 8 1 1");
  mgpuModuleUnload(raw);
  size = fake_elf(elf, 224, "hsaco");
  CHECK(mgpuModuleLoad(elf, size) == NULL, "an hsaco");
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE, "rocdl");
  raw = mgpuModuleLoad(images.data, images.size);
  CHECK(raw && mgpuModuleGetFunction(raw, "kernel"), "a whole container");
  mgpuModuleUnload(raw);
  CHECK(cuda.live(MODULES) == before, "unloaded");
}

/* A device of a vendor whose images are there but do not fit: an error, not the CPU. */
static void test_no_fit(void) {
  unsigned char elf[128];
  size_t size = fake_elf(elf, 190, "old");
  struct container old = {NULL, 0};
  container_add_image(&old, "nvvm", "sm_80", "bin", "m", elf, size);
  size = fake_elf(elf, 62, "old");
  container_add_image(&old, "host", "", "bin", "m", elf, size);
  mgpuModuleSlot slot = {old.data, old.data + old.size, "m", NULL};
  mgpuKernelSlot old_kernel = {&slot, "kernel", NULL};
  launch(&old_kernel, 0, NULL, 0, 1);
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE,
              "fits cuda:0. Images: nvvm sm_80 bin, host  bin. Devices: cuda:0 sm_90 (Stand-in 0)");
  CHECK_TEXT(mgpuGetLastErrorMessage(), "Build for this device, too: --target nvvm:sm_90.");
  free(old_kernel.state);
  free(slot.state);
  free(old.data);
}

static void *many(void *unused) {
  (void)unused;
  for (int i = 0; i < 50; ++i) {
    mgpuSetDefaultDevice(i % 2);
    mgpuScope scope = {0, 0, NULL, {NULL}};
    void *a = mgpuScopeStream(&scope), *b = mgpuScopeStream(&scope);
    void *memory = mgpuMemAlloc(64, a, i % 3 == 0);
    launch(&kernel, 0, a, 0, 0);
    mgpuStreamWaitStream(b, a);
    mgpuMemFree(memory, b);
    mgpuScopeEnd(&scope);
    CHECK_CLEAN();
  }
  return NULL;
}

static void test_shared_global(void) {
  int initial[3] = {1, 2, 3};
  static mgpuGlobalSlot slot;
  slot = (mgpuGlobalSlot){initial, sizeof initial, NULL};
  int *shared = mgpuSharedGlobal(&slot);
  CHECK_CLEAN();
  CHECK(shared != initial && memcmp(shared, initial, sizeof initial) == 0, "a copy that the device reaches");
  shared[1] = 7;
  int *again = mgpuSharedGlobal(&slot);
  CHECK(again == shared && again[1] == 7, "one and the same");
  mgpuMemFree(shared, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no allocation");
  mgpuGlobalSlot empty = {initial, 0, NULL};
  CHECK(mgpuSharedGlobal(&empty) == initial, "nothing to share");
  CHECK_CLEAN();
}

/* Nothing is left of a global whose value cannot be copied; it is made when that works. */
static void test_shared_global_fails(void) {
  void (*fail_one)(const char *name, int turn, int code);
  *(void **)&fail_one = dlsym(cuda.library, "standin_count");
  int initial = 5, before = cuda.live(MEMORY);
  static mgpuGlobalSlot slot;
  slot = (mgpuGlobalSlot){&initial, sizeof initial, NULL};
  static const char *const calls[] = {"cuMemAllocManaged", "cuMemcpyAsync", "cuStreamSynchronize"};
  for (int i = 0; i < 3; ++i) {
    fail_one(calls[i], 1, 1);
    CHECK(mgpuSharedGlobal(&slot) == &initial, "what there is");
    CHECK(mgpuGetLastError() == MGPU_ERROR_DRIVER, "%s has failed", calls[i]);
    CHECK(cuda.live(MEMORY) == before, "%s: %d allocations", calls[i], cuda.live(MEMORY) - before);
  }
  fail_one(NULL, 0, 0);
  const int *shared = mgpuSharedGlobal(&slot);
  CHECK(shared != &initial && *shared == 5, "the copy");
  CHECK_CLEAN();
}

void test_cuda(void) {
  cuda = standin_open("libcuda.so.1");
  *(void **)&get_current = dlsym(cuda.library, "cuCtxGetCurrent");
  *(void **)&set_current = dlsym(cuda.library, "cuCtxSetCurrent");
  unsigned char elf[128];
  size_t size = fake_elf(elf, 224, "amd");
  container_add_image(&images, "rocdl", "gfx942", "bin", "m", elf, size);
  container_add_image(&images, "nvvm", "sm_75", "isa", "m", ".version 7.0", 12);
  size = fake_elf(elf, 190, "exact");
  container_add_image(&images, "nvvm", "sm_90", "bin", "m", elf, size);
  size = fake_elf(elf, 190, "other module");
  container_add_image(&images, "nvvm", "sm_90a", "bin", "n", elf, size);
  module.images_begin = images.data;
  module.images_end = images.data + images.size;
  CHECK(mgpuDeviceCount("cuda") == 2, "%d devices", mgpuDeviceCount("cuda"));
  CHECK(*cuda.log() == 0, "counting makes no context: %s", cuda.log());
  CHECK(strcmp(mgpuBackendName(), "cuda") == 0, "%s", mgpuBackendName());
  mgpuDeviceInfo info;
  CHECK(mgpuDeviceGetInfo("cuda", 1, &info) == 0, "info");
  CHECK(strcmp(info.chip, "sm_90") == 0 && strcmp(info.name, "Stand-in 1") == 0 &&
            info.multiprocessors == 132,
        "info");
  test_ranks();
  test_ranks_elsewhere();
  test_dynamic_memory();
  test_occupancy();
  test_launch();
  test_clusters();
  test_second_device();
  test_streams();
  test_thread_end();
  test_memory();
  test_registered();
  check_strided();
  check_guard();
  test_modules();
  test_late_failures();
  test_last_kernel();
  test_no_fit();
  pthread_t threads[6];
  for (int i = 0; i < 6; ++i)
    pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < 6; ++i)
    pthread_join(threads[i], NULL);
  CHECK(cuda.live(MEMORY) == 0, "%d allocations left", cuda.live(MEMORY));
  test_shared_global(); /* such memory stays */
  test_shared_global_fails();
  check_fork(&kernel);
}
