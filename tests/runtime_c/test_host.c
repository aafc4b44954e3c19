/* test_host.c: the host backend with a real image, one thread and many. */
#include "check.h"
#include "core/handle.h"
#include "host/host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct container images;
static mgpuModuleSlot module = {NULL, NULL, "m", NULL};
static mgpuKernelSlot saxpy = {&module, "saxpy", NULL}, reduce = {&module, "reduce", NULL},
                      rotate = {&module, "rotate", NULL}, lost = {&module, "lost", NULL},
                      greedy = {&module, "greedy", NULL}, sized = {&module, "sized", NULL},
                      slow = {&module, "slow", NULL}, large = {&module, "large", NULL},
                      future = {&module, "future", NULL}, odd_warps = {&module, "odd_warps", NULL},
                      missing = {&module, "missing", NULL};

static void *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "cannot open %s", path);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *data = malloc(*size);
  CHECK(fread(data, 1, *size, file) == *size, "cannot read %s", path);
  fclose(file);
  return data;
}

static void launch(mgpuKernelSlot *kernel, intptr_t grid, intptr_t block, int smem, void *stream,
                   void **params) {
  mgpuKernelLaunch(kernel, grid, 1, 1, block, 1, 1, 0, 0, 0, smem, stream, params, 0, 1);
}

static void test_saxpy(size_t n, intptr_t block) {
  float a = 2, *x = mgpuMemAlloc(n * sizeof *x, NULL, false),
        *out = mgpuMemAlloc(n * sizeof *out, NULL, true);
  CHECK(x && out && (uintptr_t)x % 64 == 0, "memory");
  for (size_t i = 0; i < n; ++i) {
    x[i] = (float)i;
    out[i] = 1;
  }
  uint64_t count = n;
  void *params[] = {&a, &x, &out, &count};
  void *stream = mgpuStreamCreate();
  launch(&saxpy, (intptr_t)((n + (size_t)block - 1) / (size_t)block), block, 0, stream, params);
  mgpuStreamDestroy(stream);
  CHECK_CLEAN();
  for (size_t i = 0; i < n; ++i)
    CHECK(out[i] == 2 * (float)i + 1, "element %zu is %g", i, (double)out[i]);
  mgpuMemFree(x, NULL);
  mgpuMemFree(out, NULL);
  CHECK_CLEAN();
}

static void test_reduce(uint32_t threads, uint32_t active) {
  enum { BLOCKS_X = 37, BLOCKS_Y = 3 };
  uint32_t sums[BLOCKS_X * BLOCKS_Y] = {0}, *out = sums;
  void *params[] = {&out, &active};
  mgpuKernelLaunch(&reduce, BLOCKS_X, BLOCKS_Y, 1, threads, 1, 1, 1, 1, 1, (int32_t)(4 * threads), NULL,
                   params, 2, 1);
  CHECK_CLEAN();
  for (int i = 0; i < BLOCKS_X * BLOCKS_Y; ++i)
    CHECK(sums[i] == active * (active + 1) / 2, "%u of %u threads: block %d has %u", active, threads, i,
          sums[i]);
}

static void test_rotate(uint32_t threads, uint32_t rounds) {
  enum { BLOCKS = 5 };
  uint32_t *out = calloc(BLOCKS * threads, sizeof *out);
  void *params[] = {&out, &rounds};
  launch(&rotate, BLOCKS, threads, 0, NULL, params);
  CHECK_CLEAN();
  for (uint32_t i = 0; i < BLOCKS * threads; ++i) {
    uint32_t thread = i % threads, warp = thread / 32 * 32, width = threads - warp < 32 ? threads - warp : 32;
    uint32_t wanted = warp + (thread - warp + rounds) % width;
    CHECK(out[i] == wanted, "%u threads, %u rounds: thread %u has %u, not %u", threads, rounds, thread,
          out[i], wanted);
  }
  free(out);
}

