/* memref.c: printMemref*, printMemrefShape* and verifyMemRef*, with the names and the output of MLIR's
 * runner-utils.
 *
 * A ranked memref comes as a pointer to its descriptor, an unranked one as its rank and that pointer: in two
 * arguments (printMemrefF32), or in a struct behind a pointer where the program declared the function with
 * llvm.emit_c_interface (_mlir_ciface_printMemrefF32). Nothing is kept or freed. Any thread may call any of
 * these: a memref is printed in one piece.
 */
#include "failed.h"
#include "half.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct descriptor {
  void *allocated;
  void *data;
  int64_t offset;  /* in elements, like the strides */
  int64_t shape[]; /* `rank` sizes, then `rank` strides */
};

struct unranked {
  int64_t rank;
  struct descriptor *descriptor;
};

struct complex32 {
  float real, imaginary;
};
struct complex64 {
  double real, imaginary;
};

/* One element. Integers of 8 bits come out as characters, as upstream's do. */
static void print_I8(FILE *file, int8_t value) { fputc(value, file); }
static void print_I16(FILE *file, int16_t value) { fprintf(file, "%" PRId16, value); }
static void print_I32(FILE *file, int32_t value) { fprintf(file, "%" PRId32, value); }
static void print_I64(FILE *file, int64_t value) { fprintf(file, "%" PRId64, value); }
static void print_Ind(FILE *file, uint64_t value) { fprintf(file, "%" PRIu64, value); }
static void print_F32(FILE *file, float value) { fprintf(file, "%g", (double)value); }
static void print_F64(FILE *file, double value) { fprintf(file, "%g", value); }
static void print_F16(FILE *file, uint16_t bits) { print_F32(file, f16_to_float(bits)); }
static void print_BF16(FILE *file, uint16_t bits) { print_F32(file, bf16_to_float(bits)); }
static void print_C32(FILE *file, struct complex32 value) {
  fprintf(file, "(%g,%g)", (double)value.real, (double)value.imaginary);
}
static void print_C64(FILE *file, struct complex64 value) {
  fprintf(file, "(%g,%g)", value.real, value.imaginary);
}

/* Close enough: relative to the expected value; what is not finite equals nothing, as upstream has it. */
static bool close_to(double actual, double expected, double difference, double tolerance) {
  double limit = tolerance * (expected < 0 ? -expected : expected);
  /* x - x is 0 for finite values only. */
  return actual - actual == 0 && expected - expected == 0 &&
         (difference < 0 ? -difference : difference) <= limit;
}

static bool equal_I8(int8_t a, int8_t b) { return a == b; }
static bool equal_I16(int16_t a, int16_t b) { return a == b; }
static bool equal_I32(int32_t a, int32_t b) { return a == b; }
static bool equal_I64(int64_t a, int64_t b) { return a == b; }
static bool equal_Ind(uint64_t a, uint64_t b) { return a == b; }
static bool equal_F16(uint16_t a, uint16_t b) { return a == b; }
static bool equal_BF16(uint16_t a, uint16_t b) { return a == b; }
static bool equal_F32(float a, float b) { return close_to((double)a, (double)b, (double)(a - b), 1e-6); }
static bool equal_F64(double a, double b) { return close_to(a, b, a - b, 1e-12); }
static bool equal_C32(struct complex32 a, struct complex32 b) {
  return a.real == b.real && a.imaginary == b.imaginary;
}
static bool equal_C64(struct complex64 a, struct complex64 b) {
  return a.real == b.real && a.imaginary == b.imaginary;
}

/* The type of the elements, for code that does not depend on it. */
struct element {
  void (*print)(FILE *file, const void *data, int64_t index);
  bool (*equal)(const void *actual, const void *expected, int64_t index);
};

