/* strided.c: copies and fills of n-dimensional arrays of any layout.
 *
 * Both become few driver calls: dimensions that follow one another in memory are merged, runs of neighbouring
 * elements are copied at once, and one further dimension goes into the driver's two-dimensional copy. Only
 * what is left is a loop here. A fill writes its first run and doubles what is there. */
#include "abi/stream.h"
#include "core/backend.h"
#include "core/error.h"

#include <limits.h>
#include <string.h>

enum { MAX_RANK = 32 };

enum { MANY = 64 }; /* rows for which a call of the CPU costs nothing */

struct dimension {
  int64_t size, to, from; /* strides in bytes */
};

struct array {
  const struct mgpu_backend *backend;
  struct mgpu_place place;
  int rank;
  struct dimension dims[MAX_RANK]; /* outermost first */
};

static int copy_run(const struct array *a, char *to, const char *from, size_t bytes) {
  return a->backend->memcpy(a->place.device, to, from, bytes, a->place.driver);
}

/* The dimension for the driver's two-dimensional copy: the longest whose rows do not overlap and whose
 * strides a driver takes; on the CPU, whose rows may go backwards or stand still in the source, the innermost
 * that is long enough, since neighbours are in one cache line. -1 when there is none. */
static int pitch_dimension(const struct array *a, int rank, int64_t width) {
  bool is_cpu = a->backend->is_cpu;
  int best = -1;
  for (int i = 0; i < rank; ++i) {
    const struct dimension *d = &a->dims[i];
    bool fits =
        d->to >= width && d->to <= INT_MAX && d->from <= INT_MAX && d->from >= (is_cpu ? -INT_MAX : width);
    if (fits && (best < 0 || d->size >= a->dims[best].size || (is_cpu && d->size >= MANY)))
      best = i;
  }
  return best;
}

/* Copies what a->dims describes; the innermost dimension may be a run of neighbours. */
static int copy_dims(struct array *a, char *to, const char *from, int64_t element) {
  int rank = a->rank;
  int64_t width = element;
  if (rank && a->dims[rank - 1].to == element && a->dims[rank - 1].from == element)
    width *= a->dims[--rank].size;
  int pitch = pitch_dimension(a, rank, width);
  struct dimension rows = {1, 0, 0};
  if (pitch >= 0) {
    rows = a->dims[pitch];
    memmove(&a->dims[pitch], &a->dims[pitch + 1], (size_t)(rank - pitch - 1) * sizeof *a->dims);
    --rank;
  }
  int64_t index[MAX_RANK] = {0};
  for (;;) {
    int failure = pitch >= 0
                      ? a->backend->memcpy2d(a->place.device, to, (size_t)rows.to, from, (ptrdiff_t)rows.from,
                                             (size_t)width, (size_t)rows.size, a->place.driver)
                      : copy_run(a, to, from, (size_t)width);
    if (failure)
      return failure;
    int i = rank - 1;
    for (; i >= 0; --i) { /* the next index, as an odometer counts */
      to += a->dims[i].to;
      from += a->dims[i].from;
      if (++index[i] < a->dims[i].size)
        break;
      to -= a->dims[i].to * a->dims[i].size;
      from -= a->dims[i].from * a->dims[i].size;
      index[i] = 0;
    }
    if (i < 0)
      return 0;
  }
}

static bool wider(const struct dimension *a, const struct dimension *b) {
  return a->to != b->to ? a->to > b->to : a->from > b->from;
}

/* Outermost first, then one dimension where two follow one another on both sides. */
static void sort_and_merge(struct array *a) {
  for (int i = 1; i < a->rank; ++i)
    for (int j = i; j > 0 && wider(&a->dims[j], &a->dims[j - 1]); --j) {
      struct dimension other = a->dims[j];
      a->dims[j] = a->dims[j - 1];
      a->dims[j - 1] = other;
    }
  int kept = 0;
  for (int i = 0; i < a->rank; ++i) {
    struct dimension inner = a->dims[i], *outer = kept ? &a->dims[kept - 1] : NULL;
    if (outer && outer->to == inner.size * inner.to && outer->from == inner.size * inner.from)
      *outer = (struct dimension){outer->size * inner.size, inner.to, inner.from};
    else
      a->dims[kept++] = inner;
  }
  a->rank = kept;
}

/* Fills `a` without what needs no work: dimensions of size 1; negative strides of the target, by walking both
 * sides from the other end. Returns 1 when there is nothing to do, 0, or a failure that is kept. */
