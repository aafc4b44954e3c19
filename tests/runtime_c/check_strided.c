/* check_strided.c: mgpuMemcpyStrided and mgpuMemsetStrided against loops over elements, random layouts. */
#include "check.h"

enum { ROOM = 1 << 16, MAX_RANK = 6 };

static uint32_t state = 1;

static int64_t below(int64_t n) {
  state = state * 1664525u + 1013904223u;
  return (int64_t)(state >> 8) % n;
}

struct layout {
  int64_t rank, sizes[MAX_RANK], strides[MAX_RANK], first, bytes; /* first element, extent in elements */
};

/* Random strides for those sizes: a permutation, gaps, negative steps; sometimes 0 in a source. */
static void spread(struct layout *layout, bool source) {
  int64_t order[MAX_RANK], step = 1;
  for (int64_t i = 0; i < layout->rank; ++i)
    order[i] = i;
  for (int64_t i = layout->rank - 1; i > 0 && below(2); --i) {
    int64_t other = below(i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  layout->first = 0;
  for (int64_t i = layout->rank - 1; i >= 0; --i) {
    int64_t at = order[i];
    if (below(3) == 0)
      step += below(3);
    layout->strides[at] = source && below(8) == 0 ? 0 : step;
    step *= layout->sizes[at] > 0 ? layout->sizes[at] : 1;
    if (layout->strides[at] && layout->sizes[at] > 0 && below(4) == 0) {
      layout->first += layout->strides[at] * (layout->sizes[at] - 1);
      layout->strides[at] = -layout->strides[at];
    }
  }
  layout->bytes = step;
}

/* The offset of an element by its number in row-major order. */
static int64_t offset(const struct layout *layout, int64_t number) {
  int64_t at = layout->first;
  for (int64_t i = layout->rank - 1; i >= 0; --i) {
    at += number % layout->sizes[i] * layout->strides[i];
    number /= layout->sizes[i];
  }
  return at;
}

static void check_one(int64_t element, unsigned char *to, unsigned char *from, unsigned char *expected) {
  struct layout target = {.rank = below(MAX_RANK + 1)}, source;
  int64_t count = 1;
  for (int64_t i = 0; i < target.rank; ++i) {
    target.sizes[i] = below(20) == 0 ? 0 : 1 + below(3);
    count *= target.sizes[i];
  }
  source = target;
  spread(&target, false);
  spread(&source, true);
  CHECK(target.bytes * element <= ROOM && source.bytes * element <= ROOM, "the test's arrays are too small");
  for (int64_t i = 0; i < ROOM; ++i) {
    from[i] = (unsigned char)below(256);
    to[i] = expected[i] = (unsigned char)below(256);
  }
  for (int64_t i = 0; i < count; ++i)
    memcpy(expected + offset(&target, i) * element, from + offset(&source, i) * element, (size_t)element);
  mgpuMemcpyStrided(to + target.first * element, target.strides, from + source.first * element,
                    source.strides, source.sizes, source.rank, (size_t)element, NULL);
  mgpuStreamSynchronize(NULL);
  CHECK_CLEAN();
  CHECK(memcmp(to, expected, ROOM) == 0, "a copy of rank %lld differs", (long long)target.rank);
  for (int64_t i = 0; i < count; ++i)
    memcpy(expected + offset(&target, i) * element, from, (size_t)element);
  mgpuMemsetStrided(to + target.first * element, target.strides, target.sizes, target.rank, from,
                    (size_t)element, NULL);
  mgpuStreamSynchronize(NULL);
  CHECK_CLEAN();
  CHECK(memcmp(to, expected, ROOM) == 0, "a fill of rank %lld differs", (long long)target.rank);
}

void check_strided(void) {
  static const int64_t elements[] = {1, 2, 4, 8, 16, 3, 12};
  unsigned char *to = mgpuMemAlloc(ROOM, NULL, true), *from = mgpuMemAlloc(ROOM, NULL, true);
  unsigned char *expected = malloc(ROOM);
  CHECK(to && from && expected, "memory");
  for (int i = 0; i < 700; ++i)
    check_one(elements[i % 7], to, from, expected);
  int64_t sizes[33] = {1};
  mgpuMemcpyStrided(to, sizes, from, sizes, sizes, 33, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "rank 33");
  const int64_t shape[] = {2, 3, 4}, other[] = {2, 3, 5};
  mgpuCheckShapes(3, shape, shape, "a.mlir:1");
  mgpuCheckShapes(0, NULL, NULL, "a.mlir:1");
  mgpuCheckSizes(0, NULL, INT64_MAX, false, "a.mlir:1");
  CHECK_CLEAN();
  mgpuCheckSizes(0, NULL, INT64_MAX, true, "a.mlir:1");
  CHECK_ERROR(MGPU_ERROR_MEMORY, "a.mlir:1: memref.alloca of shape () takes 9223372036854775807 bytes");
  CHECK(mgpuGetLastError() == MGPU_SUCCESS, "equal shapes are no error");
  mgpuCheckShapes(3, shape, other, "a.mlir:1");
  CHECK_ERROR(MGPU_ERROR_INVALID,
              "a.mlir:1: gpu.memcpy copies an array of shape (2, 3, 5) to one of shape (2, 3, 4).");
  int64_t two = 2, huge = INT64_MAX;
  mgpuMemsetStrided(to, &huge, &two, 1, from, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "stride");
  const int64_t many[] = {3, INT64_MAX / 2}, apart[] = {1, 4};
  mgpuMemcpyStrided(to, apart, from, apart, many, 2, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "Dimension 1, its size times its stride, is too large.");
  const int64_t back[] = {1, INT64_MIN / 4};
  mgpuMemsetStrided(to, back, (const int64_t[]){3, 2}, 2, from, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "Dimension 1");
  mgpuMemcpyStrided(to, NULL, from, &two, &two, 1, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its sizes or strides");
  mgpuMemcpyStrided(to, &two, from, NULL, &two, 1, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its sizes or strides");
  mgpuMemsetStrided(to, &two, NULL, 1, from, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its sizes or strides");
  mgpuMemcpyStrided(NULL, &two, from, &two, &two, 1, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destination");
  mgpuMemsetStrided(NULL, &two, &two, 1, from, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its destination");
  mgpuMemsetStrided(to, &two, &two, 1, NULL, 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its value");
  mgpuMemset8(to, 1, SIZE_MAX, NULL); // -1, as sizes that are computed may come out
  CHECK_ERROR(MGPU_ERROR_INVALID, "A fill of 18446744073709551615 elements of 1 bytes is too large.");
  mgpuMemset32(to, 1, SIZE_MAX / 4, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "elements of 4 bytes is too large.");
  mgpuMemcpy(to, from, SIZE_MAX, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "A copy of 18446744073709551615 bytes is too large.");
  mgpuMemFree(to, NULL);
  mgpuMemFree(from, NULL);
  free(expected);
}
