/* test_sparse.c: sparse operations on the CPU: protocols, what is refused, rounding, many threads. Numbers
 * are compared with NumPy's in tests/operations. */
#include "check.h"
#include "sparse/numbers.h"

#include <math.h>
#include <pthread.h>

/* [1 0 2; 0 0 0; 0 3 4] */
static int32_t positions[] = {0, 2, 2, 4}, columns[] = {0, 2, 1, 2};
static float values[] = {1, 2, 3, 4};

static void *csr(void) {
  return mgpuCreateCsr(3, 3, 4, positions, columns, values, MGPU_INDEX_I32, MGPU_INDEX_I32, MGPU_F32, NULL);
}

static void *vector(float *memory, intptr_t size) { return mgpuCreateDnVec(size, memory, MGPU_F32, NULL); }

static void multiply(void *matrix, void *x, void *y, int32_t mode, int32_t compute) {
  mgpuSpMV(mode, matrix, x, y, compute, NULL, NULL);
}

static void test_spmv(void) {
  float x[] = {1, 2, 3}, y[] = {10, 20, 30}, turned[] = {0, 0, 0};
  void *matrix = csr(), *dx = vector(x, 3), *dy = vector(y, 3), *dt = vector(turned, 3);
  CHECK(mgpuSpMVBufferSize(0, matrix, dx, dy, MGPU_F32, NULL) > 0, "a size that can be allocated");
  multiply(matrix, dx, dy, MGPU_AS_IS, MGPU_F32);
  multiply(matrix, dx, dt, MGPU_TRANSPOSE, MGPU_F64);
  CHECK_CLEAN();
  CHECK(y[0] == 17 && y[1] == 20 && y[2] == 48, "%g %g %g", (double)y[0], (double)y[1], (double)y[2]);
  CHECK(turned[0] == 1 && turned[1] == 9 && turned[2] == 14, "%g %g %g", (double)turned[0], (double)turned[1],
        (double)turned[2]);
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnMat(dy, NULL);
  mgpuDestroyCuSparseLtDnMat(dt, NULL);
  CHECK_CLEAN();
}

static void test_nothing_to_do(void) {
  int64_t none[] = {0};
  float y[] = {5};
  void *empty = mgpuCreateCsr(0, 0, 0, none, NULL, NULL, 3, 3, MGPU_F32, NULL);
  void *zero = mgpuCreateCoo(1, 1, 0, NULL, NULL, NULL, 3, MGPU_F32, NULL);
  void *nothing = mgpuCreateDnVec(0, NULL, MGPU_F32, NULL), *dy = vector(y, 1);
  multiply(empty, nothing, nothing, MGPU_AS_IS, MGPU_F32);
  multiply(zero, dy, dy, MGPU_AS_IS, MGPU_F32);
  CHECK_CLEAN();
  CHECK(y[0] == 5, "y is as it was");
  mgpuDestroySpMat(NULL, NULL);
  mgpuDestroyDnVec(NULL, NULL);
  mgpuSpGEMMDestroyDescr(NULL, NULL);
  mgpuDestroySpMat(empty, NULL);
  mgpuDestroySpMat(zero, NULL);
  mgpuDestroyDnVec(nothing, NULL);
  mgpuDestroyDnVec(dy, NULL);
  CHECK_CLEAN();
}

