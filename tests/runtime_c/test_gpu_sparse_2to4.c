/* test_gpu_sparse_2to4.c: 2:4 sparse matrices through a stand-in of cuSPARSELt: the order of calls, every
 * call failing, plans that are replaced. */
#include "core/error.h"
#include "sparse/gpu.h"
#include "sparse_standins.h"

static struct library lt;

/* A 2:4 matrix of 32 x 32, each row 1 2 0 0 1 2 0 0 ... times ones. */
enum { WIDE = 32 };

static void fill(int8_t *a, int8_t *b, int32_t *c) {
  for (int i = 0; i < WIDE * WIDE; ++i) {
    a[i] = (int8_t)(i % 4 < 2 ? 1 + i % 4 : 0);
    b[i] = 1;
    c[i] = 5;
  }
}

static char a_handle[64], b_handle[64], c_handle[64];

static void make_2to4(int8_t *a, int8_t *b, int32_t *c) {
  mgpuCusparseLtCreate2To4SpMat(a_handle, WIDE, WIDE, a, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(b_handle, WIDE, WIDE, b, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(c_handle, WIDE, WIDE, c, MGPU_I32, NULL);
}

static void destroy_2to4(void) {
  mgpuDestroyCuSparseLtSpMat(a_handle, NULL);
  mgpuDestroyCuSparseLtDnMat(b_handle, NULL);
  mgpuDestroyCuSparseLtDnMat(c_handle, NULL);
}

void multiply_2to4(int prune) {
  static _Alignas(16) int8_t a[WIDE * WIDE], b[WIDE * WIDE];
  static _Alignas(16) int32_t c[WIDE * WIDE];
  int64_t sizes[3];
  fill(a, b, c);
  make_2to4(a, b, c);
  void *buffers[3] = {NULL, NULL, NULL};
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, b_handle, c_handle, 1, prune, NULL);
  for (int i = 0; i < 3 && sizes[i]; ++i)
    buffers[i] = malloc((size_t)sizes[i]);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, buffers[0], buffers[1], buffers[2], NULL);
  CHECK(mgpu_pending() || (c[0] == 5 + 3 * WIDE / 4 && c[WIDE * WIDE - 1] == c[0]), "%d", c[0]);
  for (int i = 0; i < 3; ++i)
    free(buffers[i]);
  destroy_2to4();
}

static void check_nothing_is_left(void) {
  CHECK(lt.log.live(LIBRARY_DESCRIPTORS) == 0, "%d descriptors", lt.log.live(LIBRARY_DESCRIPTORS));
  mgpuDestroySparseLtEnv();
  CHECK(lt.log.live(LIBRARY_HANDLES) == 0, "%d handles", lt.log.live(LIBRARY_HANDLES));
}

static void test_every_call_fails(struct standin *driver) {
  static const char *const names[] = {
#define LT_FUNCTION(name, params) #name,
#define LT_OPTIONAL(name, params) #name,
#include "cuda/cusparselt.def"
  };
  int memory = driver->live(MEMORY);
  for (int prune = 0; prune < 3; ++prune) {
    driver->clear();
    multiply_2to4(prune);
    CHECK_CLEAN();
    CHECK((strstr(driver->log(), "sync") != NULL) == (prune == 2), "waits for the answer alone: %s",
          driver->log());
  }
  check_nothing_is_left();
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char part[160];
    snprintf(part, sizeof part, "%s failed with CUSPARSE_STATUS_NOT_SUPPORTED (10): stand-in.", names[i]);
    lt.fail(names[i], NOT_SUPPORTED, 1);
    multiply_2to4(2);
    mgpuDestroySparseLtEnv();
    CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, part);
    lt.fail("", 0, 0);
    check_nothing_is_left();
    CHECK_CLEAN();
  }
  CHECK(driver->live(MEMORY) == memory, "%d", driver->live(MEMORY));
}

