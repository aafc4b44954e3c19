/* check.c: types, modes and shapes of sparse operations, before anything is computed. */
#include "core/error.h"
#include "sparse/sparse.h"

enum family { INTEGER, REAL, COMPLEX };

struct type {
  const char *name;
  enum family family;
  int bits; /* of a part */
};

static const struct type *type_of(int type) {
  static const struct type types[] = {
      [MGPU_F32] = {"f32", REAL, 32},
      [MGPU_F64] = {"f64", REAL, 64},
      [MGPU_F16] = {"f16", REAL, 16},
      [MGPU_I8] = {"i8", INTEGER, 8},
      [MGPU_C32] = {"complex<f32>", COMPLEX, 32},
      [MGPU_C64] = {"complex<f64>", COMPLEX, 64},
      [MGPU_C16] = {"complex<f16>", COMPLEX, 16},
      [MGPU_I32] = {"i32", INTEGER, 32},
      [MGPU_BF16] = {"bf16", REAL, 16},
      [MGPU_CBF16] = {"complex<bf16>", COMPLEX, 16},
  };
  bool known = type >= 0 && (size_t)type < sizeof types / sizeof *types && types[type].name;
  return known ? &types[type] : NULL;
}

int mgpu_sparse_check_type(const char *what, int type) {
  if (type_of(type))
    return 0;
  return mgpu_fail(
      MGPU_ERROR_UNSUPPORTED,
      "%s has values of the type %d; known are f16, bf16, f32, f64, i8, i32 and complex numbers of "
      "floats.",
      what, type);
}

const char *mgpu_sparse_type_name(int type) { return type_of(type)->name; }

void mgpu_sparse_tell(struct mgpu_text *text, const struct mgpu_sparse *operand, int mode) {
  static const char *const formats[] = {"COO", "COO (pairs)", "CSR", "CSC", "BSR"};
  static const char *const modes[] = {"", ", transposed", ", conjugated and transposed"};
  const char *type = mgpu_sparse_type_name(operand->type);
  if (operand->kind == MGPU_SPARSE_MATRIX && operand->format == MGPU_2TO4)
    mgpu_text_add(text, "2:4 of %s%s", type, modes[mode]);
  else if (operand->kind == MGPU_SPARSE_MATRIX)
    mgpu_text_add(text, "%s of %s with %d-bit indices%s", formats[operand->format], type,
                  8 << operand->index_type, modes[mode]);
  else
    mgpu_text_add(text, "dense %s%s", type, modes[mode]);
}

size_t mgpu_sparse_type_size(int type) {
  const struct type *known = type_of(type);
  return (size_t)known->bits / 8 * (known->family == COMPLEX ? 2 : 1);
}

bool mgpu_sparse_is_complex(int type) { return type_of(type)->family == COMPLEX; }

int mgpu_sparse_check_buffer(const char *what, size_t size, size_t needed) {
  if (size >= needed)
    return 0;
  return mgpu_fail(MGPU_ERROR_INVALID, "%s has a buffer of %zu bytes; it needs %zu.", what, size, needed);
}

int mgpu_sparse_check_index_type(const char *what, int type) {
  if (type >= MGPU_INDEX_U16 && type <= MGPU_INDEX_I64)
    return 0;
  return mgpu_fail(MGPU_ERROR_UNSUPPORTED,
                   "%s has indices of the type %d; known are 1 (16 bits), 2 (32 bits) and 3 (64 bits).", what,
                   type);
}

static int no_such_size(const char *what, int64_t rows, int64_t cols) {
  return mgpu_fail(MGPU_ERROR_INVALID, "%s cannot have the size %lld x %lld.", what, (long long)rows,
                   (long long)cols);
}

int mgpu_sparse_check_shape(const char *what, int64_t rows, int64_t cols) {
  const int64_t most = INT64_MAX / 16;
  return rows < 0 || cols < 0 || rows > most || cols > most ? no_such_size(what, rows, cols) : 0;
}

int mgpu_sparse_check_dense(const char *what, int64_t rows, int64_t cols) {
  int64_t elements, bytes;
  if (__builtin_mul_overflow(rows, cols, &elements) || __builtin_mul_overflow(elements, (int64_t)16, &bytes))
    return no_such_size(what, rows, cols);
  return mgpu_sparse_check_shape(what, rows, cols);
}

/* An operand's values take part in sums of the compute type without loss. Sums become integers only from
 * integers, and lose no imaginary part. */
static bool fits(const struct type *values, const struct type *compute, bool is_result) {
  if (compute->family == INTEGER)
    return values->family == INTEGER;
  if (values->family == INTEGER)
    return !is_result && values->bits == 8;
  if (values->bits > compute->bits)
    return false;
  return is_result ? values->family == compute->family : values->family <= compute->family;
}

static int check_types(const struct mgpu_sparse_call *call) {
  const struct type *compute = type_of(call->compute);
  if (!compute || call->compute == MGPU_I8)
    return mgpu_fail(
        MGPU_ERROR_UNSUPPORTED,
        "%s cannot compute in the type %d; it computes in f16, bf16, f32, f64, i32 and complex numbers "
        "of floats.",
        call->what, call->compute);
  const struct type *a = type_of(call->a->type), *b = type_of(call->b->type), *c = type_of(call->c->type);
  if (fits(a, compute, false) && fits(b, compute, false) && fits(c, compute, true))
    return 0;
  return mgpu_fail(
      MGPU_ERROR_UNSUPPORTED,
      "%s cannot compute %s from %s and %s in %s: the compute type must be as wide as every operand, "
      "and real, complex or integer as the result is.",
      call->what, c->name, a->name, b->name, compute->name);
}

int mgpu_sparse_check_call(const struct mgpu_sparse_call *call) {
  if (call->mode_a < MGPU_AS_IS || call->mode_a > MGPU_CONJUGATE_TRANSPOSE || call->mode_b < MGPU_AS_IS ||
      call->mode_b > MGPU_CONJUGATE_TRANSPOSE)
    return mgpu_fail(
        MGPU_ERROR_INVALID,
        "%s has the modes %d and %d; known are 0 (as it is), 1 (transposed) and 2 (conjugated and "
        "transposed).",
        call->what, call->mode_a, call->mode_b);
  int failure = check_types(call);
  if (failure)
    return failure;
  const struct mgpu_sparse *a = call->a, *b = call->b, *c = call->c;
  bool turn_a = call->mode_a != MGPU_AS_IS, turn_b = call->mode_b != MGPU_AS_IS;
  int64_t m = turn_a ? a->cols : a->rows, k = turn_a ? a->rows : a->cols;
  int64_t k_of_b = turn_b ? b->cols : b->rows, n = turn_b ? b->rows : b->cols;
  if (k != k_of_b || c->rows != m || c->cols != n)
    return mgpu_fail(MGPU_ERROR_INVALID, "%s multiplies %lld x %lld by %lld x %lld into %lld x %lld.",
                     call->what, (long long)m, (long long)k, (long long)k_of_b, (long long)n,
                     (long long)c->rows, (long long)c->cols);
  return 0;
}
