/* test_host_memory.c: the host backend's allocator and its fills, called directly. */
#include "check.h"
#include "host/memory.h"
#include "host/transfer.h"

#include <pthread.h>

#ifdef __SANITIZE_ADDRESS__
static const bool kept = false; /* every block is malloc's, see host/memory.c */
#else
static const bool kept = true;
#endif

static void test_sizes(void) {
  static const size_t around[] = {64,      256,     512,     4096,    65536,    1 << 20,
                                  2 << 20, 4 << 20, 6 << 20, 8 << 20, 33 << 20, 64 << 20};
  for (size_t i = 0; i < sizeof around / sizeof *around; ++i)
    for (size_t size = around[i] - 1; size <= around[i] + 1; ++size) {
      unsigned char *memory = mgpu_host_memory_get(size);
      CHECK(memory && (uintptr_t)memory % 64 == 0, "%zu bytes at %p", size, (void *)memory);
      size_t room = mgpu_host_memory_room(memory);
      CHECK(room >= size && room <= size + size / 4 + (2 << 20), "%zu bytes have room for %zu", size, room);
      memory[0] = memory[size - 1] = memory[room - 1] = 1;
      mgpu_host_memory_put(memory);
      unsigned char *again = mgpu_host_memory_get(size);
      CHECK(!kept || again == memory, "%zu bytes are not used again", size);
      again[size - 1] = 2;
      mgpu_host_memory_put(again);
    }
  void *nothing = mgpu_host_memory_get(0);
  CHECK(nothing, "no bytes");
  mgpu_host_memory_put(nothing);
  CHECK(!mgpu_host_memory_get(SIZE_MAX) && !mgpu_host_memory_get(SIZE_MAX / 8), "more than there is");
}

size_t virtual_bytes(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm");
  fclose(file);
  return (size_t)pages * 4096;
}

/* What is kept of freed memory has a bound, in few large blocks and in many small ones. */
static void test_bound(void) {
  enum { LARGE = 10, SMALL = 4000 };
  static void *held[SMALL];
  size_t before = virtual_bytes();
  for (int i = 0; i < LARGE; ++i)
    CHECK((held[i] = mgpu_host_memory_get(300u << 20)) != NULL, "300 MiB"); /* never touched */
  for (int i = 0; i < LARGE; ++i)
    mgpu_host_memory_put(held[i]);
  for (int i = 0; i < SMALL; ++i)
    held[i] = mgpu_host_memory_get(1000 * 1000);
  for (int i = 0; i < SMALL; ++i)
    mgpu_host_memory_put(held[i]);
  size_t more = virtual_bytes() - before;
  CHECK(!kept || more < (1200ull << 20), "%zu MiB are kept", more >> 20);
}

enum { PLACES = 64, THREADS = 4, ROUNDS = 4000 };
static unsigned char *places[PLACES];

/* Swaps a fresh block for what another thread has left in a place, which must be as that one left it. */
static void *swap_blocks(void *argument) {
  unsigned chance = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < ROUNDS; ++i) {
    chance = chance * 1664525u + 1013904223u;
    size_t size = 8 + (chance >> 8) % (i % 100 ? 3000 : 3000000);
    unsigned char *block = mgpu_host_memory_get(size), tag = (unsigned char)(chance >> 24);
    memcpy(block, &size, sizeof size);
    for (size_t k = sizeof size; k < size; k += 61)
      block[k] = tag;
    block[size - 1] = size > 8 ? tag : block[size - 1];
    unsigned char *other = __atomic_exchange_n(&places[chance % PLACES], block, __ATOMIC_ACQ_REL);
    if (!other)
      continue;
    memcpy(&size, other, sizeof size);
    for (size_t k = sizeof size; k < size; k += 61)
      CHECK(other[k] == other[size - 1], "byte %zu of %zu was changed", k, size);
    mgpu_host_memory_put(other);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, swap_blocks, (void *)(i + 1));
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < PLACES; ++i)
    if (places[i])
      mgpu_host_memory_put(places[i]);
}

static void check_fill(unsigned char *room, size_t offset, size_t width, size_t bytes) {
  static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  memset(room, 0xEE, offset + bytes + 1);
  mgpu_host_fill_bytes(room + offset, pattern, width, bytes);
  for (size_t i = 0; i < bytes; ++i)
    CHECK(room[offset + i] == pattern[i % width], "byte %zu of %zu at %zu, width %zu: %u", i, bytes, offset,
          width, room[offset + i]);
  CHECK((!offset || room[offset - 1] == 0xEE) && room[offset + bytes] == 0xEE, "%zu at %zu, width %zu", bytes,
        offset, width);
}

static void test_fills(void) {
  enum { LARGE = (4 << 20) + 77 };
  unsigned char *room = mgpu_host_memory_get(LARGE + 64);
  for (size_t width = 1; width <= 16; width *= 2)
    for (size_t offset = 0; offset < 17; offset += 1 + offset % 3)
      for (size_t bytes = 0; bytes < 200; ++bytes)
        check_fill(room, offset, width, bytes);
  for (size_t width = 1; width <= 16; width *= 2)
    check_fill(room, 3 * width + 1, width, LARGE);
  mgpu_host_memory_put(room);
}

/* Large copies and fills are shared with the pool; those whose sides overlap are not. */
static void test_large(void) {
  enum { COUNT = 3 << 19, SHIFT = 12345 };
  uint32_t *a = mgpuMemAlloc(sizeof *a * COUNT, NULL, false),
           *b = mgpuMemAlloc(sizeof *b * COUNT, NULL, false);
  mgpuMemset32(a, 0x12345678u, COUNT, NULL);
  for (uint32_t i = 0; i < COUNT; ++i) {
    CHECK(a[i] == 0x12345678u, "element %u is %x", i, a[i]);
    a[i] = i;
  }
  mgpuMemcpy(b, a, sizeof *a * COUNT, NULL);
  CHECK(memcmp(a, b, sizeof *a * COUNT) == 0, "a large copy");
  mgpuMemcpy(a, a + SHIFT, sizeof *a * (COUNT - SHIFT), NULL);
  mgpuMemcpy(b + SHIFT, b, sizeof *a * (COUNT - SHIFT), NULL);
  for (uint32_t i = 0; i < COUNT - SHIFT; ++i)
    CHECK(a[i] == i + SHIFT && b[i + SHIFT] == i, "element %u of an overlapping copy: %u, %u", i, a[i],
          b[i + SHIFT]);
  enum { ROWS = 4096, WIDTH = COUNT / ROWS };
  const int64_t sizes[] = {ROWS, WIDTH - 3}, strides[] = {WIDTH, 1};
  mgpuMemset8(b, 0, sizeof *b * COUNT, NULL);
  mgpuMemcpyStrided(b, strides, a, strides, sizes, 2, sizeof *a, NULL);
  for (uint32_t i = 0; i < COUNT; ++i)
    CHECK(b[i] == (i % WIDTH < WIDTH - 3 ? a[i] : 0), "element %u of rows", i);
  mgpuMemFree(a, NULL);
  mgpuMemFree(b, NULL);
  CHECK_CLEAN();
}

void check_host_memory(void) {
  test_sizes();
  test_bound();
  test_threads();
  test_fills();
  test_large();
}