static void *many(void *unused) {
  (void)unused;
  for (int i = 0; i < 20; ++i) {
    test_saxpy(5000, 128);
    test_reduce(64, 50);
    test_rotate(70, 7);
  }
  return NULL;
}

static void test_many_threads(void) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
}

static void test_launch_errors(void) {
  uint32_t bad = 0, *out = &bad, one = 1;
  void *params[] = {&out, &one};
  launch(&large, 9, 1024, 0, NULL, params);
  CHECK_CLEAN();
  CHECK(bad == 0, "%u damaged or unaligned frame bytes", bad);

  launch(&saxpy, 0, 1, 0, NULL, params); /* an empty grid runs nothing */
  CHECK_CLEAN();
  launch(&saxpy, -1, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_INVALID, "saxpy");
  launch(&saxpy, 1, 1025, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_INVALID, "1025");
  mgpuKernelLaunch(&saxpy, 1, 1, 1, 1, 1, 65, 0, 0, 0, 0, NULL, params, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "65");
  mgpuKernelLaunch(&saxpy, 1, 65536, 1, 1, 1, 1, 0, 0, 0, 0, NULL, params, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "65536");
  launch(&saxpy, (intptr_t)1 << 32, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_INVALID, "grid");
  launch(&saxpy, 1, 1, -1, NULL, params);
  CHECK_ERROR(MGPU_ERROR_INVALID, "-1 bytes");
  mgpuKernelLaunch(&saxpy, 3, 1, 1, 1, 1, 1, 2, 1, 1, 0, NULL, params, 0, 1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "clusters of (2, 1, 1), which do not divide");
  launch(&saxpy, 1, 1, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "\"saxpy\" has 4 parameters and is launched with NULL");
  launch(&missing, 1, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_INVALID, "missing");
  launch(&future, 1, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "version 7");
  launch(&odd_warps, 1, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "warps of 48 threads");
  launch(&lost, 3, 64, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "lost");
  launch(&greedy, 3, 64, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_MEMORY, "greedy");
  launch(&greedy, 1, 1, 0, NULL, params);
  CHECK_ERROR(MGPU_ERROR_MEMORY, "greedy");
  test_reduce(256, 256);
}

/* What launches keep of larger and larger frames is not more each time. */
static void test_growing_frames(void) {
  enum { LAUNCHES = 300 };
  size_t before = virtual_bytes();
  for (uint64_t size = 1 << 20; size < (1 << 20) + 64 * LAUNCHES; size += 64) {
    void *params[] = {&size};
    launch(&sized, 1, 4, 0, NULL, params);
  }
  size_t more = virtual_bytes() - before;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which keep what is freed */
  CHECK(more < (64 << 20), "%zu MiB are kept", more >> 20);
#endif
  (void)more;
  CHECK_CLEAN();
}

/* Blocks of the largest grid there is, whose numbers do not fit 32 bits. */
static void test_places(const char *image_path) {
  void *image = dlopen(image_path, RTLD_NOW | RTLD_LOCAL);
  CHECK(image, "%s", dlerror());
  uint32_t ids[6], count = 0, *out = ids, *counter = &count;
  void *params[] = {&out, &counter};
  struct mgpu_host_work work = {.kernel = dlsym(image, "place.info")};
  const uint64_t x = 0x7FFFFFFF, yz = 65535, first[] = {0, x - 1, (uint64_t)1 << 40, x * yz * yz - 2};
  work.launch = (mgpuHostLaunch){.grid = {(uint32_t)x, (uint32_t)yz, (uint32_t)yz},
                                 .block = {1, 1, 1},
                                 .cluster = {1, 1, 1},
                                 .params = params};
  for (size_t i = 0; i < sizeof first / sizeof *first; ++i) {
    count = 0;
    CHECK(mgpu_host_run_blocks(&work, first[i], first[i] + 2) == 0 && count == 2, "two blocks");
    for (uint64_t j = 0; j < 2; ++j) {
      const uint32_t *id = ids + 3 * j;
      CHECK(id[0] < x && id[1] < yz && id[2] < yz && (id[2] * yz + id[1]) * x + id[0] == first[i] + j,
            "block %llu is (%u, %u, %u)", (unsigned long long)(first[i] + j), id[0], id[1], id[2]);
    }
  }
  dlclose(image);
}