static void test_protocol(void) {
  static _Alignas(16) int8_t a[WIDE * WIDE], b[WIDE * WIDE];
  static _Alignas(16) int32_t c[WIDE * WIDE];
  static char buffer[4 * WIDE * WIDE];
  int64_t sizes[3];
  fill(a, b, c);
  make_2to4(a, b, c);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, b_handle, c_handle, 1, 0, NULL);
  CHECK(sizes[0] == 1 && sizes[1] == WIDE * WIDE && sizes[2] == 32, "%ld %ld %ld", (long)sizes[0],
        (long)sizes[1], (long)sizes[2]);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, NULL, NULL, NULL, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "needs three buffers");
  mgpuCreateCuSparseLtDnMat(c_handle, WIDE, WIDE, c, MGPU_I8, NULL);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, buffer, buffer, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "of the same shapes and types");
  mgpuCusparseLtCreate2To4SpMat(a_handle, WIDE, WIDE, a, MGPU_I8, NULL); /* in place of the one with a plan */
  CHECK(lt.log.live(LIBRARY_DESCRIPTORS) == 0, "%d descriptors", lt.log.live(LIBRARY_DESCRIPTORS));
  mgpuCusparseLtCreate2To4SpMat(a_handle, 4, 4, a, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(b_handle, 4, 4, b, MGPU_I8, NULL);
  mgpuCreateCuSparseLtDnMat(c_handle, 4, 4, c, MGPU_I32, NULL);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, b_handle, c_handle, 1, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED,
              "cusparseLtStructuredDescriptorInit failed with CUSPARSE_STATUS_NOT_SUPPORTED");
  make_2to4(a, b, c);
  for (int mode_a = 0; mode_a < 2; ++mode_a) {
    mgpuCuSparseLtSpMMBufferSize(sizes, mode_a, mode_a, a_handle, b_handle, c_handle, 1, 0, NULL);
    CHECK_ERROR(
        MGPU_ERROR_UNSUPPORTED,
        "cuSPARSELt multiplies i8 with A as it is and B transposed alone, each with the values that are "
        "summed side by side");
  }
  mgpuCreateCuSparseLtDnMat(b_handle, WIDE, WIDE, b, MGPU_F16, NULL);
  mgpuCreateCuSparseLtDnMat(c_handle, WIDE, WIDE, b, MGPU_F16, NULL);
  mgpuCusparseLtCreate2To4SpMat(a_handle, WIDE, WIDE, a, MGPU_BF16, NULL);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 2, a_handle, b_handle, c_handle, 0, 0, NULL);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED,
              "This was 2:4 SpMM of 2:4 of bf16 and dense f16, conjugated and transposed "
              "into dense f16, computed in f32.");
  setenv("STANDIN_INVALID", "1", 1);
  multiply_2to4(2);
  CHECK_ERROR(MGPU_ERROR_DRIVER, "finds it not 2:4 sparse");
  unsetenv("STANDIN_INVALID");
  check_nothing_is_left();
  setenv("STANDIN_CUSPARSELT", "501", 1);
  multiply_2to4(0);
  CHECK_ERROR(MGPU_ERROR_UNSUPPORTED, "cuSPARSELt 0.5 is too old");
  unsetenv("STANDIN_CUSPARSELT");
  check_nothing_is_left();
}

/* What is not where the descriptors say is refused before the library sees it. */
static void test_alignment(void) {
  static _Alignas(16) int8_t memory[3][WIDE * WIDE * 4 + 16];
  static char buffer[4 * WIDE * WIDE];
  static const char *const parts[] = {"its operand A is at", "its operand B is at", "its operand C is at"};
  int64_t sizes[3];
  for (int off = 0; off < 3; ++off) {
    make_2to4(memory[0] + 8 * (off == 0), memory[1] + 8 * (off == 1),
              (int32_t *)(void *)memory[2] + 2 * (off == 2));
    mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, b_handle, c_handle, 1, 1, NULL);
    CHECK_ERROR(MGPU_ERROR_INVALID, parts[off]);
    destroy_2to4();
  }
  make_2to4(memory[0], memory[1], (int32_t *)(void *)memory[2]);
  mgpuCuSparseLtSpMMBufferSize(sizes, 0, 1, a_handle, b_handle, c_handle, 1, 1, NULL);
  mgpuCreateCuSparseLtDnMat(b_handle, WIDE, WIDE, memory[1] + 8, MGPU_I8, NULL);
  mgpuCuSparseLtSpMM(a_handle, b_handle, c_handle, buffer, buffer, buffer, NULL);
  CHECK_ERROR(MGPU_ERROR_INVALID, "2:4 SpMM needs memory at multiples of 16 bytes; its operand B is at");
  destroy_2to4();
  check_nothing_is_left();
}

void test_2to4(struct standin *driver) {
  lt = library_open("libcusparseLt.so.0");
  test_every_call_fails(driver);
  test_protocol();
  test_alignment();
}
