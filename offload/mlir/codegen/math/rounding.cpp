//===- rounding.cpp - Roundings and fma without instructions for them -----===//

#include "codegen/math/functions.h"

namespace offload {

Number buildRoundEven(Number x) {
  // Where the last bit counts 1, adding rounds.
  double integers = x.isDouble() ? 0x1p52 : 0x1p23;
  Number size = x.abs(), rounded = (size + integers) - integers;
  return select(size < integers, rounded, size).withSignOf(x);
}

Number buildTrunc(Number x) {
  Number size = x.abs(), rounded = buildRoundEven(size);
  return select(rounded > size, rounded - 1.0, rounded).withSignOf(x);
}

Number buildFloor(Number x) {
  Number rounded = buildRoundEven(x);
  return select(rounded > x, rounded - 1.0, rounded).withSignOf(x);
}

Number buildCeil(Number x) {
  Number rounded = buildRoundEven(x);
  return select(rounded < x, rounded + 1.0, rounded).withSignOf(x);
}

Number buildRound(Number x) {
  Number size = x.abs(), whole = buildTrunc(size);
  return select(size - whole >= 0.5, whole + 1.0, whole).withSignOf(x);
}

Number buildFma(Number x, Number y, Number z) {
  // The product of two f32 is exact in f64. An inexact sum is made odd, so that it rounds to f32 as the true
  // sum does.
  Number product = x.widened() * y.widened(), addend = z.widened(), sum = product + addend;
  Number back = sum - product, error = (product - (sum - back)) + (addend - back);
  Number bits = sum.bits(), even = (bits & 1) == 0;
  Number away = (error > 0.0) == (sum > 0.0);
  Number inexact = (error > 0.0) | (error < 0.0);
  bits = select(inexact & even, select(away, bits + 1, bits - 1), bits);
  return bits.asFloat().narrowed();
}

} // namespace offload