#define ELEMENT(name, type)                                                                                  \
  static void print_at_##name(FILE *file, const void *data, int64_t index) {                                 \
    print_##name(file, ((const type *)data)[index]);                                                         \
  }                                                                                                          \
  static bool equal_at_##name(const void *actual, const void *expected, int64_t index) {                     \
    return equal_##name(((const type *)actual)[index], ((const type *)expected)[index]);                     \
  }                                                                                                          \
  static const struct element element_##name = {print_at_##name, equal_at_##name};
#include "elements.def"
#undef ELEMENT

/* A memref in use: `sizes` and `strides` are those of the dimensions that are left. */
struct memref {
  int64_t rank;
  const struct descriptor *descriptor;
  const int64_t *sizes, *strides;
};

static struct memref memref_of(int64_t rank, const struct descriptor *descriptor) {
  return (struct memref){rank, descriptor, descriptor->shape, descriptor->shape + rank};
}

static void print_list(FILE *file, const char *name, const int64_t *values, int64_t count) {
  fprintf(file, " %s = [", name);
  for (int64_t i = 0; i < count; ++i)
    fprintf(file, "%s%" PRId64, i == 0 ? "" : ", ", values[i]);
  fputc(']', file);
}

static void print_shape(FILE *file, struct memref memref) {
  fprintf(file, "base@ = %#" PRIxPTR " rank = %" PRId64 " offset = %" PRId64,
          (uintptr_t)memref.descriptor->data, memref.rank, memref.descriptor->offset);
  print_list(file, "sizes", memref.sizes, memref.rank);
  print_list(file, "strides", memref.strides, memref.rank);
}

static void print_elements(FILE *file, struct memref memref, int64_t level, int64_t index,
                           const struct element *element) {
  if (level == memref.rank) {
    element->print(file, memref.descriptor->data, index);
    return;
  }
  bool innermost = level + 1 == memref.rank;
  fputc('[', file);
  for (int64_t i = 0; i < memref.sizes[level]; ++i) {
    if (i > 0)
      fprintf(file, ", %s%*s", innermost ? "" : "\n", (int)level + 1, "");
    print_elements(file, memref, level + 1, index + i * memref.strides[level], element);
  }
  fputc(']', file);
}

static void print_memref(const char *kind, struct memref memref, const struct element *element) {
  if (has_failed())
    return;
  flockfile(stdout);
  fputs(kind, stdout);
  print_shape(stdout, memref);
  fputs(" data = \n", stdout);
  if (memref.rank == 0)
    fputc('[', stdout);
  print_elements(stdout, memref, 0, memref.descriptor->offset, element);
  fputs(memref.rank == 0 ? "]\n" : "\n", stdout);
  /* Python and C++ have buffers of their own: keep the order. */
  fflush(stdout);
  funlockfile(stdout);
}

static void print_unranked_shape(int64_t rank, const struct descriptor *descriptor) {
  if (has_failed())
    return;
  flockfile(stdout);
  fputs("Unranked Memref ", stdout);
  print_shape(stdout, memref_of(rank, descriptor));
  fputc('\n', stdout);
  fflush(stdout);
  funlockfile(stdout);
}

/* How many differences verifyMemRef* prints. */
enum { PRINTED_DIFFERENCES = 10 };

static int64_t differences(struct memref actual, const void *expected, int64_t level, int64_t index,
                           int64_t already, const struct element *element) {
  const void *data = actual.descriptor->data;
  int64_t count = 0;
  if (level < actual.rank) {
    for (int64_t i = 0; i < actual.sizes[level]; ++i)
      count += differences(actual, expected, level + 1, index + i * actual.strides[level], already + count,
                           element);
    return count;
  }
  if (element->equal(data, expected, index))
    return 0;
  if (already < PRINTED_DIFFERENCES) {
    element->print(stderr, data, index);
    fputs(" != ", stderr);
    element->print(stderr, expected, index);
    fprintf(stderr, " offset = %" PRId64 "\n", index);
  }
  return 1;
}

