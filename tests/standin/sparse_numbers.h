/* sparse_numbers.h: what the stand-ins of sparse libraries share: failures and counts that tests ask for,
 * numbers of every type, dense matrices of complex doubles.
 *
 * Exported by each library: standin_fail_call (one function answers a status from its n-th call on, 1 is the
 * first; also by the environment, STANDIN_SPARSE_FAIL="cusparseSpMV 10 1"), standin_log, standin_clear,
 * standin_live. */
#ifndef STANDIN_SPARSE_NUMBERS_H
#define STANDIN_SPARSE_NUMBERS_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 2, INVALID_VALUE = 3, NOT_SUPPORTED = 10 };
enum { HANDLES, DESCRIPTORS, KINDS };
enum {
  R32F = 0,
  R64F = 1,
  R16F = 2,
  R8I = 3,
  C32F = 4,
  C64F = 5,
  C16F = 6,
  R32I = 10,
  R16BF = 14,
  C16BF = 15
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int live[KINDS];
static char text[1 << 16];
static size_t used;
static char failing[64];
static int fail_status, fail_from;

EXPORT const char *standin_log(void) { return text; }

EXPORT void standin_clear(void) {
  pthread_mutex_lock(&lock);
  used = 0;
  text[0] = 0;
  pthread_mutex_unlock(&lock);
}

EXPORT int standin_live(int kind) {
  pthread_mutex_lock(&lock);
  int value = live[kind];
  pthread_mutex_unlock(&lock);
  return value;
}

EXPORT void standin_fail_call(const char *name, int status, int from) {
  pthread_mutex_lock(&lock);
  snprintf(failing, sizeof failing, "%s", name);
  fail_status = status;
  fail_from = from;
  pthread_mutex_unlock(&lock);
}

static void count(int kind, int change) {
  pthread_mutex_lock(&lock);
  live[kind] += change;
  pthread_mutex_unlock(&lock);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&lock);
  if (used < sizeof text - 256) {
    used += (size_t)vsnprintf(text + used, 255, format, arguments);
    text[used++] = '\n';
    text[used] = 0;
  }
  pthread_mutex_unlock(&lock);
  va_end(arguments);
}

__attribute__((constructor)) static void read_environment(void) {
  const char *value = getenv("STANDIN_SPARSE_FAIL");
  char name[64];
  int status, from;
  if (value && sscanf(value, "%63s %d %d", name, &status, &from) == 3)
    standin_fail_call(name, status, from);
}

/* The status that a test has asked for, or SUCCESS. */
static int asked(const char *name) {
  pthread_mutex_lock(&lock);
  int status = strcmp(failing, name) == 0 && --fail_from <= 0 ? fail_status : SUCCESS;
  pthread_mutex_unlock(&lock);
  return status;
}

#define FAIL_IF_ASKED(name)                                                                                  \
  do {                                                                                                       \
    int status_ = asked(name);                                                                               \
    if (status_)                                                                                             \
      return status_;                                                                                        \
  } while (0)

/* The stand-in drivers' streams begin with a number. */
static int number_of(const void *stream) { return stream ? *(const int *)stream : 0; }

struct number {
  double re, im;
};

static size_t size_of(int type) {
  switch (type) {
  case R8I:
    return 1;
  case R16F:
  case R16BF:
    return 2;
  case R64F:
  case C32F:
    return 8;
  case C64F:
    return 16;
  default:
    return 4;
  }
}

static double read_bf16(const char *from) {
  uint32_t bits = 0;
  float value;
  memcpy((char *)&bits + 2, from, 2); /* the upper half, on a little-endian machine */
  memcpy(&value, &bits, 4);
  return (double)value;
}

static void write_bf16(char *to, double value) {
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, 4);
  bits += 0x7FFF + (bits >> 16 & 1);
  memcpy(to, (char *)&bits + 2, 2);
}