static int take(struct array *a, char **to, const int64_t *to_strides, const char **from,
                const int64_t *from_strides, const int64_t *sizes, int64_t rank, size_t element,
                void *stream) {
  if (rank < 0 || rank > MAX_RANK || element == 0 || element > INT_MAX)
    return mgpu_fail(MGPU_ERROR_INVALID, "An array of rank %lld with elements of %zu bytes is not possible.",
                     (long long)rank, element);
  a->rank = 0;
  if (rank && (!sizes || !to_strides || (from && !from_strides)))
    return mgpu_fail(MGPU_ERROR_INVALID, "An array of rank %lld has NULL as its sizes or strides.",
                     (long long)rank);
  for (int64_t i = 0; i < rank; ++i)
    if (sizes[i] <= 0)
      return 1;
  for (int64_t i = 0; i < rank; ++i) {
    struct dimension d = {.size = sizes[i]};
    int64_t extent;
    if (d.size == 1)
      continue;
    if (__builtin_mul_overflow(to_strides[i], (int64_t)element, &d.to) ||
        (from_strides && __builtin_mul_overflow(from_strides[i], (int64_t)element, &d.from)) ||
        __builtin_mul_overflow(d.to, d.size, &extent) || __builtin_mul_overflow(d.from, d.size, &extent))
      return mgpu_fail(MGPU_ERROR_INVALID, "Dimension %lld, its size times its stride, is too large.",
                       (long long)i);
    if (d.to < 0) {
      *to += d.to * (d.size - 1);
      if (from_strides)
        *from += d.from * (d.size - 1);
      d.to = -d.to;
      d.from = -d.from;
    }
    a->dims[a->rank++] = d;
  }
  if (mgpu_stream_place(stream, &a->place))
    return mgpu_pending();
  a->backend = mgpu_backends[a->place.backend];
  return 0;
}

void mgpuMemcpyStrided(void *to, const int64_t *toStrides, void *from, const int64_t *fromStrides,
                       const int64_t *sizes, int64_t rank, size_t elementBytes, void *stream) {
  struct array a;
  char *target = to;
  const char *source = from;
  if (mgpu_pending() || take(&a, &target, toStrides, &source, fromStrides, sizes, rank, elementBytes, stream))
    return;
  if (!to || !from) {
    mgpu_fail(MGPU_ERROR_INVALID, "A copy of an array has NULL as its %s.", to ? "source" : "destination");
    return;
  }
  sort_and_merge(&a);
  copy_dims(&a, target, source, (int64_t)elementBytes);
}

/* Writes one element: the driver fills 1, 2, 4 and 8 bytes. */
static int set_element(const struct array *a, char *to, const char *value, size_t element) {
  for (size_t done = 0; done < element;) {
    size_t piece = 8;
    while (piece > element - done)
      piece /= 2;
    uint64_t word = 0;
    memcpy(&word, value + done, piece); /* the low bytes: all our hosts are little-endian */
    int failure = a->backend->memset(a->place.device, to + done, word, (unsigned)piece, 1, a->place.driver);
    if (failure)
      return failure;
    done += piece;
  }
  return 0;
}

/* Extends what stands in dimensions [inner, rank) over dimension inner - 1 as well. */
static int double_along(const struct array *a, char *to, int inner, int64_t element) {
  const struct dimension *along = &a->dims[inner - 1];
  for (int64_t done = 1; along->to && done < along->size;) {
    struct array part = *a;
    part.rank = a->rank - inner + 1;
    memcpy(part.dims, a->dims + inner - 1, (size_t)part.rank * sizeof *part.dims);
    int64_t next = done < along->size - done ? done : along->size - done;
    part.dims[0].size = next;
    sort_and_merge(&part);
    int failure = copy_dims(&part, to + done * along->to, to, element);
    if (failure)
      return failure;
    done += next;
  }
  return 0;
}

void mgpuMemsetStrided(void *to, const int64_t *strides, const int64_t *sizes, int64_t rank,
                       const void *value, size_t elementBytes, void *stream) {
  struct array a;
  char *target = to;
  if (mgpu_pending() || take(&a, &target, strides, NULL, NULL, sizes, rank, elementBytes, stream))
    return;
  if (!to || !value) {
    mgpu_fail(MGPU_ERROR_INVALID, "A fill of an array has NULL as its %s.", to ? "value" : "destination");
    return;
  }
  int64_t element = (int64_t)elementBytes;
  for (int i = 0; i < a.rank; ++i)
    a.dims[i].from = a.dims[i].to;
  sort_and_merge(&a);
  bool word = elementBytes <= 8 && (elementBytes & (elementBytes - 1)) == 0;
  int inner = a.rank, failure;
  if (word && a.rank && a.dims[a.rank - 1].to == element) {
    uint64_t bits = 0;
    memcpy(&bits, value, elementBytes);
    failure = a.backend->memset(a.place.device, target, bits, (unsigned)elementBytes,
                                (size_t)a.dims[--inner].size, a.place.driver);
  } else
    failure = set_element(&a, target, value, elementBytes);
  for (; inner > 0 && !failure; --inner)
    failure = double_along(&a, target, inner, element);
}

void mgpuCheckShapes(int64_t rank, const int64_t *to, const int64_t *from, const char *place) {
  for (int64_t i = 0; i < rank; ++i)
    if (to[i] != from[i]) {
      char target_words[200], source_words[200];
      struct mgpu_text target = {target_words, sizeof target_words, 0};
      struct mgpu_text source = {source_words, sizeof source_words, 0};
      mgpu_text_sizes(&target, rank, to);
      mgpu_text_sizes(&source, rank, from);
      mgpu_fail(MGPU_ERROR_INVALID, "%s: gpu.memcpy copies an array of shape (%s) to one of shape (%s).",
                place, source.data, target.data);
      return;
    }
}
