/* allocations.c: a hash table with linear probing. */
#include "core/allocations.h"

#include "core/handle.h"

#include <stdint.h>
#include <stdlib.h>

static struct mgpu_allocation *table;
static size_t room, used; /* room is 0 or a power of two; at most three quarters are used */

static size_t home(const void *memory) {
  return (size_t)(((uint64_t)(uintptr_t)memory * 0x9E3779B97F4A7C15u) >> 20) & (room - 1);
}

static void put(struct mgpu_allocation allocation) {
  size_t at = home(allocation.memory);
  while (table[at].memory)
    at = (at + 1) & (room - 1);
  table[at] = allocation;
}

static bool grow(void) {
  struct mgpu_allocation *old = table;
  size_t old_room = room, new_room = room ? 2 * room : 64;
  struct mgpu_allocation *made = calloc(new_room, sizeof *made);
  if (!made)
    return false;
  table = made;
  room = new_room;
  for (size_t i = 0; i < old_room; ++i)
    if (old[i].memory)
      put(old[i]);
  free(old);
  return true;
}

bool mgpu_allocation_add(struct mgpu_allocation allocation) {
  mgpu_handles_lock();
  bool fits = used < room / 4 * 3 || grow();
  if (fits) {
    put(allocation);
    ++used;
  }
  mgpu_handles_unlock();
  return fits;
}

bool mgpu_allocation_take(const void *memory, struct mgpu_allocation *allocation) {
  mgpu_handles_lock();
  size_t at = room ? home(memory) : 0;
  while (room && table[at].memory && table[at].memory != memory)
    at = (at + 1) & (room - 1);
  bool found = room && table[at].memory;
  if (found) {
    *allocation = table[at];
    --used;
    /* Close the gap: whoever follows and could not stand at home moves up. */
    size_t gap = at;
    table[gap].memory = NULL;
    for (size_t next = (gap + 1) & (room - 1); table[next].memory; next = (next + 1) & (room - 1)) {
      size_t wanted = home(table[next].memory);
      if (((next - wanted) & (room - 1)) >= ((next - gap) & (room - 1))) {
        table[gap] = table[next];
        table[next].memory = NULL;
        gap = next;
      }
    }
  }
  mgpu_handles_unlock();
  return found;
}

size_t mgpu_allocations_under(uint64_t guard, const void **memory, size_t most) {
  size_t found = 0;
  mgpu_handles_lock();
  for (size_t i = 0; i < room && found < most; ++i)
    if (table[i].memory && table[i].guard == guard)
      memory[found++] = table[i].memory;
  mgpu_handles_unlock();
  return found;
}

size_t mgpu_allocations_count(void) {
  mgpu_handles_lock();
  size_t count = used;
  mgpu_handles_unlock();
  return count;
}
