/* sparse_spgemm.h: the part of sparse_library.h with products of sparse matrices. */

enum { MADE, ASKED_FIRST, ESTIMATED, ASKED_SECOND, COMPUTED };

EXPORT int NAME(SpGEMM_createDescr)(void **out) {
  FAIL_IF_ASKED(TEXT(SpGEMM_createDescr));
  *out = calloc(1, sizeof(struct spgemm));
  count(DESCRIPTORS, 1);
  return SUCCESS;
}

EXPORT int NAME(SpGEMM_destroyDescr)(void *pointer) {
  struct spgemm *s = pointer;
  int status = asked(TEXT(SpGEMM_destroyDescr));
  free(s->result.at);
  free(s->there);
  free(s);
  count(DESCRIPTORS, -1);
  return status;
}

/* What each phase refuses. */
static int check_spgemm(const struct handle *handle, int mode_a, int mode_b,
                        const struct descriptor *const of[3], int compute, int way) {
  int status = check(handle, of, compute);
  if (status)
    return status;
  if ((mode_a == CONJUGATED && !is_complex(of[0]->type)) ||
      (mode_b == CONJUGATED && !is_complex(of[1]->type)))
    return INVALID_VALUE;
  for (int i = 0; i < 3; ++i)
    if (of[i]->format != CSR || of[i]->type != compute || of[i]->first_type != of[0]->first_type ||
        of[i]->second_type != of[0]->second_type)
      return NOT_SUPPORTED;
  return mode_a || mode_b ? NOT_SUPPORTED : way ? INVALID_VALUE : SUCCESS;
}

static int next_phase(struct spgemm *s, int phase, size_t *size, void *buffer, size_t needed) {
  int half = phase == ASKED_FIRST ? 0 : 1;
  if (!buffer) {
    if (s->phase != phase - 1)
      return INVALID_VALUE;
    *size = s->sizes[half] = needed;
    s->phase = phase;
    return SUCCESS;
  }
  if (s->phase != phase || *size < s->sizes[half])
    return INVALID_VALUE;
  s->buffers[half] = buffer;
  memset(buffer, 0x33, s->sizes[half]);
  s->phase = phase + 1;
  return SUCCESS;
}

EXPORT int NAME(SpGEMM_workEstimation)(void *handle, int mode_a, int mode_b, const void *alpha, const void *a,
                                       const void *b, const void *beta, void *c, int compute, int way,
                                       void *spgemm, size_t *size, void *buffer) {
  const struct descriptor *const of[] = {a, b, c};
  (void)alpha;
  (void)beta;
  FAIL_IF_ASKED(TEXT(SpGEMM_workEstimation));
  int status = check_spgemm(handle, mode_a, mode_b, of, compute, way);
  return status ? status : next_phase(spgemm, ASKED_FIRST, size, buffer, 24);
}

EXPORT int NAME(SpGEMM_compute)(void *handle, int mode_a, int mode_b, const void *alpha, const void *left,
                                const void *right, const void *beta, void *result, int compute, int way,
                                void *spgemm, size_t *size, void *buffer) {
  const struct descriptor *const of[] = {left, right, result};
  struct spgemm *s = spgemm;
  struct descriptor *c = result;
  FAIL_IF_ASKED(TEXT(SpGEMM_compute));
  int status = check_spgemm(handle, mode_a, mode_b, of, compute, way);
  if (!status)
    status = next_phase(s, ASKED_SECOND, size, buffer, 56);
  if (status || !buffer)
    return status;
  (void)alpha;
  (void)beta;
  int64_t inner = of[0]->cols, elements = c->rows * c->cols;
  bool *in_a = calloc((size_t)(c->rows * inner) + 1, 1), *in_b = calloc((size_t)(inner * c->cols) + 1, 1);
  struct full a = full_of(left, 0, in_a), b = full_of(right, 0, in_b);
  free(s->result.at);
  free(s->there);
  s->result = full_make(c->rows, c->cols);
  s->there = calloc((size_t)elements + 1, 1);
  c->stored = 0;
  for (int64_t i = 0; i < elements; ++i) {
    for (int64_t k = 0; k < inner && !s->there[i]; ++k)
      s->there[i] = in_a[i / c->cols * inner + k] && in_b[k * c->cols + i % c->cols];
    s->result.at[i] = full_dot(&a, i / c->cols, &b, i % c->cols);
    c->stored += s->there[i];
  }
  free(a.at);
  free(b.at);
  free(in_a);
  free(in_b);
  return SUCCESS;
}

EXPORT int NAME(SpGEMM_copy)(void *pointer, int mode_a, int mode_b, const void *alpha, const void *a,
                             const void *b, const void *beta, void *result, int compute, int way,
                             void *spgemm) {
  const struct descriptor *const of[] = {a, b, result};
  const struct handle *handle = pointer;
  struct descriptor *c = result;
  struct spgemm *s = spgemm;
  FAIL_IF_ASKED(TEXT(SpGEMM_copy));
  int status = check_spgemm(handle, mode_a, mode_b, of, compute, way);
  if (status)
    return status;
  if (s->phase != COMPUTED || (c->stored && (!c->first || !c->second || !c->values)))
    return INVALID_VALUE;
  for (int half = 0; half < 2; ++half) /* the buffers must have stayed as they are */
    for (size_t i = 0; i < s->sizes[half]; ++i)
      if (((char *)s->buffers[half])[i] != 0x33)
        return INVALID_VALUE;
  int64_t at = 0;
  for (int64_t i = 0; i < c->rows; ++i) {
    index_put(c->first_type, c->first, i, at);
    for (int64_t j = 0; j < c->cols; ++j)
      if (s->there[i * c->cols + j]) {
        index_put(c->second_type, c->second, at, j);
        store(c->type, c->values, at,
              combine(compute, alpha, s->result.at[i * c->cols + j], beta, load(c->type, c->values, at)));
        ++at;
      }
  }
  index_put(c->first_type, c->first, c->rows, at);
  note("%s S%d", TEXT(SpGEMM_copy), number_of(handle->stream));
  return SUCCESS;
}