static void test_handles(void) {
  float x[3] = {0};
  void *matrix = csr(), *dx = vector(x, 3), *plan = mgpuSpGEMMCreateDescr(NULL);
  void *square = mgpuCreateDnMat(1, 3, x, MGPU_F32, NULL);
  multiply(dx, dx, dx, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpMV needs a sparse matrix");
  multiply(matrix, dx, square, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "is a dense matrix");
  multiply(matrix, x, dx, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "none of this runtime");
  multiply(NULL, dx, dx, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "none of this runtime");
  mgpuDestroySpMat(dx, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no sparse matrix");
  mgpuDestroyDnVec(plan, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no dense vector or matrix");
  mgpuSpGEMMDestroyDescr(matrix, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no SpGEMM");
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroySpMat(matrix, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  multiply(matrix, dx, dx, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  int64_t sizes[3] = {7, 7, 7};
  mgpuSpMatGetSize(matrix, &sizes[0], &sizes[1], &sizes[2], NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no sparse matrix");
  CHECK(sizes[0] == 0 && sizes[1] == 0 && sizes[2] == 0, "sizes after a failure");
  mgpuSetCsrPointers(matrix, x, x, x, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no CSR matrix");
  mgpuSpMatGetSize(matrix, NULL, NULL, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "three places");
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnMat(square, NULL);
  mgpuSpGEMMDestroyDescr(plan, NULL);
  CHECK_CLEAN();
}

/* Sparse matrices are as large as what they store, not as their rows times their columns. */
static void test_large_sizes(void) {
  enum { BILLION = 1000000000 };
  int64_t rows = 0, cols = 0, entries = 0, at[] = {0, BILLION - 1};
  void *coo = mgpuCreateCoo(BILLION, BILLION, 2, at, at, values, MGPU_INDEX_I64, MGPU_F32, NULL);
  void *csr = mgpuCreateCsr(BILLION, BILLION, 2, at, at, values, 3, 3, MGPU_F32, NULL);
  void *csc = mgpuCreateCsc(BILLION, BILLION, 2, at, at, values, 3, 3, MGPU_F32, NULL);
  void *bsr = mgpuCreateBsr(BILLION / 2, BILLION / 4, 2, 2, 4, at, at, values, 3, 3, MGPU_F32, NULL);
  void *x = vector(values, BILLION), *const matrices[] = {coo, csr, csc, bsr}; /* nobody reads it */
  CHECK_CLEAN();
  for (int i = 0; i < 4; ++i) {
    CHECK(mgpuSpMVBufferSize(0, matrices[i], x, x, MGPU_F32, NULL) > 0, "format %d", i);
    mgpuSpMatGetSize(matrices[i], &rows, &cols, &entries, NULL);
    CHECK(rows == BILLION && cols == BILLION && entries == (i < 3 ? 2 : 16), "format %d", i);
    mgpuDestroySpMat(matrices[i], NULL);
  }
  mgpuDestroyDnVec(x, NULL);
  CHECK_CLEAN();
  CHECK(!mgpuCreateDnMat(BILLION, BILLION, values, MGPU_F32, NULL), "dense ones are");
  CHECK_ERROR(MGPU_ERROR_INVALID, "A dense matrix cannot have the size 1000000000 x 1000000000");
  CHECK(!mgpuCreateCoo(INT64_MAX / 8, 1, 0, at, at, values, 3, MGPU_F32, NULL), "too many rows");
  CHECK_ERROR(MGPU_ERROR_INVALID, "A COO matrix cannot have the size");
  CHECK(!mgpuCreateCsr(1, -1, 0, at, at, values, 3, 3, MGPU_F32, NULL), "fewer than none");
  CHECK_ERROR(MGPU_ERROR_INVALID, "A CSR matrix cannot have the size 1 x -1");
}

static void test_sizes_and_types(void) {
  float x[4] = {0};
  CHECK(!mgpuCreateDnVec(-1, x, MGPU_F32, NULL), "a negative size");
  CHECK_ERROR(MGPU_ERROR_INVALID, "cannot have the size -1");
  CHECK(!mgpuCreateDnMat(INTPTR_MAX, 2, x, MGPU_F32, NULL), "a large size");
  CHECK_ERROR(MGPU_ERROR_INVALID, "cannot have the size");
  CHECK(!mgpuCreateDnMat(2, 2, NULL, MGPU_F32, NULL), "no memory");
  CHECK_ERROR(MGPU_ERROR_INVALID, "NULL as its memory");
  CHECK(!mgpuCreateDnVec(1, x, 20, NULL), "i16");
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "values of the type 20");
  CHECK(!mgpuCreateCoo(1, 1, 1, x, x, x, 4, MGPU_F32, NULL), "unknown indices");
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "indices of the type 4");
  CHECK(!mgpuCreateCooAoS(1, 1, -1, x, x, 3, MGPU_F32, NULL), "a negative number");
  CHECK_ERROR(MGPU_ERROR_INVALID, "-1 entries");
  CHECK(!mgpuCreateBsr(1, 1, 1, 0, 2, x, x, x, 3, 3, MGPU_F32, NULL), "empty blocks");
  CHECK_ERROR(MGPU_ERROR_INVALID, "blocks of 0 x 2");
  CHECK(!mgpuCreateBsr(1, 1, INTPTR_MAX, 2, 2, x, x, x, 3, 3, MGPU_F32, NULL), "many blocks");
  CHECK_ERROR(MGPU_ERROR_INVALID, "blocks of 2 x 2");
  void *matrix = csr(), *three = vector(x, 3), *four = vector(x, 4);
  multiply(matrix, four, three, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpMV multiplies 3 x 3 by 4 x 1 into 3 x 1");
  CHECK(mgpuSpMVBufferSize(0, matrix, four, three, MGPU_F32, NULL) == 0, "of no operation");
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpMV multiplies");
  multiply(matrix, three, three, 3, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "has the modes 3 and 0");
  multiply(matrix, three, three, 0, 99);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "in the type 99");
  multiply(matrix, three, three, 0, MGPU_I8);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "in the type 3");
  multiply(matrix, three, three, 0, MGPU_F16);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "cannot compute f32 from f32 and f32 in f16");
  multiply(matrix, three, three, 0, MGPU_I32);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "in i32");
  multiply(matrix, three, three, 0, MGPU_C32);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "in complex<f32>");
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(three, NULL);
  mgpuDestroyDnVec(four, NULL);
}

/* A matrix that is found to be wrong when it is used; y stays. */
static void expect_damage(void *matrix, const char *part) {
  float x[] = {1, 1, 1}, y[] = {1, 2, 3};
  void *dx = vector(x, 3), *dy = vector(y, 3);
  multiply(matrix, dx, dy, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, part);
  CHECK(y[0] == 1 && y[1] == 2 && y[2] == 3, "y is as it was");
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnVec(dy, NULL);
  CHECK_CLEAN();
}

static void test_damaged_matrices(void) {
  int64_t falls[] = {0, 2, 1, 4}, beyond[] = {0, 1, 2, 5}, late[] = {1, 2, 3, 4}, good[] = {0, 1, 2, 3};
  int64_t wide[] = {0, 1, 3}, negative[] = {0, -1, 2}, pairs[] = {0, 0, 3, 1, 1, 1};
  expect_damage(mgpuCreateCsr(3, 3, 4, falls, good, values, 3, 3, MGPU_F32, NULL), "Position 2");
  expect_damage(mgpuCreateCsr(3, 3, 4, beyond, good, values, 3, 3, MGPU_F32, NULL), "Position 3");
  expect_damage(mgpuCreateCsc(3, 3, 4, late, good, values, 3, 3, MGPU_F32, NULL), "Position 0");
  expect_damage(mgpuCreateCsr(3, 3, 3, good, wide, values, 3, 3, MGPU_F32, NULL), "Index 2");
  expect_damage(mgpuCreateCsc(3, 3, 3, good, negative, values, 3, 3, MGPU_F32, NULL), "is -1");
  expect_damage(mgpuCreateBsr(3, 3, 3, 1, 1, good, wide, values, 3, 3, MGPU_F32, NULL), "Index 2");
  expect_damage(mgpuCreateCoo(3, 3, 3, wide, wide, values, 3, MGPU_F32, NULL), "(3, 3)");
  expect_damage(mgpuCreateCooAoS(3, 3, 3, pairs, values, 3, MGPU_F32, NULL), "(3, 1)");
  expect_damage(mgpuCreateCoo(3, 3, 3, NULL, wide, values, 3, MGPU_F32, NULL), "NULL");
  expect_damage(mgpuCreateCsr(3, 3, 3, NULL, wide, values, 3, 3, MGPU_F32, NULL), "NULL");
  expect_damage(mgpuCreateCsr(3, 3, 3, good, NULL, values, 3, 3, MGPU_F32, NULL), "NULL");
  expect_damage(mgpuCreateCsc(3, 3, 3, good, wide, NULL, 3, 3, MGPU_F32, NULL), "NULL");
}

static void test_pending_errors(void) {
  float x[3] = {0};
  void *matrix = csr(), *dx = vector(x, 3);
  int64_t size = 7;
  multiply(NULL, dx, dx, 0, MGPU_F32);
  CHECK(!csr() && !vector(x, 3) && !mgpuSpGEMMCreateDescr(NULL), "nothing is made");
  CHECK(mgpuSpMVBufferSize(0, matrix, dx, dx, MGPU_F32, NULL) == 0, "no size");
  mgpuSpMatGetSize(matrix, &size, &size, &size, NULL);
  CHECK(size == 0, "no size");
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "(nil)");
  multiply(matrix, dx, dx, 0, MGPU_F32);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already"); /* what releases things has run */
}

static void test_spgemm(void) {
  int32_t rows[4] = {0}, tiny[1];
  char buffer[64];
  void *a = csr(), *b = csr(), *c = mgpuCreateCsr(3, 3, 0, rows, NULL, NULL, 2, 2, MGPU_F32, NULL);
  void *plan = mgpuSpGEMMCreateDescr(NULL);
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no result to copy");
  intptr_t size = mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 0, NULL, NULL);
  CHECK(size > 0 && size <= 64, "%ld", (long)size);
  CHECK(mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, size, buffer, NULL) == size,
        "the same again");
  CHECK(mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 0, tiny, NULL) == size, "a question");
  CHECK_CLEAN();
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no result to copy");
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 1, tiny, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "a buffer of 1 bytes");
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, -1, tiny, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "a buffer of -1 bytes");
  CHECK(mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, size, buffer, NULL) == size, "computed");
  int64_t m, n, entries;
  mgpuSpMatGetSize(c, &m, &n, &entries, NULL);
  CHECK(m == 3 && n == 3 && entries == 5, "%ld entries", (long)entries); /* [1 6 10; 0 0 0; 0 12 16] */
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no memory for 5 entries");
  int32_t cols[5];
  float sums[5];
  mgpuSetCsrPointers(c, rows, cols, sums, NULL);
  void *other = mgpuCreateCsr(3, 3, 0, rows, NULL, NULL, 2, 2, MGPU_F32, NULL);
  mgpuSpGEMMCopy(plan, 0, 0, a, b, other, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no result to copy");
  void *second = mgpuSpGEMMCreateDescr(NULL);
  mgpuSpGEMMCompute(second, 0, 0, a, b, other, MGPU_F32, size, buffer, NULL);
  mgpuSpGEMMCopy(plan, 0, 0, a, b, other, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "for another matrix");
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_CLEAN();
  const float wanted[] = {1, 6, 10, 12, 16};
  CHECK(memcmp(sums, wanted, sizeof wanted) == 0 && rows[1] == 3 && rows[2] == 3 && rows[3] == 5,
        "the product");
  CHECK(cols[0] == 0 && cols[1] == 1 && cols[2] == 2 && cols[3] == 1 && cols[4] == 2, "its columns");
  void *csc = mgpuCreateCsc(3, 3, 0, rows, NULL, NULL, 2, 2, MGPU_F32, NULL);
  mgpuSpGEMMCompute(plan, 0, 0, a, b, csc, MGPU_F32, size, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "CSR matrix only");
  mgpuSpGEMMCompute(a, 0, 0, a, b, c, MGPU_F32, size, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a SpGEMM");
  void *const matrices[] = {a, b, c, other, csc};
  for (int i = 0; i < 5; ++i)
    mgpuDestroySpMat(matrices[i], NULL);
  mgpuSpGEMMDestroyDescr(plan, NULL);
  mgpuSpGEMMDestroyDescr(second, NULL);
  CHECK_CLEAN();
}

/* A result with more columns than its 16-bit indices can name. */
static void test_spgemm_narrow_indices(void) {
  enum { WIDE = 70000 };
  int32_t p[] = {0, 1}, first[] = {0}, last[] = {WIDE - 1};
  uint16_t rows[2] = {0}, cols[1];
  float one[] = {1}, sum[1];
  char buffer[64];
  void *a = mgpuCreateCsr(1, 1, 1, p, first, one, 2, 2, MGPU_F32, NULL);
  void *b = mgpuCreateCsr(1, WIDE, 1, p, last, one, 2, 2, MGPU_F32, NULL);
  void *c = mgpuCreateCsr(1, WIDE, 0, rows, NULL, NULL, 1, 1, MGPU_F32, NULL),
       *plan = mgpuSpGEMMCreateDescr(NULL);
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 64, buffer, NULL);
  mgpuSetCsrPointers(c, rows, cols, sum, NULL);
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "need more bits");
  mgpuDestroySpMat(a, NULL);
  mgpuDestroySpMat(b, NULL);
  mgpuDestroySpMat(c, NULL);
  mgpuSpGEMMDestroyDescr(plan, NULL);
  CHECK_CLEAN();
}

