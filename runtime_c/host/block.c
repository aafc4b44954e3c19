/* block.c: runs blocks of a host kernel on the calling thread; the scheduler of kernels with barriers.
 *
 * The threads of a block are coroutines. Each runs until it waits for its warp or its block. Warps are run
 * until none of their threads waits for its warp; then, all threads waiting for the block, all go on. */
#include "host/host.h"

#include "core/error.h"
#include "core/thread.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, FIRST_CHUNK = 256 * 1024, SIDE = 8 };

/* A piece of frame memory; the frames follow it. */
struct chunk {
  struct chunk *next;
  size_t size; /* of the frames' part */
  unsigned char padding[ALIGNMENT - sizeof(struct chunk *) - sizeof(size_t)];
};

/* Memory that grows and keeps nothing of what was in it. */
struct buffer {
  unsigned char *data;
  size_t size;
};

/* One thread's working memory, kept from launch to launch. */
struct scratch {
  struct buffer shared, memory; /* workgroup memory; what mgpuHostLaunch.memory gives */
  unsigned char *state;         /* by thread of the block, as are the next three; whole warps */
  uint32_t *site;
  uint64_t *exchange;
  void **handles;
  size_t threads;
  jmp_buf *end;         /* leaves the part that runs, with an error code */
  struct chunk *chunks; /* frames never move; a full chunk is followed by another */
  struct chunk *chunk;  /* the one in use, or NULL before the first frame */
  size_t used;          /* of it */
};

struct running {
  mgpuHostBlock block; /* first: frame() gets its address */
  struct scratch *scratch;
  uint32_t threads; /* of the block */
  uint32_t warp;    /* threads of a warp */
};

