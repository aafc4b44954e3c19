/* test_gpu_sparse.c: sparse operations through the vendors' libraries, with stand-ins of these: streams,
 * devices, handles, the order of calls, every call failing, many threads. Numbers of every format and type
 * are compared with NumPy's in tests/backends/test_vendor_sparse.py. */
#include "core/error.h"
#include "sparse/gpu.h"
#include "sparse_standins.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *prefix; /* of the library's functions */
static struct library sparse;

/* [1 0 2; 0 0 0; 0 3 4] */
static int32_t positions[] = {0, 2, 2, 4}, columns[] = {0, 2, 1, 2}, pairs[] = {0, 0, 0, 2, 2, 1, 2, 2};
static float values[] = {1, 2, 3, 4};

static void *csr(void *stream) {
  return mgpuCreateCsr(3, 3, 4, positions, columns, values, MGPU_INDEX_I32, MGPU_INDEX_I32, MGPU_F32, stream);
}

static void *empty_csr(int32_t *rows) {
  return mgpuCreateCsr(3, 3, 0, rows, NULL, NULL, MGPU_INDEX_I32, MGPU_INDEX_I32, MGPU_F32, NULL);
}

static void check_nothing_is_left(void) {
  CHECK(sparse.log.live(LIBRARY_DESCRIPTORS) == 0, "%d descriptors", sparse.log.live(LIBRARY_DESCRIPTORS));
  mgpuDestroySparseEnv();
  CHECK(sparse.log.live(LIBRARY_HANDLES) == 0, "%d handles", sparse.log.live(LIBRARY_HANDLES));
}

static void *times(void *matrix, void *x, void *y, void *stream) {
  char buffer[64];
  intptr_t size = mgpuSpMVBufferSize(MGPU_AS_IS, matrix, x, y, MGPU_F32, stream);
  CHECK(mgpu_pending() || (size > 0 && size <= (intptr_t)sizeof buffer), "%ld", (long)size);
  mgpuSpMV(MGPU_AS_IS, matrix, x, y, MGPU_F32, buffer, stream);
  return y;
}

/* Work goes on the stream that is given, of the device that it is on, and nobody waits for it. */
static void test_streams(struct standin *driver) {
  float x[] = {1, 2, 3}, y[] = {10, 20, 30};
  for (int device = 0; device < 2; ++device) {
    mgpuSetDefaultDevice(device);
    void *first = mgpuStreamCreate(), *second = mgpuStreamCreate();
    void *matrix = csr(first), *dx = mgpuCreateDnVec(3, x, MGPU_F32, first);
    void *dy = mgpuCreateDnVec(3, y, MGPU_F32, second);
    CHECK_CLEAN();
    mgpuSetDefaultDevice(1 - device); /* what is current is not the stream's */
    driver->clear();
    sparse.log.clear();
    times(matrix, dx, dy, first);
    times(matrix, dx, dy, second);
    times(matrix, dx, dy, first);
    CHECK_CLEAN();
    CHECK(strstr(driver->log(), "sync") == NULL, "waits: %s", driver->log());
    char *one = strstr(sparse.log.log(), " S"), *two = one ? strstr(one + 1, " S") : NULL;
    char *three = two ? strstr(two + 1, " S") : NULL;
    CHECK(three && atoi(one + 2) != atoi(two + 2) && atoi(one + 2) == atoi(three + 2), "%s",
          sparse.log.log());
    mgpuDestroySpMat(matrix, NULL);
    mgpuDestroyDnVec(dx, NULL);
    mgpuDestroyDnVec(dy, NULL);
    mgpuStreamDestroy(first);
    mgpuStreamDestroy(second);
  }
  mgpuSetDefaultDevice(0);
  CHECK(y[0] == 10 + 6 * 7 && y[1] == 20 && y[2] == 30 + 6 * 18, "%g %g", (double)y[0], (double)y[2]);
  check_nothing_is_left();
  CHECK_CLEAN();
}

/* What hipSPARSE keeps in a handle is used when the work runs: streams share none, and each finds its own
 * again. */
static void test_handles(void) {
  enum { STREAMS = 20, POOLED = 16 };
  float x[3] = {0};
  void *streams[STREAMS], *matrix = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
  const int hip = strcmp(prefix, "hipsparse") == 0, at_once[] = {1, 3, STREAMS};
  for (int i = 0; i < STREAMS; ++i)
    streams[i] = mgpuStreamCreate();
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 2 * at_once[k]; ++i)
      times(matrix, dx, dx, streams[i % at_once[k]]);
    int wanted = !hip                  ? 1
                 : at_once[k] < POOLED ? at_once[k]
                                       : POOLED,
        found = sparse.log.live(LIBRARY_HANDLES);
    CHECK(found == wanted, "%d handles for %d streams, not %d", found, at_once[k], wanted);
  }
  for (int i = 0; i < STREAMS; ++i)
    mgpuStreamDestroy(streams[i]);
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  CHECK_CLEAN();
  check_nothing_is_left();
}

