/* numbers.h: reading and writing array elements of any type. */
#ifndef MGPU_INTERNAL_SPARSE_NUMBERS_H
#define MGPU_INTERNAL_SPARSE_NUMBERS_H

#include "runner/half.h"
#include "sparse/sparse.h"

/* Holds a value of every element type exactly. */
struct mgpu_wide {
  double re, im;
};

/* A double as a 16-bit float with that many bits of fraction, to nearest, ties to even. */
static inline uint16_t mgpu_narrow(double value, int fraction_bits) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent_bits = 15 - fraction_bits, least = 2 - (1 << (exponent_bits - 1)); /* of normal numbers */
  uint32_t sign = (uint32_t)(bits >> 63) << 15, infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
  uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
  if (exponent == 1024)
    return (uint16_t)(sign | infinity | (fraction ? 1u << (fraction_bits - 1) : 0));
  int shift = 52 - fraction_bits + (exponent < least ? least - exponent : 0);
  if (exponent == -1023 || shift > 54)
    return (uint16_t)sign;
  uint64_t whole = fraction | 1ull << 52, kept = whole >> shift, rest = whole & ((1ull << shift) - 1);
  uint64_t half = 1ull << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* The leading one, and a carry out of rounding, count up the exponent. */
  uint64_t encoded = kept + (exponent < least ? 0 : (uint64_t)(exponent - least) << fraction_bits);
  return (uint16_t)(sign | (encoded < infinity ? (uint32_t)encoded : infinity));
}

static inline struct mgpu_wide mgpu_number_load(int type, const void *values, int64_t at) {
  const float *f32 = values;
  const double *f64 = values;
  const uint16_t *f16 = values;
  switch ((enum mgpu_type)type) {
  case MGPU_F32:
    return (struct mgpu_wide){(double)f32[at], 0};
  case MGPU_F64:
    return (struct mgpu_wide){f64[at], 0};
  case MGPU_F16:
    return (struct mgpu_wide){(double)f16_to_float(f16[at]), 0};
  case MGPU_BF16:
    return (struct mgpu_wide){(double)bf16_to_float(f16[at]), 0};
  case MGPU_I8:
    return (struct mgpu_wide){((const int8_t *)values)[at], 0};
  case MGPU_I32:
    return (struct mgpu_wide){((const int32_t *)values)[at], 0};
  case MGPU_C32:
    return (struct mgpu_wide){(double)f32[2 * at], (double)f32[2 * at + 1]};
  case MGPU_C64:
    return (struct mgpu_wide){f64[2 * at], f64[2 * at + 1]};
  case MGPU_C16:
    return (struct mgpu_wide){(double)f16_to_float(f16[2 * at]), (double)f16_to_float(f16[2 * at + 1])};
  case MGPU_CBF16:
    return (struct mgpu_wide){(double)bf16_to_float(f16[2 * at]), (double)bf16_to_float(f16[2 * at + 1])};
  }
  return (struct mgpu_wide){0, 0};
}

/* Rounds to the type; i8 saturates, as cuSPARSELt's does. */
static inline void mgpu_number_store(int type, void *values, int64_t at, struct mgpu_wide value) {
  enum { F16_FRACTION = 10, BF16_FRACTION = 7 };
  float *f32 = values;
  double *f64 = values;
  uint16_t *f16 = values;
  switch ((enum mgpu_type)type) {
  case MGPU_F32:
    f32[at] = (float)value.re;
    break;
  case MGPU_F64:
    f64[at] = value.re;
    break;
  case MGPU_F16:
    f16[at] = mgpu_narrow(value.re, F16_FRACTION);
    break;
  case MGPU_BF16:
    f16[at] = mgpu_narrow(value.re, BF16_FRACTION);
    break;
  case MGPU_I8:
    ((int8_t *)values)[at] = (int8_t)(value.re < -128 ? -128 : value.re > 127 ? 127 : value.re);
    break;
  case MGPU_I32:
    ((int32_t *)values)[at] = (int32_t)value.re;
    break;
  case MGPU_C32:
    f32[2 * at] = (float)value.re;
    f32[2 * at + 1] = (float)value.im;
    break;
  case MGPU_C64:
    f64[2 * at] = value.re;
    f64[2 * at + 1] = value.im;
    break;
  case MGPU_C16:
    f16[2 * at] = mgpu_narrow(value.re, F16_FRACTION);
    f16[2 * at + 1] = mgpu_narrow(value.im, F16_FRACTION);
    break;
  case MGPU_CBF16:
    f16[2 * at] = mgpu_narrow(value.re, BF16_FRACTION);
    f16[2 * at + 1] = mgpu_narrow(value.im, BF16_FRACTION);
    break;
  }
}

/* Indices too large for 63 bits come out negative, and are refused as such. */
static inline int64_t mgpu_index_load(int type, const void *indices, int64_t at) {
  return type == MGPU_INDEX_U16   ? ((const uint16_t *)indices)[at]
         : type == MGPU_INDEX_I32 ? ((const int32_t *)indices)[at]
                                  : ((const int64_t *)indices)[at];
}

/* False when the index does not fit the type. */
static inline bool mgpu_index_store(int type, void *indices, int64_t at, int64_t index) {
  if (type == MGPU_INDEX_U16) {
    ((uint16_t *)indices)[at] = (uint16_t)index;
    return index <= UINT16_MAX;
  }
  if (type == MGPU_INDEX_I32) {
    ((int32_t *)indices)[at] = (int32_t)index;
    return index <= INT32_MAX;
  }
  ((int64_t *)indices)[at] = index;
  return true;
}

#endif
