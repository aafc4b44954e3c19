/* transfer.c: allocation, copies and fills of the host backend. From SHARED_FROM bytes on the pool's threads
 * take part: one core does not use all of a machine's memory bandwidth. Below that their wake-up costs more.
 */
#include "host/transfer.h"

#include "host/host.h"
#include "host/memory.h"
#include "host/schedule.h"
#include "host/turns.h"

#include <string.h>

/* Measured in bench/runtime.py. PIECE: what a thread takes at once. */
enum { SHARED_FROM = 4 << 20, PIECE = 256 << 10 };

/* Does a piece of work that cannot fail, or puts a copy of its data on the stream. */
static int put(void *stream, mgpu_host_action *action, void *data, size_t size) {
  if (!mgpu_host_schedule_on()) {
    struct mgpu_host_turn turn;
    mgpu_host_turn_begin(&turn, stream);
    int failure = action(data, NULL);
    mgpu_host_turn_end(&turn);
    return failure;
  }
  void *copied = mgpu_host_schedule_data(size);
  return copied ? mgpu_host_schedule_put(stream, action, memcpy(copied, data, size)) : MGPU_ERROR_MEMORY;
}

int mgpu_host_alloc(int device, size_t size, void *stream, bool shared, void **out) {
  (void)device;
  void *memory = mgpu_host_memory_get(size);
  if (!memory)
    return mgpu_fail(MGPU_ERROR_MEMORY, "The allocation of %zu bytes on host:0 failed: out of memory.", size);
  int failure = mgpu_host_schedule_on() ? mgpu_host_schedule_alloc(stream, memory, size, shared) : 0;
  if (failure)
    mgpu_host_memory_put(memory);
  else
    *out = memory;
  return failure;
}

int mgpu_host_free(int device, void *memory, void *stream, bool shared) {
  (void)device;
  (void)shared;
  if (mgpu_host_schedule_on())
    return mgpu_host_schedule_free(stream, memory);
  mgpu_host_turn_wait(stream); /* what runs there may use it */
  mgpu_host_memory_put(memory);
  return 0;
}

/* Bytes of a large piece of work, in pieces: [*begin, return value). */
static size_t piece_end(uint64_t first, uint64_t last, size_t size, size_t *begin) {
  *begin = (size_t)first * PIECE;
  return last * PIECE < size ? (size_t)last * PIECE : size;
}

static uint64_t pieces(size_t size) { return size / PIECE + (size % PIECE != 0); }

struct copy_work {
  unsigned char *to;
  const unsigned char *from;
  size_t size;
};

static int copy_pieces(void *data, uint64_t first, uint64_t last) {
  const struct copy_work *work = data;
  size_t begin, end = piece_end(first, last, work->size, &begin);
  memcpy(work->to + begin, work->from + begin, end - begin);
  return 0;
}

static int run_copy(void *data, struct mgpu_text *why) {
  struct copy_work *work = data;
  (void)why;
  uintptr_t to = (uintptr_t)work->to, from = (uintptr_t)work->from;
  bool overlap = to - from < work->size || from - to < work->size;
  if (overlap || work->size < SHARED_FROM)
    memmove(work->to, work->from, work->size);
  else
    mgpu_host_pool_run(pieces(work->size), MGPU_HOST_ALL_THREADS, copy_pieces, work, NULL);
  return 0;
}

int mgpu_host_memcpy(int device, void *to, const void *from, size_t size, void *stream) {
  (void)device;
  struct copy_work work = {to, from, size};
  return put(stream, run_copy, &work, sizeof work);
}

struct rows_work {
  unsigned char *to;
  const unsigned char *from;
  size_t to_pitch, width, height;
  ptrdiff_t from_pitch;
};

/* A width known to the compiler makes each row one load and one store. */
#define COPY_ROWS(bytes)                                                                                     \
  case bytes:                                                                                                \
    for (size_t row = first; row < last; ++row)                                                              \
      memcpy(work->to + row * work->to_pitch, work->from + (ptrdiff_t)row * work->from_pitch, bytes);        \
    break;

static int copy_rows(void *data, uint64_t first, uint64_t last) {
  const struct rows_work *work = data;
  switch (work->width) {
    COPY_ROWS(1)
    COPY_ROWS(2)
    COPY_ROWS(4)
    COPY_ROWS(8)
    COPY_ROWS(16)
  default:
    for (size_t row = first; row < last; ++row)
      memmove(work->to + row * work->to_pitch, work->from + (ptrdiff_t)row * work->from_pitch, work->width);
  }
  return 0;
}

/* Rows that overlap others are copied in their order, by one thread. */
static int run_rows(void *data, struct mgpu_text *why) {
  struct rows_work *work = data;
  (void)why;
  ptrdiff_t last = work->from_pitch * (ptrdiff_t)(work->height - 1);
  uintptr_t to = (uintptr_t)work->to, from = (uintptr_t)(work->from + (last < 0 ? last : 0));
  size_t to_end = work->to_pitch * (work->height - 1) + work->width,
         from_end = (size_t)(last < 0 ? -last : last) + work->width;
  bool overlap = to - from < from_end || from - to < to_end;
  if (overlap || work->width * work->height < SHARED_FROM)
    copy_rows(work, 0, work->height);
  else
    mgpu_host_pool_run(work->height, MGPU_HOST_ALL_THREADS, copy_rows, work, NULL);
  return 0;
}

int mgpu_host_memcpy2d(int device, void *to, size_t to_pitch, const void *from, ptrdiff_t from_pitch,
                       size_t width, size_t height, void *stream) {
  (void)device;
  struct rows_work work = {to, from, to_pitch, width, height, from_pitch};
  return width && height ? put(stream, run_rows, &work, sizeof work) : 0;
}

struct fill_work {
  unsigned char *to;
  uint64_t value; /* the low bytes: all our hosts are little-endian */
  size_t bytes;
  unsigned width;
};

/* Pieces are multiples of every pattern's width. */
static int fill_pieces(void *data, uint64_t first, uint64_t last) {
  const struct fill_work *work = data;
  size_t begin, end = piece_end(first, last, work->bytes, &begin);
  mgpu_host_fill_bytes(work->to + begin, &work->value, work->width, end - begin);
  return 0;
}

static int run_fill(void *data, struct mgpu_text *why) {
  struct fill_work *work = data;
  (void)why;
  if (work->bytes < SHARED_FROM)
    mgpu_host_fill_bytes(work->to, &work->value, work->width, work->bytes);
  else
    mgpu_host_pool_run(pieces(work->bytes), MGPU_HOST_ALL_THREADS, fill_pieces, work, NULL);
  return 0;
}

int mgpu_host_memset(int device, void *to, uint64_t value, unsigned width, size_t count, void *stream) {
  (void)device;
  struct fill_work work = {to, value, width * count, width};
  return put(stream, run_fill, &work, sizeof work);
}