/* Everything once; an error ends it early. */
static void everything(void) {
  char buffer[256];
  float x[] = {1, 2, 3}, y[9] = {0}, square[9] = {0}, sums[9];
  int32_t rows[4] = {0}, cols[9];
  int64_t m, n, entries;
  void *matrix = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
  void *dy = mgpuCreateDnVec(3, y, MGPU_F32, NULL), *dense = mgpuCreateDnMat(3, 3, square, MGPU_F32, NULL);
  void *coo = mgpuCreateCoo(3, 3, 4, columns, columns, values, MGPU_INDEX_I32, MGPU_F32, NULL);
  void *aos = mgpuCreateCooAoS(3, 3, 4, pairs, values, MGPU_INDEX_I32, MGPU_F32, NULL);
  void *csc = mgpuCreateCsc(3, 3, 4, positions, columns, values, 2, 2, MGPU_F32, NULL);
  void *bsr = mgpuCreateBsr(3, 3, 4, 1, 1, positions, columns, values, 2, 2, MGPU_F32, NULL);
  void *c = empty_csr(rows), *plan = mgpuSpGEMMCreateDescr(NULL);
  void *const matrices[] = {matrix, coo, csc, bsr, c, aos};
  for (int i = 0; i < 4; ++i)
    times(matrices[i], dx, dy, NULL);
  CHECK(mgpu_pending() || mgpuSpMVBufferSize(0, aos, dx, dy, MGPU_F32, NULL) == 2 * 256, "two arrays");
  static char split[512];
  mgpuSpMV(0, aos, dx, dy, MGPU_F32, split, NULL);
  mgpuSpMMBufferSize(0, 0, matrix, dense, dense, MGPU_F32, NULL);
  mgpuSpMM(0, 0, matrix, dense, dense, MGPU_F32, buffer, NULL);
  mgpuSDDMMBufferSize(0, 0, dense, dense, matrix, MGPU_F32, NULL);
  mgpuSDDMM(0, 0, dense, dense, matrix, MGPU_F32, buffer, NULL);
  intptr_t first = mgpuSpGEMMWorkEstimation(plan, 0, 0, matrix, matrix, c, MGPU_F32, 0, NULL, NULL);
  mgpuSpGEMMWorkEstimation(plan, 0, 0, matrix, matrix, c, MGPU_F32, first, buffer, NULL);
  intptr_t second = mgpuSpGEMMCompute(plan, 0, 0, matrix, matrix, c, MGPU_F32, 0, NULL, NULL);
  mgpuSpGEMMCompute(plan, 0, 0, matrix, matrix, c, MGPU_F32, second, buffer + first, NULL);
  mgpuSpMatGetSize(c, &m, &n, &entries, NULL);
  mgpuSetCsrPointers(c, rows, cols, sums, NULL);
  mgpuSpGEMMCopy(plan, 0, 0, matrix, matrix, c, MGPU_F32, NULL);
  CHECK(mgpu_pending() || (entries == 5 && rows[3] == 5 && cols[0] == 0 && sums[0] == 1 && sums[4] == 16),
        "[1 6 10; 0 0 0; 0 12 16]");
  for (int i = 0; i < 6; ++i)
    mgpuDestroySpMat(matrices[i], NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnVec(dy, NULL);
  mgpuDestroyDnMat(dense, NULL);
  mgpuSpGEMMDestroyDescr(plan, NULL);
}

static void test_every_call_fails(void) {
  static const char *const names[] = {
#define SPARSE_FUNCTION(name, params) #name,
#define SPARSE_OPTIONAL(name, params) #name,
#include "sparse/gpu.def"
  };
  everything();
  CHECK_CLEAN();
  check_nothing_is_left();
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char function[64], part[160];
    if (strcmp(names[i], "GetVersion") == 0)
      continue; /* only when the library is loaded: see test_first_use */
    snprintf(function, sizeof function, "%s%s", prefix, names[i]);
    snprintf(part, sizeof part, "%s failed with %sSTATUS_NOT_SUPPORTED (10): operation not supported.",
             function, strcmp(prefix, "cusparse") == 0 ? "CUSPARSE_" : "HIPSPARSE_");
    bool again = strncmp(names[i], "CreateDn", 8) == 0 || strncmp(names[i], "Destroy", 7) == 0 ||
                 strncmp(names[i], "CreateC", 7) == 0 || strncmp(names[i], "SpMV", 4) == 0 ||
                 strcmp(names[i], "SetStream") == 0;
    if (strcmp(names[i], "Destroy") == 0 || strcmp(names[i], "CreateCsc") == 0)
      again = false;
    for (int at = 1; at <= 1 + again; ++at) { /* the second time something of it is there already */
      if (strcmp(names[i], "Destroy") == 0)
        mgpuDestroySparseEnv(); /* so that there is one to destroy */
      sparse.fail(function, NOT_SUPPORTED, at);
      everything();
      if (strcmp(names[i], "Destroy") == 0)
        mgpuDestroySparseEnv();
      CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, part);
      sparse.fail("", 0, 0);
      check_nothing_is_left();
      CHECK_CLEAN();
    }
  }
  const struct {
    int status, code;
    const char *part;
  } statuses[] = {{2, MGPU_ERROR_MEMORY, "STATUS_ALLOC_FAILED (2)"},
                  {6, MGPU_ERROR_DRIVER, "STATUS_EXECUTION_FAILED (6)"},
                  {11, MGPU_ERROR_MEMORY, "STATUS_INSUFFICIENT_RESOURCES (11)"},
                  {99, MGPU_ERROR_DRIVER, "SpMV failed with an unknown status (99)"}};
  char function[64];
  snprintf(function, sizeof function, "%sSpMV", prefix);
  for (int i = 0; i < 4; ++i) {
    sparse.fail(function, statuses[i].status, 1);
    everything();
    CHECK_ERROR(statuses[i].code, statuses[i].part);
  }
  sparse.fail("", 0, 0);
  check_nothing_is_left();
}

