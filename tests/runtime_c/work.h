/* work.h: what hammer.c and soak.c do on a backend: one module with one kernel, saxpy, that runs for real on
 * all of them. The CPU runs an image; the stand-in drivers run a function of ours. */
#ifndef MGPU_TEST_WORK_H
#define MGPU_TEST_WORK_H

#include "check.h"

/* saxpy(float a, const float *x, float *out, uint64_t n): out[i] += a * x[i]. A thread has one element. */
struct work {
  mgpuModuleSlot module;
  mgpuKernelSlot saxpy;
  struct container container;
  int devices;
  void *driver;          /* the stand-in's library; NULL: the host backend */
  int (*live)(int kind); /* what the stand-in still has, by standins.h; NULL: the host backend */
};

/* Chooses the backend. `image_path` is the CPU's image of saxpy. */
void work_start(struct work *work, const char *backend, const char *image_path);

/* Nothing is left but what a process keeps: as many driver streams and events as lie in the pools. The main
 * thread's own stream may be there. */
void work_check_end(const struct work *work, int own_streams);

#endif
