/* host_abi.h: the contract between the host target's compiled kernels and host/host.c, which runs them.
 *
 * A host image is a small ELF shared object. For each kernel `k` it defines `k.info` (mgpuHostKernel).
 * offload/mlir/cpu/spmd.cpp generates code against these layouts; change both together and raise the version.
 *
 * A kernel has `blocks`: it runs whole blocks [first, last) in linear order, all their threads. Or, where
 * threads may come to a barrier on different ways, `thread`: an LLVM switched-resume coroutine per GPU
 * thread. Calling it runs the thread up to its first suspension and returns its handle, whose first word is
 * the function that continues it and becomes NULL once the thread has ended. Before it suspends, a thread
 * writes into block->state[its linear id] what it waits for; if that is its warp, then into block->site[its
 * linear id] where: an even number before it looks at what the others have published, that number + 1 before
 * it goes on. Sites are numbered so that threads which branched apart meet again when those at the lowest
 * site go first. Threads at one site, or one and its successor, are there together.
 */
#ifndef MGPU_HOST_ABI_H
#define MGPU_HOST_ABI_H

#include <stdint.h>

#define MGPU_HOST_ABI_VERSION 7u
#define MGPU_HOST_WARP_SIZE 32u /* unless a kernel says otherwise */

/* What a suspended thread waits for. */
enum {
  MGPU_HOST_WAIT_NONE = 0,
  MGPU_HOST_WAIT_WARP = 1,  /* the threads of its warp that are at lower sites */
  MGPU_HOST_WAIT_BLOCK = 2, /* the other threads of its block that have not ended */
};

/* One launch, the same for all its blocks. */
typedef struct mgpuHostLaunch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];     /* in blocks; (1, 1, 1) where the launch has none */
  uint32_t dynamic_shared; /* bytes of dynamic workgroup memory */
  void **params;           /* one pointer per kernel parameter */
  /* A failed assertion: ends the launch and does not return. `message` lives as long as the image. */
  void (*fail)(const struct mgpuHostLaunch *launch, const char *message, uint32_t block_x, uint32_t block_y,
               uint32_t block_z, uint32_t thread_x, uint32_t thread_y, uint32_t thread_z);
  /* Memory of the calling thread for what `blocks` does not put on the stack, 64-byte aligned; never NULL.
   * The next call may give the same again. */
  void *(*memory)(const struct mgpuHostLaunch *launch, uint64_t size);
  uint64_t large; /* bytes of an array that is not kept in the caches: it is written around them */
} mgpuHostLaunch;

/* One block in flight; its threads all run on one operating-system thread. */
typedef struct mgpuHostBlock {
  uint32_t id[3];
  uint32_t reserved;
  unsigned char *shared; /* workgroup memory, 64-byte aligned: static part, then the dynamic part at
                            shared + mgpuHostKernel.shared_bytes */
  unsigned char *state;  /* one byte per thread: MGPU_HOST_WAIT_* */
  uint32_t *site;        /* one per thread */
  uint64_t *exchange;    /* two words per thread, of whole warps, for what threads tell each other */
  /* Memory for a thread, its coroutine frame or more: `size` bytes, 64-byte aligned; never NULL. It lasts as
   * long as the block. */
  void *(*frame)(struct mgpuHostBlock *block, uint64_t size);
  /* Called between two waits for the warp: a bit for each lane that is there too. */
  uint64_t (*active)(const struct mgpuHostBlock *block, uint32_t thread);
} mgpuHostBlock;

typedef struct mgpuHostKernel {
  uint32_t abi_version;
  uint32_t params;       /* how many parameters */
  uint64_t shared_bytes; /* static workgroup memory, a multiple of 64 */
  /* Exactly one of the two is not NULL. */
  void (*blocks)(const mgpuHostLaunch *launch, unsigned char *shared, uint64_t first, uint64_t last);
  void *(*thread)(const mgpuHostLaunch *launch, mgpuHostBlock *block, uint32_t thread_id);
  const uint32_t *param_sizes; /* bytes of each parameter; may be NULL where there are none */
  uint64_t max_threads;        /* of a block; 0 where the kernel sets no limit of its own */
  uint32_t warp_size;          /* 32 or 64 */
  uint32_t block[3];           /* the sizes that every block must have; zeros: any */
  uint32_t cluster[3];         /* of every cluster, in blocks; zeros: what the launch says */
} mgpuHostKernel;

#endif