/* A failure while the library is loaded leaves it to the next operation. */
static void test_first_use(void) {
  static const char *const names[] = {"Create", "GetVersion", "Destroy"};
  char function[64];
  for (int i = 0; i < 3; ++i) {
    snprintf(function, sizeof function, "%s%s", prefix, names[i]);
    sparse.fail(function, 7, 1);
    everything();
    CHECK_ERROR(MGPU_ERROR_DRIVER, "STATUS_INTERNAL_ERROR (7): stand-in.");
    sparse.fail("", 0, 0);
    CHECK(sparse.log.live(LIBRARY_HANDLES) == 0, "no handle");
  }
}

static void test_spgemm(void) {
  char buffer[256];
  int32_t rows[4] = {0};
  void *a = csr(NULL), *b = csr(NULL), *c = empty_csr(rows), *plan = mgpuSpGEMMCreateDescr(NULL);
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "mgpuSpGEMMWorkEstimation comes first");
  mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 64, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "mgpuSpGEMMWorkEstimation comes first");
  mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, a, MGPU_F32, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "a matrix without entries; this one has 4");
  intptr_t size = mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 0, NULL, NULL);
  CHECK(size == 24, "%ld", (long)size);
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 0, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "mgpuSpGEMMWorkEstimation comes first");
  mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 23, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpGEMM has a buffer of 23 bytes; it needs 24");
  mgpuSpGEMMWorkEstimation(plan, 0, 0, a, a, c, MGPU_F32, 24, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "different operands");
  mgpuSetCsrPointers(a, positions, columns, buffer, NULL);
  mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 24, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "different operands");
  mgpuSetCsrPointers(a, positions, columns, values, NULL);
  CHECK(mgpuSpGEMMWorkEstimation(plan, 0, 0, a, b, c, MGPU_F32, 24, buffer, NULL) == 24, "done");
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 64, buffer + 24, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "mgpuSpGEMMCompute comes before this");
  CHECK(mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 0, NULL, NULL) == 56, "a question");
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 55, buffer + 24, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpGEMM has a buffer of 55 bytes; it needs 56");
  mgpuSpGEMMCompute(plan, 0, 0, a, b, c, MGPU_F32, 56, buffer + 24, NULL);
  mgpuSpGEMMCopy(plan, 0, 0, a, b, c, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "no memory for 5 entries");
  mgpuDestroySpMat(a, NULL); /* the SpGEMM has what it needs to be destroyed */
  mgpuDestroySpMat(b, NULL);
  mgpuDestroySpMat(c, NULL);
  mgpuSpGEMMDestroyDescr(plan, NULL);
  CHECK_CLEAN();
  check_nothing_is_left();
}