#define READ(type, from, at) ((const type *)(const void *)(from))[at]
#define WRITE(type, to, at, value) (((type *)(void *)(to))[at] = (type)(value))

static struct number load(int type, const void *values, int64_t at) {
  const char *from = (const char *)values + (size_t)at * size_of(type);
  switch (type) {
  case R8I:
    return (struct number){READ(int8_t, from, 0), 0};
  case R32I:
    return (struct number){READ(int32_t, from, 0), 0};
  case R16F:
    return (struct number){(double)READ(_Float16, from, 0), 0};
  case R16BF:
    return (struct number){read_bf16(from), 0};
  case R32F:
    return (struct number){(double)READ(float, from, 0), 0};
  case R64F:
    return (struct number){READ(double, from, 0), 0};
  case C32F:
    return (struct number){(double)READ(float, from, 0), (double)READ(float, from, 1)};
  case C64F:
    return (struct number){READ(double, from, 0), READ(double, from, 1)};
  case C16F:
    return (struct number){(double)READ(_Float16, from, 0), (double)READ(_Float16, from, 1)};
  default:
    return (struct number){read_bf16(from), read_bf16(from + 2)};
  }
}

static void store(int type, void *values, int64_t at, struct number value) {
  char *to = (char *)values + (size_t)at * size_of(type);
  switch (type) {
  case R8I:
    WRITE(int8_t, to, 0, value.re < -128 ? -128 : value.re > 127 ? 127 : value.re);
    break;
  case R32I:
    WRITE(int32_t, to, 0, value.re);
    break;
  case R16F:
    WRITE(_Float16, to, 0, value.re);
    break;
  case R16BF:
    write_bf16(to, value.re);
    break;
  case R32F:
    WRITE(float, to, 0, value.re);
    break;
  case R64F:
    WRITE(double, to, 0, value.re);
    break;
  case C32F:
    WRITE(float, to, 0, value.re);
    WRITE(float, to, 1, value.im);
    break;
  case C64F:
    WRITE(double, to, 0, value.re);
    WRITE(double, to, 1, value.im);
    break;
  case C16F:
    WRITE(_Float16, to, 0, value.re);
    WRITE(_Float16, to, 1, value.im);
    break;
  default:
    write_bf16(to, value.re);
    write_bf16(to + 2, value.im);
  }
}

/* A full matrix, row by row. */
struct full {
  int64_t rows, cols;
  struct number *at;
};

static struct full full_make(int64_t rows, int64_t cols) {
  return (struct full){rows, cols, calloc((size_t)(rows * cols) + 1, sizeof(struct number))};
}

/* op(m), in place of m. */
static void full_turn(struct full *m, int mode) {
  if (mode == 0)
    return;
  struct full turned = full_make(m->cols, m->rows);
  for (int64_t i = 0; i < m->rows; ++i)
    for (int64_t j = 0; j < m->cols; ++j) {
      struct number value = m->at[i * m->cols + j];
      turned.at[j * m->rows + i] = (struct number){value.re, mode == 2 ? -value.im : value.im};
    }
  free(m->at);
  *m = turned;
}

/* a row times a column. */
static struct number full_dot(const struct full *a, int64_t row, const struct full *b, int64_t col) {
  struct number sum = {0, 0};
  for (int64_t k = 0; k < a->cols; ++k) {
    struct number x = a->at[row * a->cols + k], y = b->at[k * b->cols + col];
    sum.re += x.re * y.re - x.im * y.im;
    sum.im += x.re * y.im + x.im * y.re;
  }
  return sum;
}

/* alpha product + beta old, with scalars of a compute type. */
static struct number combine(int type, const void *alpha, struct number product, const void *beta,
                             struct number old) {
  struct number a = load(type, alpha, 0), b = load(type, beta, 0);
  return (struct number){a.re * product.re - a.im * product.im + b.re * old.re - b.im * old.im,
                         a.re * product.im + a.im * product.re + b.re * old.im + b.im * old.re};
}

#endif
