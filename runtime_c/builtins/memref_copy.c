/* memref_copy.c: memrefCopy, what memref.copy calls between layouts that memcpy cannot copy. Plain memory of
 * the CPU: device memory is copied by the runtime. */
#include <stddef.h>
#include <stdint.h>

struct unranked {
  int64_t rank;
  const void *descriptor;
};

/* The head of a ranked memref descriptor; sizes[rank] and strides[rank] follow. */
struct ranked {
  char *allocated, *aligned;
  int64_t offset;
  int64_t sizes_and_strides[];
};

static void copy(char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
                 const int64_t *sizes, int64_t rank, int64_t element) {
  if (rank == 0) {
    for (int64_t i = 0; i < element; ++i)
      to[i] = from[i];
    return;
  }
  if (rank == 1 && *to_strides == 1 && *from_strides == 1) {
    for (int64_t i = 0; i < *sizes * element; ++i)
      to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i < *sizes; ++i)
    copy(to + i * *to_strides * element, to_strides + 1, from + i * *from_strides * element, from_strides + 1,
         sizes + 1, rank - 1, element);
}

/* `element` is the size of an element in bytes; both memrefs have the same shape. */
void memrefCopy(int64_t element, const struct unranked *source, const struct unranked *target);
void memrefCopy(int64_t element, const struct unranked *source, const struct unranked *target) {
  const struct ranked *from = source->descriptor, *to = target->descriptor;
  int64_t rank = source->rank;
  copy(to->aligned + to->offset * element, to->sizes_and_strides + rank,
       from->aligned + from->offset * element, from->sizes_and_strides + rank, from->sizes_and_strides, rank,
       element);
}