/* What the library does not have is its own answer. */
static void test_refused(void) {
  float x[3] = {0};
  int16_t p[] = {0, 2, 2, 4}, q[] = {0, 2, 1, 2};
  char buffer[64];
  void *narrow = mgpuCreateCsr(3, 3, 4, p, q, values, 1, 1, MGPU_F32, NULL);
  void *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
  mgpuSpMVBufferSize(0, narrow, dx, dx, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "STATUS_NOT_SUPPORTED (10): operation not supported.");
  mgpuSpMV(1, narrow, dx, dx, MGPU_F32, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED,
              "This was SpMV of CSR of f32 with 16-bit indices, transposed and dense f32 "
              "into dense f32, computed in f32.");
  void *aos = mgpuCreateCooAoS(3, 3, 4, pairs, values, MGPU_INDEX_I32, MGPU_F32, NULL), *matrix = csr(NULL);
  mgpuSpMV(0, aos, dx, dx, MGPU_F32, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpMV needs its workspace");
  mgpuSpMV(0, matrix, dx, dx, MGPU_F32, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "SpMV needs a workspace of 40 bytes");
  mgpuDestroySpMat(narrow, NULL);
  mgpuDestroySpMat(aos, NULL);
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  check_nothing_is_left();
}

static void *work(void *matrix) {
  for (int i = 0; i < 100; ++i) {
    float x[] = {1, 2, 3}, y[] = {0, 0, 0};
    void *own = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
    void *dy = mgpuCreateDnVec(3, y, MGPU_F32, NULL);
    times(matrix, dx, dy, NULL);
    times(own, dx, dy, NULL);
    CHECK(y[0] == 14 && y[2] == 36, "%g %g", (double)y[0], (double)y[2]);
    mgpuDestroySpMat(own, NULL);
    mgpuDestroyDnVec(dx, NULL);
    mgpuDestroyDnVec(dy, NULL);
    if (i % 10 == 0)
      mgpuDestroySparseEnv(); /* of handles that nobody uses */
  }
  CHECK_CLEAN();
  return NULL;
}

static void test_threads(void) {
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  void *matrix = csr(NULL);
  for (int i = 0; i < THREADS; ++i)
    CHECK(pthread_create(&threads[i], NULL, work, matrix) == 0, "a thread");
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  mgpuDestroySpMat(matrix, NULL);
  CHECK_CLEAN();
  check_nothing_is_left();
}

/* In the child of a fork nothing computes, and what is destroyed is gone without an error. */
static void test_fork(void) {
  float x[3] = {0};
  int32_t rows[4] = {0};
  void *matrix = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL), *c = empty_csr(rows);
  void *plan = mgpuSpGEMMCreateDescr(NULL);
  times(matrix, dx, dx, NULL);
  mgpuSpGEMMWorkEstimation(plan, 0, 0, matrix, matrix, c, MGPU_F32, 0, NULL, NULL);
  CHECK_CLEAN();
  pid_t child = fork();
  if (child == 0) {
    CHECK(mgpuSpMVBufferSize(0, matrix, dx, dx, MGPU_F32, NULL) == 0, "no size");
    CHECK_ERROR(MGPU_ERROR_DRIVER, "forked");
    mgpuSpGEMMDestroyDescr(plan, NULL);
    mgpuDestroySpMat(matrix, NULL);
    mgpuDestroySparseEnv();
    CHECK_CLEAN();
    _exit(0);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ends with %d", status);
  mgpuSpGEMMDestroyDescr(plan, NULL);
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroySpMat(c, NULL);
  mgpuDestroyDnVec(dx, NULL);
  CHECK_CLEAN();
  check_nothing_is_left();
}

void test_cuda_sparse(void) {
  CHECK(mgpuBackendUse("cuda") == 0, "the stand-in driver");
  struct standin driver = standin_open("libcuda.so.1");
  prefix = "cusparse";
  sparse = library_open("libcusparse.so.12");
  test_first_use();
  test_streams(&driver);
  test_handles();
  test_every_call_fails();
  test_spgemm();
  test_refused();
  test_threads();
  test_2to4(&driver);
  test_fork();
}

void test_hip_sparse(void) {
  CHECK(mgpuBackendUse("hip") == 0, "the stand-in driver");
  struct standin driver = standin_open("libamdhip64.so.6");
  prefix = "hipsparse";
  sparse = library_open("libhipsparse.so.4");
  test_first_use();
  test_streams(&driver);
  test_handles();
  test_every_call_fails();
  test_spgemm();
  test_refused();
  test_threads();
  multiply_2to4(0);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "hipSPARSE has no 2:4 sparse matrices");
  test_fork();
}

