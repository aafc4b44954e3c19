/* fill.c: fills memory with a pattern of 1, 2, 4, 8 or 16 bytes as fast as memset does with one. */
#include "host/transfer.h"

#include <string.h>

enum { LANE = 16, STREAMED_FROM = 4 << 20 };

#if defined(__x86_64__)
#include <emmintrin.h>

/* Past the caches: what is larger than they are would be read before it is written, and would push out the
 * rest. */
static void store_past(unsigned char *to, const unsigned char *lane, size_t lanes) {
  __m128i value = _mm_loadu_si128((const __m128i *)(const void *)lane);
  for (size_t i = 0; i < lanes; ++i)
    _mm_stream_si128((__m128i *)(void *)to + i, value);
  _mm_sfence();
}
#else
/* AArch64 cores notice long runs of stores themselves. */
static void store_past(unsigned char *to, const unsigned char *lane, size_t lanes) {
  for (size_t i = 0; i < lanes; ++i)
    memcpy(to + i * LANE, lane, LANE);
}
#endif

static void store(unsigned char *to, const unsigned char *lane, size_t lanes) {
  enum { AT_ONCE = 4 };
  unsigned char row[AT_ONCE * LANE]; /* of a size that the compiler copies with wide stores */
  for (int i = 0; i < AT_ONCE; ++i)
    memcpy(row + i * LANE, lane, LANE);
  for (; lanes >= AT_ONCE; lanes -= AT_ONCE, to += sizeof row)
    memcpy(to, row, sizeof row);
  memcpy(to, row, lanes * LANE);
}

static bool one_byte(const unsigned char *pattern, size_t width) {
  for (size_t i = 1; i < width; ++i)
    if (pattern[i] != pattern[0])
      return false;
  return true;
}

void mgpu_host_fill_bytes(unsigned char *to, const void *pattern, size_t width, size_t bytes) {
  unsigned char twice[2 * LANE];
  if (one_byte(pattern, width)) {
    memset(to, *(const unsigned char *)pattern, bytes);
    return;
  }
  for (size_t i = 0; i < sizeof twice; i += width)
    memcpy(twice + i, pattern, width);
  /* Up to the next multiple of LANE the pattern's begin; after that it is rotated. */
  size_t head = (LANE - (uintptr_t)to % LANE) % LANE;
  if (head > bytes)
    head = bytes;
  memcpy(to, twice, head);
  to += head;
  bytes -= head;
  const unsigned char *lane = twice + head;
  if (bytes >= STREAMED_FROM)
    store_past(to, lane, bytes / LANE);
  else
    store(to, lane, bytes / LANE);
  memcpy(to + bytes / LANE * LANE, lane, bytes % LANE);
}