/* Of four values two stay, also where some are no numbers; these are larger than all that are. */
static void test_2to4_without_numbers(void) {
  enum { NAN_ = 0x7E00, MINUS_NAN = 0xFE00, INF = 0x7C00, ONE = 0x3C00, TWO = 0x4000, ROWS = 4 };
  static const uint16_t given[ROWS][4] = {
      {NAN_, ONE, TWO, ONE}, {ONE, TWO, MINUS_NAN, ONE}, {ONE, NAN_, NAN_, NAN_}, {INF, ONE, NAN_, INF}};
  static const uint16_t pruned[ROWS][4] = {
      {NAN_, 0, TWO, 0}, {0, TWO, MINUS_NAN, 0}, {0, NAN_, NAN_, 0}, {INF, 0, NAN_, 0}};
  static char a_handle[44104], b_handle[11032], c_handle[11032];
  uint16_t a[ROWS][4], b[4] = {ONE, ONE, ONE, ONE}, c[ROWS] = {0};
  int64_t sizes[3];
  memcpy(a, given, sizeof a);
  mgpuCusparseLtCreate2To4SpMat(a_handle, ROWS, 4, a, MGPU_F16, NULL);
  mgpuCreateCuSparseLtDnMat(b_handle, 4, 1, b, MGPU_F16, NULL);
  mgpuCreateCuSparseLtDnMat(c_handle, ROWS, 1, c, MGPU_F16, NULL);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, b_handle, c_handle, 0, 2, NULL);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, NULL, NULL, NULL, NULL);
  CHECK_CLEAN();
  for (int i = 0; i < ROWS * 4; ++i)
    CHECK(a[i / 4][i % 4] == pruned[i / 4][i % 4], "row %d, value %d: %#x", i / 4, i % 4, a[i / 4][i % 4]);
  for (int i = 0; i < ROWS; ++i)
    CHECK((c[i] & 0x7FFF) > INF, "no number: %#x", c[i]);
  mgpuDestroyCuSparseLtSpMat(a_handle, NULL);
  mgpuDestroyCuSparseLtDnMat(b_handle, NULL);
  mgpuDestroyCuSparseLtDnMat(c_handle, NULL);
  CHECK_CLEAN();
}

