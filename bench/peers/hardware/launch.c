/* What cuLaunchKernel costs from C: nanoseconds per launch of a kernel with so many parameters of eight
 * bytes, over batches that the driver's queue holds. The driver is bound at run time, so that this compiles
 * without its headers. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { MOST = 128, BATCH = 200 };
typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                         void **, void **);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Fills `costs` with one figure per batch. Returns 0, or CUDA's status, or -1 without a driver. */
int launch_costs(const void *image, const char *name, int parameters, int batches, double *costs) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver || parameters > MOST)
    return -1;
  int (*init)(unsigned), (*retain)(void **, int), (*current)(void *), (*load)(void **, const void *);
  int (*function)(void **, void *, const char *), (*stream)(void **, unsigned), (*wait)(void *);
  launch_fn launch;
  *(void **)&init = dlsym(driver, "cuInit");
  *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void **)&current = dlsym(driver, "cuCtxSetCurrent");
  *(void **)&load = dlsym(driver, "cuModuleLoadData");
  *(void **)&function = dlsym(driver, "cuModuleGetFunction");
  *(void **)&stream = dlsym(driver, "cuStreamCreate");
  *(void **)&wait = dlsym(driver, "cuStreamSynchronize");
  *(void **)&launch = dlsym(driver, "cuLaunchKernel");
  void *context, *module, *kernel, *queue;
  int status = init(0);
  if (status || (status = retain(&context, 0)) || (status = current(context)) ||
      (status = load(&module, image)) || (status = function(&kernel, module, name)) ||
      (status = stream(&queue, 1)))
    return status;
  uint64_t values[MOST] = {0};
  void *places[MOST];
  for (int i = 0; i < MOST; ++i)
    places[i] = &values[i];
  for (int batch = -2; batch < batches; ++batch) { /* two to warm up */
    double start = now();
    for (int i = 0; i < BATCH; ++i)
      if ((status = launch(kernel, 1, 1, 1, 32, 1, 1, 0, queue, places, NULL)))
        return status;
    if (batch >= 0)
      costs[batch] = (now() - start) / BATCH;
    if ((status = wait(queue)))
      return status;
  }
  return 0;
}
