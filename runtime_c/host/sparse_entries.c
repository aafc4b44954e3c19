/* sparse_entries.c: sparse matrices of every format as lists of entries, with checked indices. */
#include "host/sparse.h"

#include "core/error.h"

#include <stdlib.h>

void *mgpu_sparse_room(int64_t count, size_t bytes) {
  size_t size;
  void *memory = NULL;
  if (!__builtin_mul_overflow((size_t)(count > 0 ? count : 1), bytes, &size) && size <= SIZE_MAX / 2)
    memory = malloc(size);
  if (!memory)
    mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a sparse operation on %lld elements.", (long long)count);
  return memory;
}

void mgpu_entries_free(struct mgpu_entries *entries) {
  free(entries->rows);
  *entries = (struct mgpu_entries){0, NULL, NULL, NULL};
}

static int make_room(struct mgpu_entries *entries, int64_t count) {
  int64_t *memory = mgpu_sparse_room(count, 3 * sizeof *memory);
  if (!memory)
    return mgpu_pending();
  *entries = (struct mgpu_entries){count, memory, memory + count, memory + 2 * count};
  return 0;
}

static int missing(void) {
  return mgpu_fail(MGPU_ERROR_INVALID,
                   "A sparse matrix with entries has NULL as the memory of its indices or "
                   "values.");
}

/* Positions go from 0 up to at most the number of stored entries. */
static int check_positions(const struct mgpu_sparse *matrix, int64_t lines) {
  int64_t last = 0;
  if (!matrix->positions)
    return missing();
  for (int64_t i = 0; i <= lines; ++i) {
    int64_t position = mgpu_index_load(matrix->position_type, matrix->positions, i);
    if (position < last || position > matrix->stored || (i == 0 && position != 0))
      return mgpu_fail(
          MGPU_ERROR_INVALID,
          "Position %lld of a sparse matrix is %lld; positions begin with 0, never fall, and end at "
          "most at the number of entries, %lld.",
          (long long)i, (long long)position, (long long)matrix->stored);
    last = position;
  }
  return 0;
}

/* CSR, CSC and BSR: `lines` rows or columns with `across` blocks each at most. Writes entry by entry. */
static int read_compressed(const struct mgpu_sparse *matrix, int64_t lines, int64_t across, int64_t *line,
                           int64_t *place, struct mgpu_entries *entries) {
  int64_t height = matrix->block_rows, width = matrix->block_cols, at = 0;
  for (int64_t i = 0; i < lines; ++i) {
    int64_t end = mgpu_index_load(matrix->position_type, matrix->positions, i + 1);
    int64_t begin = mgpu_index_load(matrix->position_type, matrix->positions, i);
    for (int64_t k = begin; k < end; ++k) {
      int64_t index = mgpu_index_load(matrix->index_type, matrix->indices, k);
      if (index < 0 || index >= across)
        return mgpu_fail(MGPU_ERROR_INVALID,
                         "Index %lld of a sparse matrix is %lld; it must be in [0, %lld).", (long long)k,
                         (long long)index, (long long)across);
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; ++c, ++at) {
          line[at] = i * height + r;
          place[at] = index * width + c;
          entries->slots[at] = (k * height + r) * width + c;
        }
    }
  }
  entries->count = at; /* fewer than stored when the positions end early */
  return 0;
}

static int read_coo(const struct mgpu_sparse *matrix, struct mgpu_entries *entries) {
  bool pairs = matrix->format == MGPU_COO_AOS;
  if (!pairs && !matrix->positions)
    return missing();
  for (int64_t i = 0; i < matrix->stored; ++i) {
    int64_t row = pairs ? mgpu_index_load(matrix->index_type, matrix->indices, 2 * i)
                        : mgpu_index_load(matrix->position_type, matrix->positions, i);
    int64_t col = mgpu_index_load(matrix->index_type, matrix->indices, pairs ? 2 * i + 1 : i);
    if (row < 0 || row >= matrix->rows || col < 0 || col >= matrix->cols)
      return mgpu_fail(MGPU_ERROR_INVALID,
                       "Entry %lld of a sparse matrix of %lld x %lld is at (%lld, %lld), outside of it.",
                       (long long)i, (long long)matrix->rows, (long long)matrix->cols, (long long)row,
                       (long long)col);
    entries->rows[i] = row;
    entries->cols[i] = col;
    entries->slots[i] = i;
  }
  return 0;
}

