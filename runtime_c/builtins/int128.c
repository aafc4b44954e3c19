/* int128.c: quotients of integers of 128 bits and their conversions from and to floats, under the names that
 * LLVM's code generator calls.
 *
 * Quotients are undefined where the divisor is 0 or they do not fit, and so are conversions to integers of
 * what does not fit. Conversions to floats round to nearest, ties to even, in one step.
 */
#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

uint128 __udivti3(uint128 a, uint128 b);
uint128 __umodti3(uint128 a, uint128 b);
int128 __divti3(int128 a, int128 b);
int128 __modti3(int128 a, int128 b);
double __floatuntidf(uint128 a);
double __floattidf(int128 a);
float __floatuntisf(uint128 a);
float __floattisf(int128 a);
uint128 __fixunsdfti(double a);
int128 __fixdfti(double a);
uint128 __fixunssfti(float a);
int128 __fixsfti(float a);

static unsigned leading_zeros(uint128 a) {
  uint64_t high = (uint64_t)(a >> 64);
  return high ? (unsigned)__builtin_clzll(high) : 64u + (unsigned)__builtin_clzll((uint64_t)a | 1);
}

/* Bit by bit: subtracts the divisor wherever it fits. Operands of 64 bits are left to the processor. */
static uint128 divide(uint128 a, uint128 b, uint128 *rest) {
  uint128 quotient = 0;
  if (a >> 64 == 0 && b >> 64 == 0) {
    uint64_t small = (uint64_t)b ? (uint64_t)b : 1;
    *rest = (uint64_t)a % small;
    return (uint64_t)a / small;
  }
  if (b != 0 && a >= b)
    for (unsigned place = leading_zeros(b) - leading_zeros(a) + 1; place-- > 0;)
      if (a >> place >= b) {
        a -= b << place;
        quotient |= (uint128)1 << place;
      }
  *rest = a;
  return quotient;
}

static uint128 magnitude(int128 a) { return a < 0 ? -(uint128)a : (uint128)a; }

uint128 __udivti3(uint128 a, uint128 b) {
  uint128 rest;
  return divide(a, b, &rest);
}

uint128 __umodti3(uint128 a, uint128 b) {
  uint128 rest;
  (void)divide(a, b, &rest);
  return rest;
}

int128 __divti3(int128 a, int128 b) {
  uint128 rest, quotient = divide(magnitude(a), magnitude(b), &rest);
  return (int128)((a < 0) != (b < 0) ? -quotient : quotient);
}

int128 __modti3(int128 a, int128 b) {
  uint128 rest;
  (void)divide(magnitude(a), magnitude(b), &rest);
  return (int128)(a < 0 ? -rest : rest);
}

/* The upper 64 bits of a number that has more, the last of which is also set where a bit below is: they round
 * as the number does. */
static uint64_t upper(uint128 a, unsigned *below) {
  *below = 64 - leading_zeros(a);
  uint64_t lost = (a & (((uint128)1 << *below) - 1)) != 0;
  return (uint64_t)(a >> *below) | lost;
}

double __floatuntidf(uint128 a) {
  if (a >> 64 == 0)
    return (double)(uint64_t)a;
  unsigned below;
  double rounded = (double)upper(a, &below);
  /* 2^63 twice at most: powers of two change no digit. */
  return rounded * (double)((uint64_t)1 << (below / 2)) * (double)((uint64_t)1 << (below - below / 2));
}

double __floattidf(int128 a) {
  double rounded = __floatuntidf(magnitude(a));
  return a < 0 ? -rounded : rounded;
}

float __floatuntisf(uint128 a) {
  if (a >> 64 == 0)
    return (float)(uint64_t)a;
  unsigned below;
  float rounded = (float)upper(a, &below);
  return rounded * (float)((uint64_t)1 << (below / 2)) * (float)((uint64_t)1 << (below - below / 2));
}

float __floattisf(int128 a) {
  float rounded = __floatuntisf(magnitude(a));
  return a < 0 ? -rounded : rounded;
}

uint128 __fixunsdfti(double a) {
  union {
    double value;
    uint64_t bits;
  } both = {.value = a};
  int exponent = (int)(both.bits >> 52 & 0x7ff) - 1023;
  uint128 fraction = (both.bits & 0xfffffffffffff) | 0x10000000000000;
  if (exponent < 0 || exponent > 127)
    return 0;
  return exponent < 52 ? fraction >> (52 - exponent) : fraction << (exponent - 52);
}

int128 __fixdfti(double a) {
  uint128 whole = __fixunsdfti(a < 0 ? -a : a);
  return (int128)(a < 0 ? -whole : whole);
}

uint128 __fixunssfti(float a) { return __fixunsdfti((double)a); }
int128 __fixsfti(float a) { return __fixdfti((double)a); }