static void test_caches(void) {
  uint64_t bytes = mgpu_host_uncached_from();
  CHECK(bytes > 8u << 20 && bytes <= (32u << 20) + 1, "%llu bytes", (unsigned long long)bytes);
  CHECK(mgpu_host_uncached_from() == bytes, "another answer");
}

static void test_memory(void) {
  CHECK(mgpuMemAlloc(0, NULL, false) == NULL, "nothing");
  CHECK_CLEAN();
  CHECK(mgpuMemAlloc(UINT64_MAX / 4, NULL, false) == NULL, "too much");
  CHECK_ERROR(MGPU_ERROR_MEMORY, "bytes");
  enum { MANY = 3000 };
  void *held[MANY];
  for (int i = 0; i < MANY; ++i)
    CHECK((held[i] = mgpuMemAlloc(1 + (uint64_t)i % 7, NULL, i % 2)) != NULL, "allocation %d", i);
  for (int i = 0; i < MANY; i += 3)
    mgpuMemFree(held[i], NULL);
  for (int i = MANY - 1; i >= 0; --i)
    if (i % 3)
      mgpuMemFree(held[i], NULL);
  CHECK_CLEAN();
  mgpuMemFree(held[1], NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "freed already");
  uint64_t words[4] = {0}, copy[4] = {0};
  mgpuMemset64(words, 0x0102030405060708u, 3, NULL);
  mgpuMemcpy(copy, words, sizeof words, NULL);
  CHECK(copy[2] == 0x0102030405060708u && copy[3] == 0, "64-bit fill");
  mgpuMemset32(words, 0xA1B2C3D4u, 3, NULL);
  CHECK(words[0] == 0xA1B2C3D4A1B2C3D4u && words[1] == 0x01020304A1B2C3D4u, "32-bit fill");
  mgpuMemset16(words, 0xBEEF, 1, NULL);
  mgpuMemset8(words, 0x11, 1, NULL);
  CHECK(words[0] == 0xA1B2C3D4A1B2BE11u, "16- and 8-bit fill");
  mgpuMemcpy(NULL, words, 8, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destination");
  struct {
    void *allocated, *aligned;
    int64_t offset, sizes[2], strides[2];
  } memref = {words, words, 0, {2, 2}, {2, 1}};
  mgpuMemHostRegisterMemRef(2, &memref, 8);
  CHECK(mgpuMemGetDeviceMemRef1dFloat(NULL, (float *)words, 0, 4, 1).aligned == words, "itself");
  mgpuMemHostUnregisterMemRef(2, &memref, 8);
  CHECK_CLEAN();
  memref.strides[0] = 3;
  mgpuMemHostRegisterMemRef(2, &memref, 8);
  CHECK_ERROR(MGPU_ERROR_INVALID, "dense");
}

static void test_handles(void) {
  void *stream = mgpuStreamCreate(), *event = mgpuEventCreate();
  CHECK(stream && event && stream != event, "handles");
  mgpuEventRecord(event, stream);
  mgpuStreamSynchronize(event);
  mgpuEventSynchronize(stream);
  mgpuStreamWaitEvent(stream, stream);
  mgpuEventDestroy(stream);
  mgpuStreamDestroy(event);
  CHECK_CLEAN();
  mgpuStreamDestroy(stream);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  mgpuStreamSynchronize(stream);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  CHECK(!mgpuStreamCapturing(stream), "no stream any more");
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  CHECK(!mgpuStreamCapturing(NULL), "the host has no graphs");
  CHECK(!mgpuStreamMark(stream), "no stream to be marked");
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  CHECK(mgpuStreamDevice(stream) == -1, "no stream that is anywhere");
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  int foreign;
  mgpuStreamDestroy(&foreign);
  CHECK_ERROR(MGPU_ERROR_INVALID, "its creator");
  mgpuStreamSynchronize(&foreign); /* a foreign stream: the driver's business */
  CHECK(mgpuSetThreadStream(&foreign) == NULL && mgpuSetThreadStream(NULL) == &foreign, "thread stream");
  CHECK_CLEAN();
  CHECK(mgpu_handle_of((char *)stream + 1) == NULL, "the inside of a handle is none");
  void *held[1000];
  for (int i = 0; i < 1000; ++i) {
    held[i] = mgpuStreamCreate();
    CHECK(mgpu_handle_of(held[i]) == held[i], "handle %d", i);
  }
  for (int i = 0; i < 1000; ++i)
    mgpuStreamDestroy(held[i]);

  mgpuScope scope = {0, 0, NULL, {NULL}};
  void *first = mgpuScopeStream(&scope);
  for (int i = 1; i < MGPU_SCOPE_STREAMS; ++i)
    CHECK(mgpuScopeStream(&scope) != first, "stream %d", i);
  CHECK(mgpuScopeStream(&scope) == first && mgpuScopeStream(&scope) != first, "handed out in turn");
  mgpuScopeEnd(&scope);
  mgpuScopeEnd(&scope);
  CHECK_CLEAN();
}

static void *unload(void *raw) {
  mgpuModuleUnload(raw);
  return (void *)(uintptr_t)mgpuGetLastError();
}

/* Two threads at once: one does it, the other is told. */
static void unload_twice(void *raw) {
  pthread_t threads[2];
  void *codes[2];
  for (int i = 0; i < 2; ++i)
    pthread_create(&threads[i], NULL, unload, raw);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], &codes[i]);
  CHECK((uintptr_t)codes[0] + (uintptr_t)codes[1] == MGPU_ERROR_INVALID, "%p and %p", codes[0], codes[1]);
}