static void test_two_to_four(void) {
  char a_handle[64], b_handle[64], c_handle[64]; /* nothing is written there */
  int8_t a[] = {1, -2, 3, 4, 0, 5, 0, 0}, b[] = {1, 2, 3, 4}, saturated[] = {120, -5};
  int64_t sizes[3] = {7, 7, 7};
  mgpuCreateSparseEnv();
  mgpuCreateSparseLtEnv();
  mgpuCusparseLtCreate2To4SpMat(a_handle, 2, 4, a, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(b_handle, 4, 1, b, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(c_handle, 2, 1, saturated, MGPU_I8, NULL);
  CHECK_CLEAN();
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, NULL, NULL, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs mgpuCuSparseLtSpMMBufferSize");
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, b_handle, c_handle, 2, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "compute type 2");
  CHECK(sizes[0] == 0 && sizes[1] == 0 && sizes[2] == 0, "sizes after a failure");
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, b_handle, c_handle, 1, 3, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "pruning flag 3");
  mgpuCuSparseLtSpMMBufferSize(NULL, 0, 0, a_handle, b_handle, c_handle, 1, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "three sizes");
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, b_handle, c_handle, 1, 0, NULL);
  CHECK(sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0, "sizes");
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, NULL, NULL, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "not 2:4 sparse: 4 of the four");
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, b_handle, c_handle, 1, 2, NULL);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, NULL, NULL, NULL, NULL);
  CHECK_CLEAN();
  CHECK(a[0] == 0 && a[1] == 0 && a[2] == 3 && a[3] == 4 && a[5] == 5, "pruned");
  CHECK(saturated[0] == 127 && saturated[1] == 5, "%d %d", saturated[0], saturated[1]);
  mgpuSpMM(0, 0, a_handle, b_handle, c_handle, MGPU_I32, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "cannot have a 2:4 sparse matrix");
  float dense[4] = {0};
  void *plain = csr(), *dn = mgpuCreateDnMat(3, 1, dense, MGPU_F32, NULL);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, plain, dn, dn, 0, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a 2:4 sparse matrix");
  mgpuDestroySpMat(plain, NULL);
  mgpuDestroyDnMat(dn, NULL);
  mgpuCusparseLtCreate2To4SpMat(a_handle, 4, 2, a, MGPU_I8, NULL); /* in place of the former */
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, c_handle, b_handle, 1, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "multiplies 4 x 2 by 1 x 2");
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 0, a_handle, c_handle, b_handle, 1, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "a multiple of 4");
  mgpuCusparseLtCreate2To4SpMat(NULL, 4, 2, a, MGPU_I8, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs a buffer");
  mgpuCusparseLtCreate2To4SpMat(a_handle, 4, 2, a, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "f16, bf16 and i8");
  mgpuDestroySpMat(a_handle, NULL);
  mgpuDestroyCuSparseLtSpMat(a_handle, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "destroyed already");
  mgpuDestroyCuSparseLtDnMat(b_handle, NULL);
  mgpuDestroyDnMat(c_handle, NULL);
  mgpuDestroySparseLtEnv();
  mgpuDestroySparseEnv();
  CHECK_CLEAN();
}

