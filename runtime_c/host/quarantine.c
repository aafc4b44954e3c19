/* quarantine.c: memory that was freed while work is put off: kept for a while, then checked and given
 * back. */
#include "host/memory.h"
#include "host/schedule.h"

#include <string.h>

enum { BLOCKS = 256, POISON = 0xD5 };
static const size_t most_bytes = 64u << 20;

static struct {
  void *block[BLOCKS]; /* a ring */
  unsigned first, count;
  size_t bytes;
  uint64_t damaged;
} kept;

static void give_back(void) {
  unsigned char *memory = kept.block[kept.first];
  size_t size = mgpu_host_memory_room(memory);
  kept.first = (kept.first + 1) % BLOCKS;
  --kept.count;
  kept.bytes -= size;
  size_t i = 0;
  while (i < size && memory[i] == POISON)
    ++i;
  kept.damaged += i < size;
  mgpu_host_memory_put(memory);
}

void mgpu_host_quarantine_add(void *memory) {
  size_t size = mgpu_host_memory_room(memory);
  memset(memory, POISON, size);
  if (kept.count == BLOCKS)
    give_back();
  kept.block[(kept.first + kept.count++) % BLOCKS] = memory;
  kept.bytes += size;
  while (kept.bytes > most_bytes)
    give_back();
}

void mgpu_host_quarantine_end(void) {
  while (kept.count)
    give_back();
}

uint64_t mgpu_host_quarantine_damaged(void) { return kept.damaged; }
