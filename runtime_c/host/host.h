/* host.h: the parts of the host backend: CPU features, images, the thread pool, blocks. */
#ifndef MGPU_INTERNAL_HOST_H
#define MGPU_INTERNAL_HOST_H

#include "core/backend.h"
#include "host/host_abi.h"

#include <limits.h>

/* host/cpu.c, host/processors.c. Pure but for reading the CPU; any thread. */

/* A bit for each FEATURE of processors_*.def that this CPU has and the system saves the registers of. */
uint64_t mgpu_host_features(void);
/* Writes the CPU's product name. */
void mgpu_host_cpu_name(char *name, size_t size);
/* The chip of this CPU for device info: "x86-64-v3", "aarch64". Static memory. */
const char *mgpu_host_chip(void);
/* Whether code for `arch` runs here: 0 no, else higher is better. */
int mgpu_host_arch_rank(const char *arch);
/* e_machine of the ELF files that this process can load. */
int mgpu_host_elf_machine(void);

/* host/caches.c */

/* From how many bytes on an array is taken not to stay in the caches. Any thread. */
uint64_t mgpu_host_uncached_from(void);

/* host/image.c */

/* Loads a shared object from memory; the bytes need not outlive the call. *library is for dlsym and dlclose.
 * 0, or a failure that is kept. Any thread. */
int mgpu_host_image_load(const void *data, size_t size, void **library);

/* host/pool.c */

/* One part of a job: runs [first, last). 0, or an error code that stops the job; must not call mgpu_fail,
 * because it may run on a thread of the pool. */
typedef int mgpu_host_part(void *context, uint64_t first, uint64_t last);

/* Runs part over [0, total) on the calling thread and the pool, at most so many threads in all; returns when
 * all is done: 0 or the first error code. Any number of threads may call it at once; together with the pool's
 * they are as many as there are processors, or as there are callers. *mine, if not NULL, becomes what the
 * calling thread did of it. */
struct mgpu_host_share {
  uint64_t count, ns;
};
enum { MGPU_HOST_ALL_THREADS = INT_MAX };
int mgpu_host_pool_run(uint64_t total, unsigned threads, mgpu_host_part *part, void *context,
                       struct mgpu_host_share *mine);
/* How many threads work on a job, the caller's included. */
unsigned mgpu_host_pool_width(void);
/* In the child of a fork: the pool's threads are gone; the next job makes new ones. */
void mgpu_host_pool_after_fork(void);

/* host/split.c */

/* The same, on the calling thread alone where others would cost more than they save. *cost, 0 at first, is
 * what is known of the price of one of `total` for such work; atomic. */
int mgpu_host_split(uint64_t total, mgpu_host_part *part, void *context, uint64_t *cost);

/* host/block.c */

struct mgpu_host_work {
  mgpuHostLaunch launch; /* first: what fails finds the rest by it */
  const mgpuHostKernel *kernel;
  const void *turn; /* of its launch (host/turns.h) */
  uint64_t blocks;
  int failed;          /* atomic: whether an assertion failed; the first one's place: */
  const char *message; /* in the image */
  uint32_t at_block[3], at_thread[3];
};

/* mgpuHostLaunch.fail of a launch that is part of a struct mgpu_host_work. */
void mgpu_host_assertion_failed(const mgpuHostLaunch *launch, const char *message, uint32_t block_x,
                                uint32_t block_y, uint32_t block_z, uint32_t thread_x, uint32_t thread_y,
                                uint32_t thread_z);

/* mgpuHostLaunch.memory of such a launch. */
void *mgpu_host_memory(const mgpuHostLaunch *launch, uint64_t size);

/* A part of a job whose context is a struct mgpu_host_work: runs those blocks on the calling thread. Returns
 * 0, MGPU_ERROR_MEMORY, MGPU_ERROR_DRIVER when an assertion failed, or MGPU_ERROR_BAD_IMAGE when a thread
 * suspends without saying what it waits for. */
int mgpu_host_run_blocks(void *work, uint64_t first, uint64_t last);

#endif