static void free_chunks(struct chunk *chunk) {
  for (struct chunk *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
}

static void scratch_free(void *pointer) {
  struct scratch *scratch = pointer;
  free(scratch->shared.data);
  free(scratch->memory.data);
  free(scratch->state);
  free(scratch->site);
  free(scratch->exchange);
  free(scratch->handles);
  free_chunks(scratch->chunks);
  free(scratch);
}

static size_t round_up(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* False when out of memory. */
static bool grow(struct buffer *buffer, size_t size) {
  if (size <= buffer->size)
    return true;
  free(buffer->data);
  *buffer = (struct buffer){NULL, 0};
  void *grown = NULL;
  if (size > SIZE_MAX / 4 || posix_memalign(&grown, ALIGNMENT, round_up(size)))
    return false;
  *buffer = (struct buffer){grown, round_up(size)};
  return true;
}

/* The calling thread's scratch with room for such a block, or NULL. */
static struct scratch *get_scratch(size_t shared_size, size_t threads) {
  struct mgpu_thread *thread = mgpu_thread();
  struct scratch *scratch = thread->scratch;
  if (!scratch) {
    scratch = calloc(1, sizeof *scratch);
    if (!scratch)
      return NULL;
    thread->scratch = scratch;
    thread->scratch_free = scratch_free;
  }
  if (!grow(&scratch->shared, shared_size))
    return NULL;
  if (threads > scratch->threads) {
    unsigned char *state = calloc(threads, 1);
    uint32_t *site = calloc(threads, sizeof *site);
    uint64_t *exchange = calloc(threads, 2 * sizeof *exchange);
    void **handles = calloc(threads, sizeof *handles);
    if (!state || !site || !exchange || !handles) {
      free(state);
      free(site);
      free(exchange);
      free(handles);
      return NULL;
    }
    free(scratch->state);
    free(scratch->site);
    free(scratch->exchange);
    free(scratch->handles);
    scratch->state = state;
    scratch->site = site;
    scratch->exchange = exchange;
    scratch->handles = handles;
    scratch->threads = threads;
  }
  return scratch;
}

/* Makes the next chunk of at least `size` bytes the one in use. False when out of memory. */
static bool next_chunk(struct scratch *scratch, size_t size) {
  struct chunk **place = scratch->chunk ? &scratch->chunk->next : &scratch->chunks, *next = *place;
  if (next && next->size < size) { /* kept, it would stay unused for good */
    free_chunks(next);
    *place = next = NULL;
  }
  if (!next) {
    size_t room = scratch->chunk ? 2 * scratch->chunk->size : FIRST_CHUNK;
    if (room < size)
      room = size;
    void *made = NULL;
    if (room > SIZE_MAX / 4 || posix_memalign(&made, ALIGNMENT, sizeof(struct chunk) + room))
      return false;
    struct chunk *chunk = made;
    chunk->next = NULL;
    chunk->size = room;
    *place = next = chunk;
  }
  scratch->chunk = next;
  scratch->used = 0;
  return true;
}

/* mgpuHostBlock.frame. Leaves the kernel altogether when out of memory. */
static void *frame(mgpuHostBlock *block, uint64_t size) {
  struct running *running = (struct running *)block;
  struct scratch *scratch = running->scratch;
  if (size > SIZE_MAX / 4)
    longjmp(*scratch->end, MGPU_ERROR_MEMORY);
  size_t rounded = round_up((size_t)size);
  if (!scratch->chunk || scratch->chunk->size - scratch->used < rounded)
    if (!next_chunk(scratch, rounded))
      longjmp(*scratch->end, MGPU_ERROR_MEMORY);
  void *memory = (unsigned char *)(scratch->chunk + 1) + scratch->used;
  scratch->used += rounded;
  return memory;
}

/* mgpuHostBlock.active. The caller runs, so its state says nothing. */
static uint64_t active(const mgpuHostBlock *block, uint32_t thread) {
  const struct running *running = (const struct running *)block;
  uint32_t first = thread - thread % running->warp;
  uint64_t lanes = 0;
  for (uint32_t lane = 0; lane < running->warp && first + lane < running->threads; ++lane)
    if (first + lane == thread || (block->state[first + lane] == MGPU_HOST_WAIT_WARP &&
                                   block->site[first + lane] / 2 == block->site[thread] / 2))
      lanes |= (uint64_t)1 << lane;
  return lanes;
}

void *mgpu_host_memory(const mgpuHostLaunch *launch, uint64_t size) {
  (void)launch;
  struct scratch *scratch = mgpu_thread()->scratch;
  if (!grow(&scratch->memory, (size_t)size))
    longjmp(*scratch->end, MGPU_ERROR_MEMORY);
  return scratch->memory.data;
}

void mgpu_host_assertion_failed(const mgpuHostLaunch *launch, const char *message, uint32_t block_x,
                                uint32_t block_y, uint32_t block_z, uint32_t thread_x, uint32_t thread_y,
                                uint32_t thread_z) {
  struct mgpu_host_work *work = (struct mgpu_host_work *)launch;
  int none = 0;
  if (__atomic_compare_exchange_n(&work->failed, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    work->message = message;
    memcpy(work->at_block, (uint32_t[]){block_x, block_y, block_z}, sizeof work->at_block);
    memcpy(work->at_thread, (uint32_t[]){thread_x, thread_y, thread_z}, sizeof work->at_thread);
  }
  struct scratch *scratch = mgpu_thread()->scratch;
  longjmp(*scratch->end, MGPU_ERROR_DRIVER);
}

/* Runs a thread on from where it stands; forgets it when it has ended. */
static void resume(struct running *running, uint32_t thread) {
  void *handle = running->scratch->handles[thread];
  running->block.state[thread] = MGPU_HOST_WAIT_NONE;
  (*(void (**)(void *))handle)(handle);
  if (!*(void **)handle)
    running->scratch->handles[thread] = NULL;
}

struct waiting {
  uint32_t warp, block, unknown;
  uint32_t site; /* the lowest of those that wait for the warp */
};

static struct waiting look(const struct running *running, uint32_t first, uint32_t last) {
  struct waiting waiting = {0, 0, 0, UINT32_MAX};
  for (uint32_t thread = first; thread < last; ++thread)
    if (running->scratch->handles[thread]) {
      if (running->block.state[thread] == MGPU_HOST_WAIT_WARP) {
        ++waiting.warp;
        if (running->block.site[thread] < waiting.site)
          waiting.site = running->block.site[thread];
      }
      waiting.block += running->block.state[thread] == MGPU_HOST_WAIT_BLOCK;
      waiting.unknown += running->block.state[thread] != MGPU_HOST_WAIT_WARP &&
                         running->block.state[thread] != MGPU_HOST_WAIT_BLOCK;
    }
  return waiting;
}

/* Resumes the threads of [first, last) that wait for `what`, for their warp at `site`. Who waits is decided
 * before anyone runs: a thread that arrives at the next barrier while others leave this one is not passed
 * through it. */
static void resume_all(struct running *running, uint32_t first, uint32_t last, unsigned char what,
                       uint32_t site) {
  for (uint32_t thread = first; thread < last; ++thread)
    if (running->scratch->handles[thread] && running->block.state[thread] == what &&
        (what == MGPU_HOST_WAIT_BLOCK || running->block.site[thread] == site))
      resume(running, thread);
}

static int run_coroutines(struct running *running, const struct mgpu_host_work *work, uint32_t threads) {
  void **handles = running->scratch->handles;
  memset(running->block.state, MGPU_HOST_WAIT_NONE,
         running->scratch->threads); /* the last warp may be partial */
  for (uint32_t thread = 0; thread < threads; ++thread) {
    void *handle = work->kernel->thread(&work->launch, &running->block, thread);
    handles[thread] = handle && *(void **)handle ? handle : NULL;
  }
  for (;;) {
    uint32_t alive = 0;
    for (uint32_t first = 0; first < threads; first += running->warp) {
      uint32_t last = threads - first > running->warp ? first + running->warp : threads;
      struct waiting waiting = look(running, first, last);
      while (waiting.warp && !waiting.unknown) {
        resume_all(running, first, last, MGPU_HOST_WAIT_WARP, waiting.site);
        waiting = look(running, first, last);
      }
      if (waiting.unknown)
        return MGPU_ERROR_BAD_IMAGE;
      alive += waiting.block;
    }
    if (!alive)
      return 0;
    resume_all(running, 0, threads, MGPU_HOST_WAIT_BLOCK, 0);
  }
}

/* Runs blocks of a kernel that has `blocks`.
 *
 * One with workgroup memory works on tiles, of a matrix as a rule: its neighbours in both directions read the
 * same cache lines and pages. Its grid's blocks are taken in squares of SIDE, counted so that a square's are
 * one after the other: row by row in a square, square by square in a band of SIDE rows, band by band. */
static void run_whole(const struct mgpu_host_work *work, unsigned char *shared, uint64_t first,
                      uint64_t last) {
  uint64_t across = work->launch.grid[0], down = work->launch.grid[1];
  uint64_t layer = across * down, band = across * SIDE;
  if (!work->kernel->shared_bytes || across < 2 || down < 2) {
    work->kernel->blocks(&work->launch, shared, first, last);
    return;
  }
  while (first < last) {
    uint64_t in_layer = first % layer, top = in_layer / band * SIDE, in_band = in_layer % band;
    uint64_t height = down - top < SIDE ? down - top : SIDE, left = in_band / (height * SIDE) * SIDE;
    uint64_t width = across - left < SIDE ? across - left : SIDE, in_square = in_band - left * height;
    uint64_t row = in_square / width, column = in_square % width;
    uint64_t count = width - column < last - first ? width - column : last - first;
    uint64_t begin = first - in_layer + (top + row) * across + left + column;
    work->kernel->blocks(&work->launch, shared, begin, begin + count);
    first += count;
  }
}

static int run_blocks(const struct mgpu_host_work *work, uint64_t first, uint64_t last) {
  const uint32_t *grid = work->launch.grid, *block = work->launch.block;
  uint32_t threads = block[0] * block[1] * block[2];
  size_t shared_size = (size_t)work->kernel->shared_bytes + work->launch.dynamic_shared;
  struct running running;
  jmp_buf end;
  uint32_t warp = work->kernel->warp_size;
  running.threads = threads;
  running.warp = warp;
  running.scratch = get_scratch(shared_size ? shared_size : 1, (threads + warp - 1) / warp * warp);
  if (!running.scratch)
    return MGPU_ERROR_MEMORY;
  running.scratch->end = &end;
  int ended = setjmp(end);
  if (ended)
    return ended;
  if (work->kernel->blocks) {
    run_whole(work, running.scratch->shared.data, first, last);
    return 0;
  }
  for (uint64_t index = first; index < last; ++index) {
    running.scratch->chunk = NULL;
    running.scratch->used = 0;
    running.block = (mgpuHostBlock){
        .id = {(uint32_t)(index % grid[0]), (uint32_t)(index / grid[0] % grid[1]),
               (uint32_t)(index / grid[0] / grid[1])},
        .shared = running.scratch->shared.data,
        .state = running.scratch->state,
        .site = running.scratch->site,
        .exchange = running.scratch->exchange,
        .frame = frame,
        .active = active,
    };
    int failure = run_coroutines(&running, work, threads);
    if (failure)
      return failure;
  }
  return 0;
}

/* What blocks call back is a part of their launch, for its stream; where it launches in its turn, its blocks
 * have a scratch of their own: that of the outer ones is in use. */
int mgpu_host_run_blocks(void *context, uint64_t first, uint64_t last) {
  const struct mgpu_host_work *work = context;
  struct mgpu_thread *thread = mgpu_thread();
  const void *turn = thread->turn;
  struct scratch *outer = thread->scratch;
  if (outer && !outer->end) /* free */
    outer = NULL;
  if (outer)
    thread->scratch = NULL;
  if (work->turn)
    thread->turn = work->turn;
  int failure = run_blocks(work, first, last);
  thread->turn = turn;
  struct scratch *used = thread->scratch;
  if (outer) {
    if (used)
      scratch_free(used);
    thread->scratch = outer;
  } else if (used) {
    used->end = NULL;
  }
  return failure;
}
