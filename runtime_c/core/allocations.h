/* allocations.h: which memory the runtime has handed out, from where. Memory is then given back to its own
 * backend and device, in the right way, whatever is in use by then. Any thread; under the lock of
 * core/handle.h.
 */
#ifndef MGPU_INTERNAL_ALLOCATIONS_H
#define MGPU_INTERNAL_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For `backend`: the memory is the CPU's, in place of some that a device would have shared with it. */
enum { MGPU_NO_BACKEND = -1 };

struct mgpu_allocation {
  const void *memory; /* NULL: an empty place of the table */
  int backend;
  int device;
  size_t size;
  bool shared;
  uint64_t guard; /* the number of the guard under which it was made (abi/guard.h), or 0 */
};

/* Remembers a new allocation. False when out of memory. */
bool mgpu_allocation_add(struct mgpu_allocation allocation);

/* Forgets the allocation at that address and fills *allocation. False when it is none of this runtime. */
bool mgpu_allocation_take(const void *memory, struct mgpu_allocation *allocation);

/* Up to `most` of the addresses that were allocated under that guard; returns how many. They stay in the
 * table. */
size_t mgpu_allocations_under(uint64_t guard, const void **memory, size_t most);

/* How many there are. */
size_t mgpu_allocations_count(void);

#endif
