/* scalar.c: what the lowering of vector.print calls, and clocks; names and output are those of MLIR's
 * c-runner-utils. Any thread may call any of these. */
#include "failed.h"
#include "half.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

void printI64(int64_t value);
void printI64(int64_t value) {
  if (!has_failed())
    printf("%" PRId64, value);
}

void printU64(uint64_t value);
void printU64(uint64_t value) {
  if (!has_failed())
    printf("%" PRIu64, value);
}

void printF32(float value);
void printF32(float value) {
  if (!has_failed())
    printf("%g", (double)value);
}

void printF64(double value);
void printF64(double value) {
  if (!has_failed())
    printf("%g", value);
}

/* Both take the bits as an integer. */
void printF16(uint16_t bits);
void printF16(uint16_t bits) { printF32(f16_to_float(bits)); }

void printBF16(uint16_t bits);
void printBF16(uint16_t bits) { printF32(bf16_to_float(bits)); }

void printString(const char *text);
void printString(const char *text) {
  if (!has_failed())
    fputs(text, stdout);
}

void printOpen(void);
void printOpen(void) {
  if (!has_failed())
    fputs("( ", stdout);
}

void printClose(void);
void printClose(void) {
  if (!has_failed())
    fputs(" )", stdout);
}

void printComma(void);
void printComma(void) {
  if (!has_failed())
    fputs(", ", stdout);
}

/* Ends a line and writes it out, so that it stays in order with what others write. */
void printNewline(void);
void printNewline(void) {
  if (has_failed())
    return;
  fputc('\n', stdout);
  fflush(stdout);
}

void printFlops(double flops);
void printFlops(double flops) { fprintf(stderr, "%f GFLOPS\n", flops / 1e9); }

static struct timespec now(void) {
  struct timespec time = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time;
}

/* Seconds since some moment. */
double rtclock(void);
double rtclock(void) {
  struct timespec time = now();
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Nanoseconds since that moment. */
int64_t nanoTime(void);
int64_t nanoTime(void) {
  struct timespec time = now();
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t _mlir_ciface_nanoTime(void);
int64_t _mlir_ciface_nanoTime(void) { return nanoTime(); }