/* The next double up or down from a positive one. */
static double beside(double value, int step) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits += step;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

/* Every 16-bit float is itself after rounding; between two neighbours the nearest is taken, in the middle the
 * even. */
static void test_rounding(void) {
  for (int fraction = 10; fraction >= 7; fraction -= 3) {
    uint32_t infinity = fraction == 10 ? 0x7C00 : 0x7F80;
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      uint16_t low = (uint16_t)bits, high = (uint16_t)(bits + 1);
      double at = fraction == 10 ? (double)f16_to_float(low) : (double)bf16_to_float(low);
      double next = fraction == 10 ? (double)f16_to_float(high) : (double)bf16_to_float(high);
      if (bits + 1 == infinity)
        next = 2 * at - (fraction == 10 ? (double)f16_to_float((uint16_t)(bits - 1))
                                        : (double)bf16_to_float((uint16_t)(bits - 1)));
      double middle = at + (next - at) / 2;
      CHECK(mgpu_narrow(at, fraction) == low && mgpu_narrow(-at, fraction) == (low | 0x8000), "%x", bits);
      CHECK(mgpu_narrow(middle, fraction) == (bits & 1 ? high : low), "middle after %x", bits);
      CHECK(mgpu_narrow(beside(middle, -1), fraction) == low, "below the middle after %x", bits);
      CHECK(mgpu_narrow(beside(middle, 1), fraction) == high, "above the middle after %x", bits);
    }
    CHECK(mgpu_narrow(INFINITY, fraction) == infinity && mgpu_narrow(1e300, fraction) == infinity,
          "infinity");
    CHECK((mgpu_narrow(NAN, fraction) & 0x7FFF) > infinity, "NaN");
    CHECK(mgpu_narrow(-1e-300, fraction) == 0x8000 && mgpu_narrow(4.9e-324, fraction) == 0, "tiny");
  }
}