static void test_raw_module(void *image, size_t size) {
  for (int i = 0; i < 3; ++i) { /* the same bytes again must not meet the unloaded library */
    void *raw = mgpuModuleLoad(image, size);
    void *function = mgpuModuleGetFunction(raw, "saxpy");
    CHECK(function && mgpuModuleGetFunction(raw, "saxpy") == function, "cached by name");
    float a = 3, x[4] = {1, 2, 3, 4}, out[4] = {0}, *x_pointer = x, *out_pointer = out;
    uint64_t n = 4;
    void *params[] = {&a, &x_pointer, &out_pointer, &n};
    mgpuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, NULL, params, NULL, 4);
    CHECK(out[3] == 12, "%g", (double)out[3]);
    out[3] = 0;
    mgpuLaunchKernel(function, 0, 1, 1, 4, 1, 1, 0, NULL, params, NULL, 4);
    mgpuLaunchKernelCooperative(function, 1, 0, 1, 0, 0, 0, 4, 1, 1, 0, NULL, params, NULL);
    CHECK_CLEAN(); /* empty grids run nothing */
    CHECK(out[3] == 0, "%g", (double)out[3]);
    mgpuLaunchKernelCooperative(function, 1, 1, 1, 0, 0, 0, 4, 1, 1, 0, NULL, params, NULL);
    CHECK(out[3] == 12, "one block is alone: %g", (double)out[3]);
    mgpuLaunchKernelCooperative(function, 2, 1, 1, 0, 0, 0, 4, 1, 1, 0, NULL, params, NULL);
    CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "all of 2 blocks at the same time");
    CHECK(mgpuModuleGetFunction(raw, "missing") == NULL, "no such kernel");
    CHECK_ERROR(MGPU_ERROR_INVALID, "missing");
    mgpuModuleUnload(raw);
    mgpuModuleUnload(raw);
    CHECK_ERROR(MGPU_ERROR_INVALID, "unloaded already");
    CHECK(mgpuModuleGetFunction(raw, "saxpy") == NULL, "a kernel of no module");
    CHECK_ERROR(MGPU_ERROR_INVALID, "unloaded already");
    mgpuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, NULL, params, NULL, 4);
    CHECK_ERROR(MGPU_ERROR_INVALID, "a module that has been unloaded");
  }
  for (int i = 0; i < 50; ++i)
    unload_twice(mgpuModuleLoad(image, size));
  for (size_t cut = 64; cut < 3000; cut += 97) { /* the loader would die of these */
    CHECK(mgpuModuleLoad(image, cut) == NULL, "the first %zu bytes of an image", cut);
    CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "outside");
  }
  struct rlimit files, none;
  getrlimit(RLIMIT_NOFILE, &files);
  none = (struct rlimit){0, files.rlim_max};
  CHECK(dlopen("libnowhere.so", RTLD_NOW) == NULL, "another library, which is not meant below");
  setrlimit(RLIMIT_NOFILE, &none);
  CHECK(mgpuModuleLoad(image, size) == NULL, "no file can be opened");
  setrlimit(RLIMIT_NOFILE, &files);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE,
              "neither memory nor a temporary folder can hold it: Too many open files.");
  CHECK(mgpuModuleLoadJIT((void *)".version 8.0", 2) == NULL, "PTX on the host");
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE, "nvvm");
  mgpuModuleUnload(NULL);
  CHECK_CLEAN();
}

