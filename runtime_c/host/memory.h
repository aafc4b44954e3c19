/* memory.h: the host backend's device memory: aligned blocks, kept for a while after they are freed.
 *
 * Any thread may call these; memory may be freed by another thread than its allocator's. */
#ifndef MGPU_INTERNAL_HOST_MEMORY_H
#define MGPU_INTERNAL_HOST_MEMORY_H

#include <stddef.h>

/* At least `size` bytes, 64-byte aligned, of undefined contents; NULL when out of memory. */
void *mgpu_host_memory_get(size_t size);
/* Gives such memory back. */
void mgpu_host_memory_put(void *memory);
/* How many bytes its owner may use: at least what was asked for. */
size_t mgpu_host_memory_room(const void *memory);

/* For core/fork.c; no other lock is taken under it. */
void mgpu_host_memory_lock(void);
void mgpu_host_memory_unlock(void);

#endif