/* The number of elements that differ, or -1 where the shapes do; the first few go to stderr. */
static int64_t verify(struct memref actual, struct memref expected, const struct element *element) {
  bool same = actual.rank == expected.rank && actual.descriptor->offset == expected.descriptor->offset;
  for (int64_t i = 0; same && i < 2 * actual.rank; ++i)
    same = actual.sizes[i] == expected.sizes[i]; /* the strides follow the sizes */
  if (!same) {
    print_shape(stderr, actual);
    print_shape(stderr, expected);
    fputc('\n', stderr);
    return -1;
  }
  return differences(actual, expected.descriptor->data, 0, actual.descriptor->offset, 0, element);
}

/* What programs call. */
#define RANKED(name, rank)                                                                                   \
  void _mlir_ciface_printMemref##rank##d##name(struct descriptor *memref);                                   \
  void _mlir_ciface_printMemref##rank##d##name(struct descriptor *memref) {                                  \
    print_memref("Memref ", memref_of(rank, memref), &element_##name);                                       \
  }
#define ELEMENT(name, type)                                                                                  \
  void printMemref##name(int64_t rank, struct descriptor *memref);                                           \
  void printMemref##name(int64_t rank, struct descriptor *memref) {                                          \
    print_memref("Unranked Memref ", memref_of(rank, memref), &element_##name);                              \
  }                                                                                                          \
  void _mlir_ciface_printMemref##name(struct unranked *memref);                                              \
  void _mlir_ciface_printMemref##name(struct unranked *memref) {                                             \
    printMemref##name(memref->rank, memref->descriptor);                                                     \
  }                                                                                                          \
  void printMemrefShape##name(int64_t rank, struct descriptor *memref);                                      \
  void printMemrefShape##name(int64_t rank, struct descriptor *memref) {                                     \
    print_unranked_shape(rank, memref);                                                                      \
  }                                                                                                          \
  void _mlir_ciface_printMemrefShape##name(struct unranked *memref);                                         \
  void _mlir_ciface_printMemrefShape##name(struct unranked *memref) {                                        \
    print_unranked_shape(memref->rank, memref->descriptor);                                                  \
  }                                                                                                          \
  int64_t _mlir_ciface_verifyMemRef##name(struct unranked *actual, struct unranked *expected);               \
  int64_t _mlir_ciface_verifyMemRef##name(struct unranked *actual, struct unranked *expected) {              \
    return verify(memref_of(actual->rank, actual->descriptor),                                               \
                  memref_of(expected->rank, expected->descriptor), &element_##name);                         \
  }                                                                                                          \
  /* Upstream's order: one rank for both. */                                                                 \
  int64_t verifyMemRef##name(int64_t rank, struct descriptor *actual, struct descriptor *expected);          \
  int64_t verifyMemRef##name(int64_t rank, struct descriptor *actual, struct descriptor *expected) {         \
    return verify(memref_of(rank, actual), memref_of(rank, expected), &element_##name);                      \
  }                                                                                                          \
  RANKED(name, 0) RANKED(name, 1) RANKED(name, 2) RANKED(name, 3) RANKED(name, 4)
#include "elements.def"
#undef ELEMENT

/* vector<4x4xf32> */
struct matrix {
  float at[4][4];
};

static void print_matrix(FILE *file, const void *data, int64_t index) {
  const struct matrix *matrix = (const struct matrix *)data + index;
  fputc('(', file);
  for (int row = 0; row < 4; ++row) {
    /* Upstream indents the last row by one space less. */
    fputs(row == 0 ? "" : row == 3 ? ",  " : ",   ", file);
    const float *at = matrix->at[row];
    fprintf(file, "(%g, %g, %g, %g)", (double)at[0], (double)at[1], (double)at[2], (double)at[3]);
  }
  fputc(')', file);
}

void _mlir_ciface_printMemrefVector4x4xf32(struct descriptor *memref);
void _mlir_ciface_printMemrefVector4x4xf32(struct descriptor *memref) {
  static const struct element element_matrix = {print_matrix, NULL};
  print_memref("Memref ", memref_of(2, memref), &element_matrix);
}