static void *work(void *matrix) {
  for (int i = 0; i < 200; ++i) {
    float x[] = {1, 2, 3}, y[] = {0, 0, 0};
    void *own = csr(), *dx = vector(x, 3), *dy = vector(y, 3);
    multiply(matrix, dx, dy, 0, MGPU_F32);
    multiply(own, dx, dy, 0, MGPU_F32);
    CHECK(y[0] == 14 && y[2] == 36, "%g %g", (double)y[0], (double)y[2]);
    mgpuDestroySpMat(own, NULL);
    mgpuDestroyDnVec(dx, NULL);
    mgpuDestroyDnVec(dy, NULL);
  }
  CHECK_CLEAN();
  return NULL;
}

static void test_threads(void) {
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  void *matrix = csr();
  for (int i = 0; i < THREADS; ++i)
    CHECK(pthread_create(&threads[i], NULL, work, matrix) == 0, "a thread");
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  mgpuDestroySpMat(matrix, NULL);
  CHECK_CLEAN();
}

struct shared {
  void *matrix, *x, *y, *stream;
};

static void *add_up(void *pointer) {
  const struct shared *shared = pointer;
  static char workspace[16];
  for (int i = 0; i < 50; ++i)
    mgpuSpMV(0, shared->matrix, shared->x, shared->y, MGPU_F32, workspace, shared->stream);
  CHECK_CLEAN();
  return NULL;
}