/* Code for a processor runs where everything is that it uses, and is taken before that for its level alone.
 */
static void test_processors(void) {
  uint64_t here = mgpu_host_features();
  const char *const levels[] = {"x86-64",  "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                "aarch64", "armv8.1-a", "armv9-a"};
  int best = mgpu_host_arch_rank(mgpu_host_chip()), last = 0;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
    int rank = mgpu_host_arch_rank(levels[i]);
    CHECK(rank <= best && (rank == 0 || rank > last), "%s: %d after %d, at most %d", levels[i], rank, last,
          best);
    last = rank ? rank : last;
  }
#define FEATURE(...)
#define PROCESSOR(name, bits)                                                                                \
  CHECK((mgpu_host_arch_rank(name) > 0) == (((bits) & ~here) == 0), "%s needs %llx", name,                   \
        (unsigned long long)((uint64_t)(bits) & ~here));
#if defined(__x86_64__)
#include "host/processors_x86_64.def"
  CHECK(mgpu_host_arch_rank("nehalem") <= mgpu_host_arch_rank("x86-64-v2") + 1, "no better than its level");
  CHECK(best < 5 || mgpu_host_arch_rank("nehalem") < best, "code of level 2 where there is a higher one");
#elif defined(__aarch64__)
#include "host/processors_aarch64.def"
#endif
  unsigned number = 0;
#define PROCESSOR(...)
#define FEATURE(name, ...)                                                                                   \
  CHECK((mgpu_host_arch_rank(LOWEST ":+no-such:+" name) > 0) == (here >> number++ & 1), "asked for " name);
#if defined(__x86_64__)
#define LOWEST "x86-64"
#include "host/processors_x86_64.def"
#elif defined(__aarch64__)
#define LOWEST "aarch64"
#include "host/processors_aarch64.def"
#endif
}

