/* caches.c: how much of an array the caches of this CPU keep. */
#include "host/host.h"

#include <stdio.h>
#include <string.h>

/* More than half of the last cache does not stay there, since kernels read as much as they write; half of it
 * does. Not more than MOST: large caches are shared with other cores, and with other virtual machines. */
enum { LEAST = 8 << 20, MOST = 32 << 20 };

/* Bytes of a cache as Linux tells them: "32768K". 0 where there is none. */
static uint64_t cache_size(int index) {
  char path[64], line[32] = "";
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  bool told = fgets(line, sizeof line, file);
  fclose(file);
  uint64_t size = 0;
  for (size_t i = 0, digits = strspn(line, "0123456789"); i < digits; ++i)
    size = size * 10 + (uint64_t)(line[i] - '0');
  return told ? size << 10 : 0;
}

/* The C library is not asked: where cores have caches of their own it tells all of them together. */
uint64_t mgpu_host_uncached_from(void) {
  static uint64_t known; /* atomic; 0: not asked yet */
  uint64_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (bytes)
    return bytes;
  uint64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    uint64_t size = cache_size(index);
    largest = size > largest ? size : largest;
  }
  bytes = 1 + (largest / 2 < LEAST ? LEAST : largest / 2 > MOST ? MOST : largest / 2);
  if (!largest)
    bytes = 1 + MOST;
  __atomic_store_n(&known, bytes, __ATOMIC_RELAXED);
  return bytes;
}
