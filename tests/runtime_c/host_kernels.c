/* host_kernels.c: host kernels written by hand against host/host_abi.h; built into the "image" that tests
 * launch.
 */
#include "host/host_abi.h"

#include <stddef.h>
#include <time.h>

#define KERNEL(name)                                                                                         \
  __attribute__((visibility("default"))) const mgpuHostKernel name##_info __asm__(#name ".info")

/* out[i] = a * x[i] + out[i] over n elements; no barrier. */
static void saxpy(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)shared;
  float a = *(float *)launch->params[0], *x = *(float **)launch->params[1],
        *out = *(float **)launch->params[2];
  uint64_t n = *(uint64_t *)launch->params[3], size = launch->block[0];
  for (uint64_t i = first * size; i < last * size && i < n; ++i)
    out[i] += a * x[i];
}

static const uint32_t saxpy_sizes[] = {4, 8, 8, 8}, other_sizes[] = {8, 4};

KERNEL(saxpy) = {MGPU_HOST_ABI_VERSION, 4, 0, saxpy, NULL, saxpy_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Calls params[0] with params[1] once per block. */
static void calls_back(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  (void)shared;
  void (*function)(void *) = *(void (**)(void *))launch->params[0];
  for (uint64_t i = first; i < last; ++i)
    function(*(void **)launch->params[1]);
}

static const uint32_t calls_back_sizes[] = {8, 8};

KERNEL(calls_back) = {MGPU_HOST_ABI_VERSION, 2,   0,  calls_back, NULL, calls_back_sizes, 0,
                      MGPU_HOST_WARP_SIZE,   {0}, {0}};

/* A frame begins with what continues the thread. */
struct frame {
  void (*resume)(void *);
  const mgpuHostLaunch *launch;
  mgpuHostBlock *block;
  uint32_t thread, step;
};

static struct frame *enter(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread,
                           void (*resume)(void *)) {
  struct frame *frame = block->frame(block, sizeof *frame);
  *frame = (struct frame){resume, launch, block, thread, 0};
  resume(frame);
  return frame;
}

static uint32_t threads_of(const mgpuHostLaunch *launch) {
  return launch->block[0] * launch->block[1] * launch->block[2];
}

/* out[block] = sum of the threads' linear ids + 1, as a tree over dynamic workgroup memory. Threads at or
 * past params[1] end before the first barrier. */
static void reduce_step(void *handle) {
  struct frame *frame = handle;
  uint32_t *sums = (uint32_t *)(void *)(frame->block->shared + 64),
           *out = *(uint32_t **)frame->launch->params[0];
  uint32_t active = *(uint32_t *)frame->launch->params[1], thread = frame->thread;
  if (thread >= active) {
    frame->resume = NULL;
    return;
  }
  if (frame->step == 0) {
    sums[thread] = thread + 1;
    frame->step = 1;
  } else {
    uint32_t stride = frame->step;
    if (thread % (2 * stride) == 0 && thread + stride < active)
      sums[thread] += sums[thread + stride];
    frame->step = 2 * stride;
  }
  if (frame->step >= 2 * active || active == 1) {
    if (thread == 0)
      out[frame->block->id[0] + frame->launch->grid[0] * frame->block->id[1]] = sums[0];
    frame->resume = NULL;
    return;
  }
  frame->block->state[thread] = MGPU_HOST_WAIT_BLOCK;
}

static void *reduce(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  return enter(launch, block, thread, reduce_step);
}

KERNEL(reduce) = {MGPU_HOST_ABI_VERSION, 2, 64, NULL, reduce, other_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* out[global thread] = what the next lane of the warp holds after `rounds` rotations by one, with a block
 * barrier in warp 0's way at every third round only. */
static void rotate_step(void *handle) {
  struct frame *frame = handle;
  mgpuHostBlock *block = frame->block;
  uint32_t thread = frame->thread, threads = threads_of(frame->launch),
           *out = *(uint32_t **)frame->launch->params[0];
  uint32_t rounds = *(uint32_t *)frame->launch->params[1], warp = thread / 32 * 32, step = frame->step;
  uint32_t width = threads - warp < 32 ? threads - warp : 32;
  uint64_t value = thread;
  if (step > 0)
    value = block->exchange[(step - 1) % 2 * threads + warp + (thread - warp + 1) % width];
  if (step == rounds) {
    out[block->id[0] * threads + thread] = (uint32_t)value;
    frame->resume = NULL;
    return;
  }
  block->exchange[step % 2 * threads + thread] = value;
  frame->step = step + 1;
  block->state[thread] = step % 3 == 2 ? MGPU_HOST_WAIT_BLOCK : MGPU_HOST_WAIT_WARP;
}

static void *rotate(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  return enter(launch, block, thread, rotate_step);
}

KERNEL(rotate) = {MGPU_HOST_ABI_VERSION, 2, 0, NULL, rotate, other_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Suspends without saying what it waits for. */
static void lost_step(void *handle) { (void)handle; }

static void *lost(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  return enter(launch, block, thread, lost_step);
}

KERNEL(lost) = {MGPU_HOST_ABI_VERSION, 0, 0, NULL, lost, NULL, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* out[3 * (number of the block among those that run) + i] = the block's id along i. */
static void *place(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  static uint64_t ended; /* a frame whose thread has ended */
  uint32_t *out = *(uint32_t **)launch->params[0], *count = *(uint32_t **)launch->params[1];
  (void)thread;
  for (int i = 0; i < 3; ++i)
    out[3 * *count + (uint32_t)i] = block->id[i];
  ++*count;
  return &ended;
}

static const uint32_t place_sizes[] = {8, 8};

KERNEL(place) = {MGPU_HOST_ABI_VERSION, 2, 0, NULL, place, place_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Asks for frames until there are no more. */
static void *greedy(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  (void)launch;
  (void)thread;
  return block->frame(block, UINT64_MAX / 2);
}

KERNEL(greedy) = {MGPU_HOST_ABI_VERSION, 0, 0, NULL, greedy, NULL, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Asks for a frame of so many bytes. */
static void *sized(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  uint64_t *frame = block->frame(block, *(uint64_t *)launch->params[0]);
  (void)thread;
  *frame = 0; /* the thread has ended */
  return frame;
}

static const uint32_t sized_sizes[] = {8};

KERNEL(sized) = {MGPU_HOST_ABI_VERSION, 1, 0, NULL, sized, sized_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Tells when it begins, and a while later that it ends. */
static void slow(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last) {
  int *flags = *(int **)launch->params[0];
  (void)shared;
  (void)first;
  (void)last;
  __atomic_store_n(&flags[0], 1, __ATOMIC_RELEASE);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  flags[1] = 1;
}

KERNEL(slow) = {MGPU_HOST_ABI_VERSION, 1, 0, slow, NULL, sized_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

/* Large frames, so that the arena needs several chunks; writes all of each and checks it after the barrier.
 */
struct large {
  struct frame frame;
  unsigned char bytes[3000];
};

static void large_step(void *handle) {
  struct large *large = handle;
  uint32_t *bad = *(uint32_t **)large->frame.launch->params[0];
  unsigned char mine = (unsigned char)large->frame.thread;
  if (large->frame.step++ == 0) {
    for (size_t i = 0; i < sizeof large->bytes; ++i)
      large->bytes[i] = mine;
    large->frame.block->state[large->frame.thread] = MGPU_HOST_WAIT_BLOCK;
    return;
  }
  for (size_t i = 0; i < sizeof large->bytes; ++i)
    if (large->bytes[i] != mine)
      __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
  large->frame.resume = NULL;
}

static void *large(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread) {
  struct large *frame = block->frame(block, sizeof *frame);
  if ((uintptr_t)frame % 64)
    __atomic_fetch_add(*(uint32_t **)launch->params[0], 1, __ATOMIC_RELAXED);
  frame->frame = (struct frame){large_step, launch, block, thread, 0};
  large_step(frame);
  return frame;
}

KERNEL(large) = {MGPU_HOST_ABI_VERSION, 1, 0, NULL, large, other_sizes, 0, MGPU_HOST_WARP_SIZE, {0}, {0}};

KERNEL(future) = {MGPU_HOST_ABI_VERSION + 1, 4,   0,  saxpy, NULL, saxpy_sizes, 0,
                  MGPU_HOST_WARP_SIZE,       {0}, {0}};

KERNEL(odd_warps) = {MGPU_HOST_ABI_VERSION, 4, 0, saxpy, NULL, saxpy_sizes, 0, 48, {0}, {0}};
