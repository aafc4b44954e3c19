/* int128.c: quotients of integers of 128 bits, under the names that LLVM's code generator calls. They are
 * undefined where the divisor is 0 or they do not fit. */
#include <stdint.h>

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

uint128 __udivti3(uint128 a, uint128 b);
uint128 __umodti3(uint128 a, uint128 b);
int128 __divti3(int128 a, int128 b);
int128 __modti3(int128 a, int128 b);

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
