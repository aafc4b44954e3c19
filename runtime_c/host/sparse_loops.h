/* sparse_loops.h: the loops of sparse operations for one type of sums. Included once per type by
 * host/sparse_math.c, with T, NAME(x), FROM(mgpu_wide), WIDE(T), CONJUGATE(T) and ADD_PRODUCT(T sum, T, T).
 */

static T NAME(load)(const struct mgpu_sparse *from, int64_t at, int mode) {
  T value = FROM(mgpu_number_load(from->type, from->values, at));
  return mode == MGPU_CONJUGATE_TRANSPOSE ? CONJUGATE(value) : value;
}

/* A dense operand after its mode, row by row; or, `turned`, column by column. NULL after mgpu_fail. */
static T *NAME(dense)(const struct mgpu_sparse *from, int mode, bool turned) {
  T *to = mgpu_sparse_room(from->rows * from->cols, sizeof *to);
  bool turn = (mode != MGPU_AS_IS) != turned;
  for (int64_t i = 0; to && i < from->rows; ++i)
    for (int64_t j = 0; j < from->cols; ++j)
      to[turn ? j * from->rows + i : i * from->cols + j] = NAME(load)(from, i * from->cols + j, mode);
  return to;
}

static int NAME(spmm)(const struct mgpu_sparse_call *call, const struct mgpu_entries *a) {
  int64_t n = call->c->cols, size = call->c->rows * n;
  T *b = NAME(dense)(call->b, call->mode_b, false), *c = b ? NAME(dense)(call->c, MGPU_AS_IS, false) : NULL;
  int failure = c ? 0 : mgpu_pending();
  for (int64_t i = 0; c && i < a->count; ++i) {
    T value = NAME(load)(call->a, a->slots[i], call->mode_a), *to = c + a->rows[i] * n;
    const T *from = b + a->cols[i] * n;
    for (int64_t j = 0; j < n; ++j)
      ADD_PRODUCT(to[j], value, from[j]);
  }
  for (int64_t i = 0; c && i < size; ++i)
    mgpu_number_store(call->c->type, call->c->values, i, WIDE(c[i]));
  free(b);
  free(c);
  return failure;
}

static int NAME(sddmm)(const struct mgpu_sparse_call *call, const struct mgpu_entries *c) {
  int64_t depth = call->mode_a == MGPU_AS_IS ? call->a->cols : call->a->rows;
  T *a = NAME(dense)(call->a, call->mode_a, false), *b = a ? NAME(dense)(call->b, call->mode_b, true) : NULL;
  int failure = b ? 0 : mgpu_pending();
  for (int64_t i = 0; b && i < c->count; ++i) {
    T sum = NAME(load)(call->c, c->slots[i], MGPU_AS_IS);
    const T *row = a + c->rows[i] * depth, *col = b + c->cols[i] * depth;
    for (int64_t k = 0; k < depth; ++k)
      ADD_PRODUCT(sum, row[k], col[k]);
    mgpu_number_store(call->c->type, call->c->values, c->slots[i], WIDE(sum));
  }
  free(a);
  free(b);
  return failure;
}

/* One row of the result: sums by column, and which columns have one. */
struct NAME(row) {
  T *sums;
  int64_t *stamps; /* the row that a column was last in, and 1 */
  int64_t *cols;
  int64_t count;
};

static void NAME(add)(struct NAME(row) * row, int64_t i, int64_t col, T left, T right) {
  if (row->stamps[col] != i + 1) {
    row->stamps[col] = i + 1;
    row->sums[col] = FROM(((struct mgpu_wide){0, 0}));
    row->cols[row->count++] = col;
  }
  ADD_PRODUCT(row->sums[col], left, right);
}

static int NAME(spgemm)(const struct mgpu_sparse_call *call, const struct mgpu_spgemm_input *input,
                        struct mgpu_spgemm_result *result) {
  struct NAME(row) row = {mgpu_sparse_room(input->cols, sizeof(T)), calloc((size_t)input->cols + 1, 8),
                          mgpu_sparse_room(input->cols, sizeof(int64_t)), 0};
  const T one = FROM(((struct mgpu_wide){1, 0}));
  int failure = 0;
  if (!row.sums || !row.cols || !row.stamps)
    failure = mgpu_fail(MGPU_ERROR_MEMORY, "Out of memory for a row of a sparse matrix.");
  int64_t used = 0, room = 0;
  for (int64_t i = 0; !failure && i < input->rows; ++i) {
    row.count = 0;
    for (int64_t k = input->c_rows[i]; k < input->c_rows[i + 1]; ++k)
      NAME(add)(&row, i, input->c.cols[k], NAME(load)(call->c, input->c.slots[k], MGPU_AS_IS), one);
    for (int64_t k = input->a_rows[i]; k < input->a_rows[i + 1]; ++k) {
      T value = NAME(load)(call->a, input->a.slots[k], call->mode_a);
      int64_t inner = input->a.cols[k];
      for (int64_t j = input->b_rows[inner]; j < input->b_rows[inner + 1]; ++j)
        NAME(add)(&row, i, input->b.cols[j], value, NAME(load)(call->b, input->b.slots[j], call->mode_b));
    }
    qsort(row.cols, (size_t)row.count, sizeof *row.cols, by_value);
    if (used + row.count > room && (failure = grow(result, used + row.count, &room)) != 0)
      break;
    for (int64_t j = 0; j < row.count; ++j, ++used) {
      result->cols[used] = row.cols[j];
      result->values[used] = WIDE(row.sums[row.cols[j]]);
    }
    result->positions[i + 1] = used;
  }
  free(row.sums);
  free(row.stamps);
  free(row.cols);
  return failure;
}

static const struct mgpu_sparse_math NAME(math) = {NAME(spmm), NAME(sddmm), NAME(spgemm)};

#undef T
#undef NAME
#undef FROM
#undef WIDE
#undef CONJUGATE
#undef ADD_PRODUCT
