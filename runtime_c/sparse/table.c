/* table.c: a hash table of the sparse and dense operands that exist, by handle. */
#include "core/error.h"
#include "core/handle.h"
#include "sparse/sparse.h"

#include <stdlib.h>

enum { CHAINS = 256 };

static struct mgpu_sparse *chains[CHAINS]; /* under the lock of core/handle.h, as is the next */
static size_t count;

static struct mgpu_sparse **chain_of(const void *handle) {
  return &chains[((uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u) >> 56];
}

/* Called with the lock held. */
static struct mgpu_sparse *unlink_operand(const void *handle) {
  for (struct mgpu_sparse **link = chain_of(handle); *link; link = &(*link)->next)
    if ((*link)->handle == handle) {
      struct mgpu_sparse *found = *link;
      *link = found->next;
      --count;
      return found;
    }
  return NULL;
}

struct mgpu_sparse *mgpu_sparse_add(const struct mgpu_sparse *operand, void *handle) {
  struct mgpu_sparse *made = malloc(sizeof *made);
  if (!made) {
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a sparse or dense operand.");
    return NULL;
  }
  *made = *operand;
  made->handle = handle ? handle : made;
  mgpu_handles_lock();
  struct mgpu_sparse **chain = chain_of(made->handle);
  made->next = *chain;
  *chain = made;
  ++count;
  mgpu_handles_unlock();
  return made;
}

struct mgpu_sparse *mgpu_sparse_find(const void *handle) {
  mgpu_handles_lock();
  struct mgpu_sparse *found = *chain_of(handle);
  while (found && found->handle != handle)
    found = found->next;
  mgpu_handles_unlock();
  return found;
}

struct mgpu_sparse *mgpu_sparse_take(const void *handle) {
  mgpu_handles_lock();
  struct mgpu_sparse *found = unlink_operand(handle);
  mgpu_handles_unlock();
  return found;
}

struct mgpu_sparse *mgpu_sparse_take_under(uint64_t guard) {
  struct mgpu_sparse *found = NULL;
  mgpu_handles_lock();
  for (int i = 0; i < CHAINS && count && !found; ++i) {
    found = chains[i];
    while (found && found->guard != guard)
      found = found->next;
  }
  if (found)
    unlink_operand(found->handle);
  mgpu_handles_unlock();
  return found;
}

size_t mgpu_sparse_count(void) {
  mgpu_handles_lock();
  size_t now = count;
  mgpu_handles_unlock();
  return now;
}
