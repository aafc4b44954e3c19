/* soak.c: the same work very often: nothing is left behind, and the process does not grow.
 *
 * Memory is what /proc/self/statm calls resident, after a tenth of the way and at the end. */
#include "work.h"

#include <dlfcn.h>
#include <unistd.h>

enum { N = 300, SLACK_KIB = 256 };

static struct work work;

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm");
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Does `one(i)` for each i below `times`. */
static void often(const char *what, long times, void (*one)(long i, const char *path), const char *path) {
  long start = 0;
  for (long i = 0; i < times; ++i) {
    if (i == times / 10)
      start = resident_kib();
    one(i, path);
  }
  long grown = resident_kib() - start;
  CHECK_CLEAN();
  printf("%s: %ld times, %ld KiB after a tenth, %+ld KiB at the end\n", what, times, start, grown);
  CHECK(grown <= SLACK_KIB, "%s: %ld KiB more at the end", what, grown);
}

static void saxpy(float *x, float *out, void *stream, bool wait) {
  float a = 2;
  uint64_t n = N;
  void *params[] = {&a, &x, &out, &n};
  mgpuKernelLaunch(&work.saxpy, (N + 63) / 64, 1, 1, 64, 1, 1, 0, 0, 0, 0, stream, params, 4, wait);
}

/* A launch: waited for, on the thread's stream; on two streams in turn, joined by events; on memory of its
 * own. */
static void launch_once(long i, const char *path) {
  static float x[N], out[N];
  (void)path;
  x[N - 1] = (float)(i % 1000);
  out[N - 1] = 1;
  float *to = out;
  if (i % 4 == 0) {
    saxpy(x, to, NULL, true);
  } else if (i % 4 == 1) {
    void *first = mgpuStreamCreate(), *second = mgpuStreamCreate(), *event = mgpuEventCreate();
    saxpy(x, to, first, false);
    mgpuEventRecord(event, first);
    mgpuStreamWaitEvent(second, event);
    mgpuEventDestroy(event);
    mgpuStreamSynchronize(second);
    mgpuStreamDestroy(second);
    mgpuStreamDestroy(first);
  } else {
    mgpuScope scope = {0};
    void *stream = i % 4 == 2 ? mgpuScopeStream(&scope) : NULL;
    to = mgpuMemAlloc(sizeof out, stream, i % 8 == 2);
    mgpuMemcpy(to, out, sizeof out, stream);
    saxpy(x, to, stream, false);
    mgpuMemcpy(out, to, sizeof out, stream);
    mgpuStreamSynchronize(stream);
    mgpuMemFree(to, stream);
    mgpuScopeEnd(&scope);
  }
  CHECK(out[N - 1] == 1 + 2 * x[N - 1], "launch %ld gives %g", i, (double)out[N - 1]);
}

/* A module comes, its kernel runs, the module goes. */
static void load_once(long i, const char *path) {
  static float x[N], out[N];
  float a = 2, *from = x, *to = out;
  uint64_t n = N;
  void *params[] = {&a, &from, &to, &n};
  (void)path;
  x[0] = (float)(i % 1000);
  out[0] = 1;
  void *module = mgpuModuleLoad(work.container.data, work.container.size);
  void *kernel = mgpuModuleGetFunction(module, "saxpy");
  mgpuLaunchKernel(kernel, (N + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL, 4);
  mgpuStreamSynchronize(NULL);
  mgpuModuleUnload(module);
  CHECK(out[0] == 1 + 2 * x[0], "load %ld gives %g", i, (double)out[0]);
}

/* An artifact stays loaded once it has been (-z nodelete: threads and thread-end handlers run in its code),
 * so that opening it again finds the one that is there. */
static void open_once(long i, const char *path) {
  static void *before;
  void *artifact = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(artifact, "%s", dlerror());
  void *entry = dlsym(artifact, "offload_api");
  const mgpuApi *(*api)(uint32_t);
  memcpy(&api, &entry, sizeof api);
  CHECK(api(MGPU_ABI_VERSION)->mgpuDeviceCount("host") == 1 && (i == 0 || entry == before), "opened %ld", i);
  before = entry;
  dlclose(artifact);
}

void soak(const char *backend, const char *image_path, const char *artifact_path, long launches) {
  work_start(&work, backend, image_path);
  often("launches", launches, launch_once, NULL);
  work_check_end(&work, 1);
  often("loads of a module", launches / 10, load_once, NULL);
  work_check_end(&work, 1);
  often("openings of an artifact", launches / 10, open_once, artifact_path);
  free(work.container.data);
}
