/* handle.h: the runtime's own stream and event handles, pooled, and recognizable without reading foreign
 * memory.
 *
 * Handles live in slabs that are never freed, so whether a pointer is ours is a question of address ranges;
 * it costs no lock. All functions are safe in any thread. */
#ifndef MGPU_INTERNAL_HANDLE_H
#define MGPU_INTERNAL_HANDLE_H

#include <stdbool.h>

enum mgpu_kind { MGPU_STREAM, MGPU_EVENT };

struct mgpu_handle {
  void *driver; /* the driver's stream or event */
  int backend;
  int device;
  enum mgpu_kind kind;
  int live; /* atomic: 1 between get and put */
  struct mgpu_handle *next;
};

/* The handle at that address, live or not; NULL when the pointer is none of ours (a foreign driver handle).
 */
struct mgpu_handle *mgpu_handle_of(const void *pointer);

/* A pooled or new handle, owned by the caller until mgpu_handle_put; NULL after mgpu_fail. */
struct mgpu_handle *mgpu_handle_get(int backend, int device, enum mgpu_kind kind);

/* Gives the handle back to the pool, or its driver object back to the driver when the pool is full. Work that
 * is still on a stream goes on. False when the handle was not live (given back twice). */
bool mgpu_handle_put(struct mgpu_handle *handle);

/* How many handles of a kind are given out (live), or lie in the pools. */
unsigned mgpu_handles_count(enum mgpu_kind kind, bool live);

/* The lock of the pools, of the table of allocations and of other short lists; for core/fork.c, which takes
 * it over a fork, and the files that have these. */
void mgpu_handles_lock(void);
void mgpu_handles_unlock(void);

#endif