/* Libraries that are not there, or that are not used; `part` is in the error of an SpMV. */
void test_no_sparse(const char *backend, int type, const char *part) {
  float x[3] = {0};
  CHECK(mgpuBackendUse(backend) == 0, "%s", backend);
  void *matrix = mgpuCreateCsr(3, 3, 4, positions, columns, values, 2, 2, type, NULL);
  void *dx = mgpuCreateDnVec(3, x, type, NULL);
  CHECK_CLEAN();
  for (int i = 0; i < 2; ++i) {
    CHECK(mgpuSpMVBufferSize(0, matrix, dx, dx, type, NULL) == 0, "no size");
    CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, part);
  }
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroyDnVec(dx, NULL);
  if (strcmp(backend, "cuda") == 0 && strstr(part, "cuSPARSE is needed")) {
    multiply_2to4(0);
    CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "cuSPARSELt is needed for this operation and was not found");
  }
  mgpuDestroySparseEnv();
  CHECK_CLEAN();
}

/* hipSPARSE between 2.3.2 and 3.0: what needs no layout of dense matrices works. */
void test_unknown_order(void) {
  char buffer[64];
  float x[] = {1, 2, 3}, y[] = {0, 0, 0}, square[9] = {0};
  CHECK(mgpuBackendUse("hip") == 0, "the stand-in driver");
  prefix = "hipsparse";
  sparse = library_open("libhipsparse.so.4");
  void *matrix = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
  void *dy = mgpuCreateDnVec(3, y, MGPU_F32, NULL), *dense = mgpuCreateDnMat(3, 3, square, MGPU_F32, NULL);
  void *bsr = mgpuCreateBsr(3, 3, 4, 1, 1, positions, columns, values, 2, 2, MGPU_F32, NULL);
  times(matrix, dx, dy, NULL);
  CHECK_CLEAN();
  CHECK(y[0] == 7 && y[2] == 18, "%g %g", (double)y[0], (double)y[2]);
  mgpuSpMM(0, 0, matrix, dense, dense, MGPU_F32, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "do not work with hipSPARSE 2.3.5: its number for layouts by rows");
  times(bsr, dx, dy, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "Install ROCm 6 or later");
  mgpuDestroySpMat(matrix, NULL);
  mgpuDestroySpMat(bsr, NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnVec(dy, NULL);
  mgpuDestroyDnMat(dense, NULL);
  check_nothing_is_left();
  CHECK_CLEAN();
}

/* hipSPARSE 2.3.2 has other numbers, fewer functions, and ends the process at 16-bit types. */
void test_old_sparse(void) {
  char buffer[64];
  float x[] = {1, 2, 3}, y[] = {0, 0, 0}, square[9] = {0};
  CHECK(mgpuBackendUse("hip") == 0, "the stand-in driver");
  prefix = "hipsparse";
  sparse = library_open("libhipsparse.so.0");
  void *matrix = csr(NULL), *dx = mgpuCreateDnVec(3, x, MGPU_F32, NULL);
  void *dy = mgpuCreateDnVec(3, y, MGPU_F32, NULL), *dense = mgpuCreateDnMat(3, 3, square, MGPU_F32, NULL);
  times(matrix, dx, dy, NULL);
  mgpuSpMM(0, 0, matrix, dense, dense, MGPU_F32, buffer, NULL); /* in its order of rows */
  CHECK_CLEAN();
  CHECK(y[0] == 7 && y[2] == 18, "%g %g", (double)y[0], (double)y[2]);
  void *bsr = mgpuCreateBsr(3, 3, 4, 1, 1, positions, columns, values, 2, 2, MGPU_F32, NULL);
  times(bsr, dx, dy, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "This version of hipSPARSE has no BSR matrices");
  void *narrow = mgpuCreateDnVec(3, x, MGPU_F16, NULL);
  mgpuSpMVBufferSize(0, matrix, narrow, dy, MGPU_F32, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "hipSPARSE 2.3.2 knows no f16; it came with 4.0 (ROCm 7).");
  sparse.fail("hipsparseSpMV", 10, 1);
  times(matrix, dx, dy, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "hipsparseSpMV failed with HIPSPARSE_STATUS_NOT_SUPPORTED (10).");
  void *const rest[] = {matrix, bsr};
  for (int i = 0; i < 2; ++i)
    mgpuDestroySpMat(rest[i], NULL);
  mgpuDestroyDnVec(dx, NULL);
  mgpuDestroyDnVec(dy, NULL);
  mgpuDestroyDnVec(narrow, NULL);
  mgpuDestroyDnMat(dense, NULL);
  check_nothing_is_left();
  CHECK_CLEAN();
}
