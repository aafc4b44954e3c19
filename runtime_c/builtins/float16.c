/* float16.c: conversions between 16-bit floats and others, under the names that LLVM's code generator calls.
 *
 * binary16 (half) has 5 bits of exponent and 10 of fraction, bfloat16 has 8 and 7. Narrowing rounds to
 * nearest, ties to even, from the source in one step: by way of float, a double would be rounded twice.
 * Formats as in IEEE 754-2019, 3.4.
 *
 * Both travel in a float register, as _Float16 does; bfloat16 is passed under that type, because not every
 * compiler that builds this has a type for it.
 */
#include <stdint.h>

typedef _Float16 carrier;

static carrier carry(uint16_t bits) {
  union {
    uint16_t bits;
    carrier value;
  } both = {.bits = bits};
  return both.value;
}

static uint16_t bits_of(carrier value) {
  union {
    carrier value;
    uint16_t bits;
  } both = {.value = value};
  return both.bits;
}

static uint64_t bits_of_double(double value) {
  union {
    double value;
    uint64_t bits;
  } both = {.value = value};
  return both.bits;
}

static double double_of_bits(uint64_t bits) {
  union {
    uint64_t bits;
    double value;
  } both = {.bits = bits};
  return both.value;
}

/* Rounds to a 16-bit format with that many bits of exponent and fraction. */
static uint16_t narrow(double value, unsigned exponent_bits, unsigned fraction_bits) {
  uint64_t bits = bits_of_double(value);
  uint16_t sign = (uint16_t)(bits >> 63 << 15);
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t fraction = bits & 0xfffffffffffff;
  unsigned largest = (1u << exponent_bits) - 1u;
  unsigned infinity = largest << fraction_bits;
  if (exponent == 0x7ff) {
    if (fraction == 0)
      return (uint16_t)(sign | infinity);
    /* NaN stays NaN, quiet, with the upper bits of its payload. */
    unsigned payload = (unsigned)(fraction >> (52 - fraction_bits)) | 1u << (fraction_bits - 1);
    return (uint16_t)(sign | infinity | payload);
  }
  if (exponent == 0)
    return sign; /* doubles without a leading 1 are far below the smallest number of either format */

  uint64_t significand = fraction | (uint64_t)1 << 52;
  int bias = (1 << (exponent_bits - 1)) - 1;
  int target = exponent - 1023 + bias;
  unsigned shift = 52 - fraction_bits;
  if (target < 1) { /* subnormal: the leading 1 moves into the fraction */
    unsigned more = (unsigned)(1 - target);
    if (more > fraction_bits + 1)
      return sign;
    shift += more;
    target = 0;
  } else {
    if (target >= (int)largest)
      return (uint16_t)(sign | infinity);
    significand -= (uint64_t)1 << 52;
  }
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  /* A carry out of the fraction goes into the exponent, up to infinity, as the format has it. */
  return (uint16_t)(sign | (((unsigned)target << fraction_bits) + (unsigned)kept));
}

/* Exact. */
static double widen(uint16_t bits, unsigned exponent_bits, unsigned fraction_bits) {
  uint64_t sign = (uint64_t)(bits >> 15) << 63;
  unsigned largest = (1u << exponent_bits) - 1u;
  unsigned exponent = (unsigned)(bits & 0x7fff) >> fraction_bits;
  uint64_t fraction = bits & ((1u << fraction_bits) - 1u);
  if (exponent == largest)
    return double_of_bits(sign | (uint64_t)0x7ff << 52 | fraction << (52 - fraction_bits));
  int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == 0) {
    /* fraction * 2^(1 - bias - fraction_bits), a power that a double has */
    uint64_t power = (uint64_t)(1023 + 1 - bias - (int)fraction_bits) << 52;
    double magnitude = (double)fraction * double_of_bits(power);
    return sign ? -magnitude : magnitude;
  }
  return double_of_bits(sign | (uint64_t)((int)exponent - bias + 1023) << 52 |
                        fraction << (52 - fraction_bits));
}

carrier __truncsfhf2(float value);
carrier __truncdfhf2(double value);
carrier __truncsfbf2(float value);
carrier __truncdfbf2(double value);
float __extendhfsf2(carrier value);
double __extendhfdf2(carrier value);

carrier __truncsfhf2(float value) { return carry(narrow((double)value, 5, 10)); }
carrier __truncdfhf2(double value) { return carry(narrow(value, 5, 10)); }
carrier __truncsfbf2(float value) { return carry(narrow((double)value, 8, 7)); }
carrier __truncdfbf2(double value) { return carry(narrow(value, 8, 7)); }
float __extendhfsf2(carrier value) { return (float)widen(bits_of(value), 5, 10); }
double __extendhfdf2(carrier value) { return widen(bits_of(value), 5, 10); }