static bool is_zero(struct mgpu_wide value) { return value.re == 0 && value.im == 0; }

/* 2:4 matrices keep all values; what is 0 takes no part. */
static void read_2to4(const struct mgpu_sparse *matrix, struct mgpu_entries *entries) {
  int64_t at = 0;
  for (int64_t i = 0; i < matrix->rows; ++i)
    for (int64_t j = 0; j < matrix->cols; ++j)
      if (!is_zero(mgpu_number_load(matrix->type, matrix->values, i * matrix->cols + j))) {
        entries->rows[at] = i;
        entries->cols[at] = j;
        entries->slots[at++] = i * matrix->cols + j;
      }
  entries->count = at;
}

static int read_entries(const struct mgpu_sparse *matrix, struct mgpu_entries *entries) {
  switch (matrix->format) {
  case MGPU_COO:
  case MGPU_COO_AOS:
    return read_coo(matrix, entries);
  case MGPU_CSC:
    return read_compressed(matrix, matrix->cols, matrix->rows, entries->cols, entries->rows, entries);
  case MGPU_CSR:
  case MGPU_BSR:
    return read_compressed(matrix, matrix->rows / matrix->block_rows, matrix->cols / matrix->block_cols,
                           entries->rows, entries->cols, entries);
  case MGPU_2TO4:
    read_2to4(matrix, entries);
  }
  return 0;
}

int mgpu_entries_of(const struct mgpu_sparse *matrix, int mode, struct mgpu_entries *entries) {
  *entries = (struct mgpu_entries){0, NULL, NULL, NULL};
  int64_t room = matrix->stored * matrix->block_rows * matrix->block_cols;
  if (matrix->format == MGPU_2TO4)
    room = matrix->rows * matrix->cols;
  else if (room == 0)
    return 0; /* then the memory may be missing */
  else if (!matrix->indices || !matrix->values)
    return missing();
  int failure = 0;
  if (matrix->format == MGPU_CSC)
    failure = check_positions(matrix, matrix->cols);
  else if (matrix->format == MGPU_CSR || matrix->format == MGPU_BSR)
    failure = check_positions(matrix, matrix->rows / matrix->block_rows);
  if (!failure)
    failure = make_room(entries, room);
  if (!failure)
    failure = read_entries(matrix, entries);
  if (failure) {
    mgpu_entries_free(entries);
    return failure;
  }
  if (mode != MGPU_AS_IS) {
    /* `rows` owns the memory: its contents move, not the pointer. */
    for (int64_t i = 0; i < entries->count; ++i) {
      int64_t row = entries->rows[i];
      entries->rows[i] = entries->cols[i];
      entries->cols[i] = row;
    }
  }
  return 0;
}

int mgpu_entries_by_row(struct mgpu_entries *entries, int64_t rows, int64_t **out) {
  int64_t *positions = mgpu_sparse_room(rows + 1, sizeof *positions);
  struct mgpu_entries sorted;
  if (!positions || make_room(&sorted, entries->count)) {
    free(positions);
    return mgpu_pending();
  }
  for (int64_t i = 0; i <= rows; ++i)
    positions[i] = 0;
  for (int64_t i = 0; i < entries->count; ++i)
    ++positions[entries->rows[i] + 1];
  for (int64_t i = 0; i < rows; ++i)
    positions[i + 1] += positions[i];
  for (int64_t i = 0; i < entries->count; ++i) {
    int64_t at = positions[entries->rows[i]]++;
    sorted.rows[at] = entries->rows[i];
    sorted.cols[at] = entries->cols[i];
    sorted.slots[at] = entries->slots[i];
  }
  for (int64_t i = rows; i > 0; --i) /* each position has moved to the end of its row */
    positions[i] = positions[i - 1];
  positions[0] = 0;
  mgpu_entries_free(entries);
  *entries = sorted;
  *out = positions;
  return 0;
}
