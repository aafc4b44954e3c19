/* quarantine.c: memory while work is put off. What is allocated gets a pattern when its stream comes there;
 * what was freed is kept for a while, then checked and given back. */
#include "host/memory.h"
#include "host/schedule.h"

#include "core/error.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 256, FRESH = 0xA7, POISON = 0xD5 };
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

static void quarantine(void *memory) {
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

struct memory_work {
  void *memory;
  size_t size;
};

/* Allocations that their streams have not come to, by address. */
struct unfilled {
  struct unfilled *next;
  const void *memory;
};
static struct unfilled **chains; /* a power of two of them, as many as there are allocations */
static size_t chains_count, unfilled_count;

/* These are called with the lock held. */

static struct unfilled **chain_of(const void *memory) {
  uint64_t hash = (uint64_t)(uintptr_t)memory * 0x9E3779B97F4A7C15u;
  return &chains[(hash >> 32) & (chains_count - 1)];
}

/* False when there is no memory for the first chains; with too few of them it takes longer. */
static bool grow(void) {
  struct unfilled **before = chains;
  size_t count = chains_count, wanted = count ? 2 * count : 64;
  struct unfilled **made = calloc(wanted, sizeof(struct unfilled *));
  if (!made)
    return count > 0;
  chains = made;
  chains_count = wanted;
  for (size_t i = 0; i < count; ++i)
    for (struct unfilled *at = before[i], *next; at; at = next) {
      next = at->next;
      struct unfilled **chain = chain_of(at->memory);
      at->next = *chain;
      *chain = at;
    }
  free(before);
  return true;
}

static bool add_unfilled(struct unfilled *note, const void *memory) {
  if (unfilled_count >= chains_count && !grow())
    return false;
  struct unfilled **chain = chain_of(memory);
  *note = (struct unfilled){*chain, memory};
  *chain = note;
  ++unfilled_count;
  return true;
}

/* Forgets that there is such an allocation. False where there is none. */
static bool take_unfilled(const void *memory) {
  if (!unfilled_count)
    return false;
  struct unfilled **place = chain_of(memory);
  while (*place && (*place)->memory != memory)
    place = &(*place)->next;
  struct unfilled *found = *place;
  if (!found)
    return false;
  *place = found->next;
  --unfilled_count;
  free(found);
  return true;
}

static int run_alloc(void *data, struct mgpu_text *why) {
  const struct memory_work *work = data;
  (void)why;
  mgpu_host_schedule_lock();
  if (take_unfilled(work->memory)) /* else it was freed, and may be somebody else's */
    memset(work->memory, FRESH, work->size);
  mgpu_host_schedule_unlock();
  return 0;
}

int mgpu_host_schedule_alloc(void *stream, void *memory, size_t size, bool shared) {
  if (shared) {
    memset(memory, FRESH, size);
    return 0;
  }
  struct unfilled *note = malloc(sizeof *note);
  mgpu_host_schedule_lock();
  bool noted = note && add_unfilled(note, memory);
  mgpu_host_schedule_unlock();
  if (!noted) {
    free(note);
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for %zu bytes of work on a stream.", sizeof *note);
  }
  struct memory_work *work = mgpu_host_schedule_data(sizeof *work);
  int code = MGPU_ERROR_MEMORY;
  if (work) {
    *work = (struct memory_work){memory, size};
    code = mgpu_host_schedule_put(stream, run_alloc, work);
  }
  if (code) {
    mgpu_host_schedule_lock();
    take_unfilled(memory);
    mgpu_host_schedule_unlock();
  }
  return code;
}

/* On a GPU, too, such a stream frees what is in use, or what is not there yet. */
static int run_free(void *data, struct mgpu_text *why) {
  const struct memory_work *work = data;
  mgpu_host_schedule_lock();
  bool early = take_unfilled(work->memory);
  quarantine(work->memory);
  mgpu_host_schedule_unlock();
  if (early)
    mgpu_text_add(why, "Memory at %p is freed on a stream that does not wait for the one that allocates it.",
                  work->memory);
  return early ? MGPU_ERROR_INVALID : 0;
}

int mgpu_host_schedule_free(void *stream, void *memory) {
  struct memory_work *work = mgpu_host_schedule_data(sizeof *work);
  if (!work)
    return MGPU_ERROR_MEMORY;
  *work = (struct memory_work){memory, 0};
  return mgpu_host_schedule_put(stream, run_free, work);
}
