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

/* An allocation that its stream has not come to. */
struct unfilled {
  struct unfilled *next;
  const void *memory;
};
static struct unfilled *unfilled;

/* Forgets that there is such an allocation; called with the lock held. False where there is none. */
static bool take_unfilled(const void *memory) {
  struct unfilled **place = &unfilled;
  while (*place && (*place)->memory != memory)
    place = &(*place)->next;
  struct unfilled *found = *place;
  if (!found)
    return false;
  *place = found->next;
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
  if (!note)
    return mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for %zu bytes of work on a stream.", sizeof *note);
  struct memory_work *work = mgpu_host_schedule_data(sizeof *work);
  if (!work) {
    free(note);
    return MGPU_ERROR_MEMORY;
  }
  *work = (struct memory_work){memory, size};
  mgpu_host_schedule_lock();
  *note = (struct unfilled){unfilled, memory};
  unfilled = note;
  mgpu_host_schedule_unlock();
  int code = mgpu_host_schedule_put(stream, run_alloc, work);
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
