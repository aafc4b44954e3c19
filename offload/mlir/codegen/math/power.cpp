//===- power.cpp - pow ----------------------------------------------------===//
//
// |x|^y = e^(y log |x|), where an error of the logarithm is multiplied by up to 1075: f32 goes through f64,
// f64 through sums of two f64.
//
//===----------------------------------------------------------------------===//

#include "codegen/math/functions.h"

namespace offload {
namespace {

/// y log2(x) for f32, as f64.
Number scaledLog2(Number x, Number y) {
  auto [k, f] = splitNormal(x);
  Number s = f / (f + 2.0);
  Number log2 =
      polynomial(s * s, {},
                 {0x1.71547652b82ffp+1, 0x1.ec709dc39cd14p-1, 0x1.2776c51672b64p-1, 0x1.a61756a9261cdp-2,
                  0x1.484fa0feea419p-2, 0x1.0bb8edde56009p-2, 0x1.f16bd9755b414p-3});
  return y * fma(s, log2, k);
}

/// 2^x as f32, of an f64 whose bits beyond 2^-40 do not count.
Number exp2ToSingle(Number x) {
  x = select(x > 200.0, x.constant(200), x);
  x = select(x < -200.0, x.constant(-200), x);
  double aid = roundingAid(x);
  Number sum = x + aid, r = x - (sum - aid), n = sum.bits() - x.constant(aid).bits();
  Number rest = polynomial(r, {},
                           {0x1.62e42fef84cd5p-1, 0x1.ebfbdff81af25p-3, 0x1.c6b08dd700792p-5,
                            0x1.3b2ab72566630p-7, 0x1.5d8745a3d1de6p-10, 0x1.430895bbd9dadp-13,
                            0x1.00dc4c3b9706ap-16, 0x1.63e8d842b8601p-20});
  return (fma(r, rest, 1.0) * powerOfTwo(n)).narrowed();
}

/// A sum of two f64 that do not overlap.
struct Pair {
  Number high, low;
};

/// a + b, |a| >= |b|.
Pair sum(Number a, Number b) {
  Number high = a + b;
  return {high, b - (high - a)};
}

/// The halves of a f64: products of two halves are exact.
Pair halves(Number a) {
  Number high = (a.bits() & ~int64_t(0x7FFFFFF)).asFloat();
  return {high, a - high};
}

/// a b. Without the processor's fma, which x86-64 has from level 3 on, by Dekker's way.
Pair product(Number a, Number b) {
  Number high = a * b;
  Pair x = halves(a), y = halves(b);
  Number low = ((x.high * y.high - high) + x.high * y.low + x.low * y.high) + x.low * y.low;
  return {high, low};
}

Pair product(Pair a, Pair b) {
  Pair result = product(a.high, b.high);
  return sum(result.high, result.low + (a.high * b.low + a.low * b.high));
}

/// log(x), x > 0 and finite.
Pair logPair(Number x) {
  Number small = x < 0x1p-1022;
  auto [k, f] = splitNormal(select(small, x * 0x1p54, x));
  Number exponent = k - select(small, x.constant(54), x.constant(0));
  // s = f / (2 + f)
  Pair below = sum(f.constant(2), f);
  Number high = f / below.high;
  Pair check = product(high, below.high);
  Pair s{high, ((f - check.high) - check.low - high * below.low) / below.high};
  Pair z = product(s, s), cube = product(s, z);
  Number rest =
      polynomial(z.high, {},
                 {0x1.9999999999b45p-2, 0x1.2492492455c55p-2, 0x1.c71c722fe74f2p-3, 0x1.745ce92082f44p-3,
                  0x1.3b1f0bbbc38bcp-3, 0x1.0f7d46757259dp-3, 0x1.0e5947d226eefp-3});
  Pair third = product(cube, {x.constant(0x1.5555555555555p-1), x.constant(0x1.5555555555555p-55)});
  Pair fraction = sum(s.high * 2.0, third.high);
  fraction.low = fraction.low + (s.low * 2.0 + third.low + cube.high * z.high * rest);
  // The first part of ln 2 has 42 bits: its product with k is exact.
  Pair whole = sum(exponent * 0x1.62e42fefa38p-1, fraction.high);
  Pair plain = sum(fraction.high, fraction.low);
  Number none = exponent == 0.0;
  Number low = whole.low + (fraction.low + exponent * 0x1.ef35793c7673p-45);
  Pair both = sum(whole.high, low);
  return {select(none, plain.high, both.high), select(none, plain.low, both.low)};
}

Number expOfPair(Pair x) {
  Number big = x.high.abs() > 800.0;
  Number high = select(x.high > 800.0, x.high.constant(800), x.high);
  high = select(high < -800.0, x.high.constant(-800), high);
  Number low = select(big, x.low.constant(0), x.low);
  return buildExpOfSum(high, low);
}

/// x^y for finite x > 0 and any y.
Number finitePower(Number x, Number y) {
  // Beyond, the result is 0, 1 or infinite all the same; and no product becomes NaN.
  double most = x.isDouble() ? 0x1p64 : 0x1p40;
  Number within = select(y.abs() > most, y.constant(most).withSignOf(y), y);
  if (!x.isDouble())
    return exp2ToSingle(scaledLog2(x.widened(), within.widened()));
  Pair log = logPair(x), exact = product(within, log.high);
  return expOfPair(sum(exact.high, exact.low + within * log.low));
}

} // namespace

Number buildPow(Number x, Number y) {
  double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Number size = x.abs(), one = x.constant(1);
  Number ordinary = (size > 0.0) & (size < infinity);
  Number result = finitePower(select(ordinary, size, one), y);
  Number large = select(y > 0.0, size, 1.0 / size); // of 0 and infinity
  result = select(ordinary, result, large);

  // The sign, by the last bit of an integer y. From 2^23 on all f32 are integers, from 2^24 on even ones.
  double integers = x.isDouble() ? 0x1p52 : 0x1p23;
  Number height = y.abs(), shifted = height + integers;
  Number exact = (height >= integers) | ((shifted - integers) == height);
  Number last = (select(height >= integers, height, shifted).bits() & 1) != 0;
  Number odd = exact & last & (height < 2 * integers);
  Number negative = x.bits() < 0;
  result = select(negative & odd, -result, result);
  result = select((x < 0.0) & (size < infinity) & !exact, x.constant(nan), result);
  result = select((x == x) & (y == y), result, x + y);
  return select((x == 1.0) | (y == 0.0), one, result);
}

} // namespace offload