static void test_images(const void *image, size_t size) {
  CHECK(mgpu_host_arch_rank("") > 0 && mgpu_host_arch_rank(mgpu_host_chip()) > 0, "this CPU: %s",
        mgpu_host_chip());
  CHECK(mgpu_host_arch_rank("x86-64-v9") == 0, "a level to come");
  CHECK(mgpu_host_arch_rank("no such processor") == 0, "a processor to come");
  test_processors();
  struct container other = {NULL, 0};
  container_add_image(&other, "nvvm", "sm_90", "bin", "other", "x", 1);
  container_add_image(&other, "host", "x86-64-v9", "bin", "other", image, size);
  mgpuModuleSlot slot = {other.data, other.data + other.size, "other", NULL};
  mgpuKernelSlot kernel = {&slot, "saxpy", NULL};
  launch(&kernel, 1, 1, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_NO_IMAGE, "host x86-64-v9 bin");
  CHECK_TEXT(mgpuGetLastErrorMessage(), "cuda none (");
  CHECK_TEXT(mgpuGetLastErrorMessage(), "host:0 ");
  free(kernel.state);
  free(slot.state);
  mgpuModuleSlot cut = {other.data, other.data + other.size - 8, "other", NULL};
  mgpuKernelSlot cut_kernel = {&cut, "saxpy", NULL};
  launch(&cut_kernel, 1, 1, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_BAD_IMAGE, "damaged");
  free(cut_kernel.state);
  free(cut.state);
  free(other.data);
}

/* The pool's threads do not survive a fork; the child makes its own. */
static void test_fork(void) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    test_saxpy(100000, 64);
    test_reduce(128, 128);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %#x", (unsigned)status);
}

/* A library with the runtime inside: one symbol, its own state, its own container found by itself. */
static void test_artifact(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library, "%s", dlerror());
  const mgpuApi *(*get)(uint32_t);
  *(void **)&get = dlsym(library, "offload_api");
  CHECK(get && !dlsym(library, "mgpuMemAlloc"), "offload_api and nothing else");
  const mgpuApi *api = get(MGPU_ABI_VERSION);
  CHECK(api && api->mgpuMemAlloc != mgpuMemAlloc, "a runtime of its own");
  api->mgpuSetDefaultDevice(7);
  CHECK_CLEAN();
  CHECK(api->mgpuGetLastError() != MGPU_SUCCESS, "errors of its own");
}

void test_host(const char *image_path, const char *artifact_path) {
  size_t size;
  void *image = read_file(image_path, &size);
  container_add_image(&images, "nvvm", "sm_90", "bin", "m", "x", 1);
  container_add_image(&images, "host", "x86-64-v9", "bin", "m", "x", 1);
  container_add_image(&images, "host", "", "bin", "m", image, size);
  module.images_begin = images.data;
  module.images_end = images.data + images.size;
  CHECK(strcmp(mgpuBackendName(), "host") == 0, "%s", mgpuBackendName());
  mgpuDeviceInfo info;
  CHECK(mgpuDeviceGetInfo("host", 0, &info) == 0 && info.warp_size == 32 && info.memory_bytes, "info");
  mgpuSetDefaultDevice(1);
  CHECK_ERROR(MGPU_ERROR_INVALID, "device 1");
  CHECK(mgpuBackendUse("cuda") == MGPU_ERROR_NO_DEVICE, "no device");
  CHECK_ERROR(MGPU_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE");

  test_saxpy(1, 1);
  test_saxpy(100003, 256);
  const uint32_t sizes[] = {1, 2, 31, 32, 33, 64, 100, 256, 1024};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    test_reduce(sizes[i], sizes[i]);
    test_reduce(sizes[i], (sizes[i] + 1) / 2);
    for (uint32_t rounds = 0; rounds < 9; ++rounds)
      test_rotate(sizes[i], rounds);
  }
  test_launch_errors();
  test_growing_frames();
  test_places(image_path);
  test_caches();
  test_memory();
  check_strided();
  check_guard();
  check_streams(&saxpy, &slow);
  check_host_memory();
  check_host_pool();
  test_handles();
  test_many_threads();
  test_images(image, size);
  test_raw_module(image, size);
  test_fork();
  test_saxpy(5000, 64);
  test_artifact(artifact_path);
  free(image);
}
