/* half.h: 16-bit floats, which C11 has no types for. */
#ifndef OFFLOAD_RUNNER_HALF_H
#define OFFLOAD_RUNNER_HALF_H

#include <stdint.h>
#include <string.h>

/* The value of a float whose bits these are. */
static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* bfloat16 is the upper half of a float. */
static inline float bf16_to_float(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

/* IEEE binary16, subnormals, infinities and NaN with its sign included; exact. */
static inline float f16_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 127u - 15u;
  return float_of_bits(sign | wide << 23 | fraction << 13);
}

#endif