/* A stream does one thing at a time, whoever puts it there: two threads added to the same sums at once. */
static void test_threads_on_a_stream(void) {
  enum { SIZE = 4000, THREADS = 2 };
  static float ones[SIZE], sums[SIZE];
  static int32_t positions[SIZE + 1], indices[SIZE];
  for (int32_t i = 0; i < SIZE; ++i) {
    ones[i] = 1;
    indices[i] = i;
    positions[i + 1] = i + 1;
  }
  for (uint64_t seed = 0; seed < 2; ++seed) {
    pthread_t threads[THREADS];
    memset(sums, 0, sizeof sums);
    mgpuHostSchedule(seed);
    struct shared shared = {.stream = mgpuStreamCreate()};
    shared.matrix = mgpuCreateCsr(SIZE, SIZE, SIZE, positions, indices, ones, 2, 2, MGPU_F32, NULL);
    shared.x = vector(ones, SIZE);
    shared.y = vector(sums, SIZE);
    for (int i = 0; i < THREADS; ++i)
      CHECK(pthread_create(&threads[i], NULL, add_up, &shared) == 0, "a thread");
    for (int i = 0; i < THREADS; ++i)
      pthread_join(threads[i], NULL);
    for (int i = 0; i < SIZE; ++i)
      CHECK(sums[i] == 50 * THREADS, "row %d is %g", i, (double)sums[i]);
    mgpuHostSchedule(0);
    mgpuDestroySpMat(shared.matrix, NULL);
    mgpuDestroyDnVec(shared.x, NULL);
    mgpuDestroyDnVec(shared.y, NULL);
    mgpuStreamDestroy(shared.stream);
    CHECK_CLEAN();
  }
}

/* Work of the stream, and of those that it waits for, comes before a sparse operation on it. */
static void test_order(void) {
  float *x = mgpuMemAlloc(3 * sizeof *x, NULL, true), y[3] = {0};
  void *matrix = csr(), *dx = vector(x, 3), *dy = vector(y, 3);
  memset(x, 0, 3 * sizeof *x);
  mgpuHostSchedule(7);
  void *first = mgpuStreamCreate(), *second = mgpuStreamCreate();
  mgpuMemset32(x, 0x3F800000 /* 1.0f */, 3, first);
  mgpuStreamWaitStream(second, first);
  mgpuSpMV(MGPU_AS_IS, matrix, dx, dy, MGPU_F32, NULL, second);
  CHECK(y[0] == 3 && y[1] == 0 && y[2] == 7, "%g %g %g", (double)y[0], (double)y[1], (double)y[2]);
  mgpuStreamDestroy(first);
  mgpuStreamDestroy(second);
  mgpuHostSchedule(0);
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnVec(dy, NULL);
  mgpuMemFree(x, NULL);
  CHECK_CLEAN();
}

/* Operands stay with the backend that they were made for. */
static void test_other_backends(void) {
  const char *const names[] = {"cuda", "hip"};
  float x[3] = {0};
  void *matrix = csr(), *dx = vector(x, 3);
  for (int i = 0; i < 2; ++i) {
    CHECK(mgpuBackendUse(names[i]) == 0, "%s", names[i]);
    multiply(matrix, dx, dx, 0, MGPU_F32);
    CHECK_ERROR(MGPU_ERROR_INVALID, "was made for host");
  }
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  CHECK_CLEAN();
}

void test_sparse(void) {
  CHECK(mgpuBackendUse("host") == 0, "the CPU");
  test_spmv();
  test_nothing_to_do();
  test_handles();
  test_sizes_and_types();
  test_large_sizes();
  test_damaged_matrices();
  test_pending_errors();
  test_spgemm();
  test_spgemm_narrow_indices();
  test_two_to_four();
  test_2to4_without_numbers();
  test_rounding();
  test_threads();
  test_threads_on_a_stream();
  test_order();
  test_other_backends();
}
