/* memory.c: blocks of memory in classes of size, on lists of those that are free.
 *
 * A program that allocates in every call gets the same blocks again: the system's price for fresh memory, a
 * page fault per 4 KiB of it, is far above that of writing it. Sizes up to SMALL come from malloc and are
 * rounded to one of four classes between powers of two. Larger ones are mapped, and touched by whoever first
 * writes them; from HUGE_FROM on they ask for huge pages, and while they are free the system may take their
 * pages back. What lies on the lists is bounded.
 *
 * Under the address sanitizer every block is malloc's own, so that it knows where each begins and ends. */
#include "host/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void mgpu_host_memory_lock(void) { pthread_mutex_lock(&lock); }

void mgpu_host_memory_unlock(void) { pthread_mutex_unlock(&lock); }

#ifdef __has_feature
#define MGPU_HAS_FEATURE(name) __has_feature(name)
#else
#define MGPU_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || MGPU_HAS_FEATURE(address_sanitizer)

void *mgpu_host_memory_get(size_t size) {
  void *memory = NULL;
  return posix_memalign(&memory, ALIGNMENT, size) ? NULL : memory;
}

void mgpu_host_memory_put(void *memory) { free(memory); }

size_t mgpu_host_memory_room(const void *memory) { return malloc_usable_size((void *)(uintptr_t)memory); }

#else

enum { HUGE_PAGE = 2 << 20, SMALL = 1 << 20, HUGE_FROM = 4 << 20, CLASSES = 64 };

/* The most that lies on the lists. */
static const size_t KEEPS_SMALL = 32u << 20, KEEPS_MAPPED = 1u << 30;

/* Stands before the memory. */
struct block {
  _Alignas(ALIGNMENT) struct block *next; /* while it is free */
  size_t room;                            /* of the memory */
  void *mapping;                          /* NULL: malloc's */
  size_t mapped;                          /* bytes of the mapping */
};

_Static_assert(sizeof(struct block) == ALIGNMENT, "the memory after it is aligned");

static struct block *small[CLASSES]; /* these and the next are under the lock */
static size_t small_bytes;
static struct block *mapped; /* the newest first */
static size_t mapped_bytes;

/* The class of a size in (0, SMALL], and the most that it holds. */
static unsigned class_of(size_t size, size_t *room) {
  if (size <= 4 * ALIGNMENT) {
    size_t count = (size + ALIGNMENT - 1) / ALIGNMENT;
    *room = count * ALIGNMENT;
    return (unsigned)count - 1;
  }
  unsigned top =
      63 - (unsigned)__builtin_clzll((unsigned long long)(size - 1)); /* 2^top < size <= 2^(top+1) */
  size_t step = (size_t)1 << (top - 2), steps = (size - 1) / step;    /* 4 to 7 */
  *room = (steps + 1) * step;
  return (top - 8) * 4 + (unsigned)(steps - 4) + 4;
}

static void release(struct block *block) {
  if (block->mapping)
    munmap(block->mapping, block->mapped);
  else
    free(block);
}

static void release_all(struct block *list) {
  for (struct block *next; list; list = next) {
    next = list->next;
    release(list);
  }
}

static struct block *new_small(size_t room) {
  void *made = NULL;
  if (posix_memalign(&made, ALIGNMENT, sizeof(struct block) + room))
    return NULL;
  struct block *block = made;
  *block = (struct block){.room = room};
  return block;
}

/* A page for the block itself, then the memory, aligned to huge pages where it has some. */
static struct block *new_mapped(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), unit = size >= HUGE_FROM ? (size_t)HUGE_PAGE : page;
  size_t room = (size + unit - 1) / unit * unit, total = room + page + unit;
  char *mapping = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return NULL;
  uintptr_t start = ((uintptr_t)mapping + page + unit - 1) / unit * unit;
  char *memory = mapping + (start - (uintptr_t)mapping), *first = memory - page, *last = memory + room;
  if (first > mapping)
    munmap(mapping, (size_t)(first - mapping));
  if (last < mapping + total)
    munmap(last, (size_t)(mapping + total - last));
  if (unit == HUGE_PAGE)
    madvise(memory, room, MADV_HUGEPAGE); /* a wish */
  struct block *block = (struct block *)(void *)memory - 1;
  *block = (struct block){.room = room, .mapping = first, .mapped = page + room};
  return block;
}

/* A free block that is not much larger than asked for: the smallest. */
static struct block *take_mapped(size_t size) {
  struct block **best = NULL;
  for (struct block **link = &mapped; *link; link = &(*link)->next)
    if ((*link)->room >= size && (*link)->room - size <= size / 4 + HUGE_PAGE &&
        (!best || (*link)->room < (*best)->room))
      best = link;
  struct block *found = best ? *best : NULL;
  if (found) {
    *best = found->next;
    mapped_bytes -= found->room;
  }
  return found;
}

/* Takes everything that is free off the lists. */
static struct block *take_all(void) {
  struct block *list = mapped;
  mapped = NULL;
  mapped_bytes = small_bytes = 0;
  for (unsigned i = 0; i < CLASSES; ++i)
    for (struct block *next; small[i]; small[i] = next) {
      next = small[i]->next;
      small[i]->next = list;
      list = small[i];
    }
  return list;
}

void *mgpu_host_memory_get(size_t size) {
  size_t room;
  if (size > SIZE_MAX / 4)
    return NULL;
  size += size == 0;
  unsigned class = size <= SMALL ? class_of(size, &room) : CLASSES;
  pthread_mutex_lock(&lock);
  struct block *block = class < CLASSES ? small[class] : take_mapped(size);
  if (block && class < CLASSES) {
    small[class] = block->next;
    small_bytes -= room;
  }
  pthread_mutex_unlock(&lock);
  for (bool again = true; !block && again;) {
    block = class < CLASSES ? new_small(room) : new_mapped(size);
    if (block)
      break;
    pthread_mutex_lock(&lock);
    struct block *kept = take_all();
    pthread_mutex_unlock(&lock);
    again = kept != NULL;
    release_all(kept);
  }
  return block ? block + 1 : NULL;
}

void mgpu_host_memory_put(void *memory) {
  struct block *block = (struct block *)memory - 1, *rest = NULL;
  size_t room = block->room;
  if (block->mapping && room > KEEPS_MAPPED) {
    release(block);
    return;
  }
  if (block->mapping && room >= HUGE_FROM)
    madvise(memory, room, MADV_FREE);
  pthread_mutex_lock(&lock);
  if (block->mapping) {
    block->next = mapped;
    mapped = block;
    mapped_bytes += room;
    if (mapped_bytes > KEEPS_MAPPED) { /* the oldest go */
      struct block **link = &mapped;
      for (size_t bytes = 0; *link && bytes + (*link)->room <= KEEPS_MAPPED; link = &(*link)->next)
        bytes += (*link)->room;
      rest = *link;
      *link = NULL;
      for (const struct block *each = rest; each; each = each->next)
        mapped_bytes -= each->room;
    }
  } else if (small_bytes + room > KEEPS_SMALL) {
    block->next = NULL;
    rest = block;
  } else {
    struct block **list = &small[class_of(room, &room)];
    block->next = *list;
    *list = block;
    small_bytes += room;
  }
  pthread_mutex_unlock(&lock);
  release_all(rest);
}

size_t mgpu_host_memory_room(const void *memory) { return ((const struct block *)memory - 1)->room; }

#endif
