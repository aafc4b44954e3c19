//===- exponential.cpp - exp, exp2, expm1, tanh ---------------------------===//
//
// e^x = 2^n e^r with n the integer next to x / ln 2 and |r| <= ln 2 / 2.
//
//===----------------------------------------------------------------------===//

#include "codegen/math/functions.h"

namespace offload {
namespace {

struct Reduced {
  Number n; // integer
  Number r;
};

/// For |x| so small that n has 11 bits, 9 in f32: then its product with the first part of ln 2 is exact.
Reduced reduce(Number x) {
  double aid = roundingAid(x);
  Number sum = fma(x, 0x1.71547652b82fep0, x.constant(aid));
  Number n = sum - aid;
  Number r = fma(n, x.isDouble() ? -0x1.62e42feep-1 : -0x1.63p-1, x);
  r = fma(n, x.isDouble() ? -0x1.a39ef35793c76p-33 : 0x1.bd0106p-13, r);
  return {sum.bits() - x.constant(aid).bits(), r};
}

/// e^r - 1.
Number expm1OfSmall(Number r) {
  Number rest =
      polynomial(r, {0x1.0p-1, 0x1.55548cp-3, 0x1.5554e4p-5, 0x1.123d02p-7, 0x1.6d514ap-10},
                 {0x1.0p-1, 0x1.555555555555cp-3, 0x1.5555555555558p-5, 0x1.111111110e9efp-7,
                  0x1.6c16c16c1500bp-10, 0x1.a01a01b44afd9p-13, 0x1.a01a01ad76d15p-16, 0x1.71ddee619014ep-19,
                  0x1.27e4cc2827b2ep-22, 0x1.af6e9ed00abecp-26, 0x1.1f8bb233a20cfp-29});
  return fma(r * r, rest, r);
}

/// Keeps x where the result is neither 0 nor infinite, and NaN as it is.
Number clamped(Number x, double low, double high) {
  x = select(x > high, x.constant(high), x);
  return select(x < low, x.constant(low), x);
}

} // namespace

Number buildExpOfSum(Number high, Number low) {
  auto [n, r] = reduce(high);
  return scaled(expm1OfSmall(r + low) + 1.0, n);
}

Number buildExp(Number x) {
  auto [n, r] = reduce(x.isDouble() ? clamped(x, -746, 710) : clamped(x, -105, 89));
  return scaled(expm1OfSmall(r) + 1.0, n);
}

Number buildExp2(Number x) {
  x = x.isDouble() ? clamped(x, -1080, 1025) : clamped(x, -152, 129);
  double aid = roundingAid(x);
  Number sum = x + aid, r = x - (sum - aid), n = sum.bits() - x.constant(aid).bits();
  Number rest = polynomial(
      r, {0x1.62e430p-1, 0x1.ebfbe0p-3, 0x1.c6af72p-5, 0x1.3b2a48p-7, 0x1.5f0dccp-10, 0x1.4424b0p-13},
      {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a183p-5, 0x1.3b2ab6fba4d80p-7,
       0x1.5d87fe7888b62p-10, 0x1.430912f8a93b7p-13, 0x1.ffcbfcdbb0815p-17, 0x1.62c021635f524p-20,
       0x1.b524224fbe196p-24, 0x1.e4d2017c60869p-28, 0x1.eafe8868eac99p-32, 0x1.c0e2e02dac2bfp-36});
  return scaled(fma(r, rest, 1.0), n);
}

Number buildExpm1(Number x) {
  // Below, the result is -1; in between, e^x - 1 = 2^n ((e^r - 1) + (1 - 2^-n)).
  Number near = x.isDouble() ? clamped(x, -40, 710) : clamped(x, -20, 89);
  auto [n, r] = reduce(near);
  Number result = scaled(expm1OfSmall(r) + (1.0 - powerOfTwo(0 - n)), n);
  // 2^-n is not a normal number at the upper end, where 1 does not count either.
  result = select(n > (x.isDouble() ? 64 : 32), scaled(expm1OfSmall(r) + 1.0, n), result);
  return select(x == 0.0, x, result);
}

Number buildTanh(Number x) {
  Number twice = x.abs() * 2.0;
  auto [n, r] = reduce(x.isDouble() ? clamped(twice, 0, 44) : clamped(twice, 0, 22));
  Number e = (expm1OfSmall(r) + (1.0 - powerOfTwo(0 - n))) * powerOfTwo(n);
  return (e / (e + 2.0)).withSignOf(x);
}

} // namespace offload
