//===- logarithm.cpp - log, log2, log10, log1p ----------------------------===//
//
// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). With s = f / (2 + f), log(1 + f) = log((1 + s) / (1 -
// s)), which is 2 s and odd powers of s.
//
//===----------------------------------------------------------------------===//

#include "codegen/math/functions.h"

namespace offload {
namespace {

/// The same for denormals.
Scale splitAny(Number x) {
  Number small = x < (x.isDouble() ? 0x1p-1022 : 0x1p-126);
  Scale result = splitNormal(select(small, x * (x.isDouble() ? 0x1p54 : 0x1p25), x));
  result.k = result.k - select(small, x.constant(x.isDouble() ? 54 : 25), x.constant(0));
  return result;
}

/// log(1 + f) + more, where `more` is far below f.
Number logOf(Number f, Number more) {
  Number s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
  Number rest =
      polynomial(z, {0x1.55557ap-1, 0x1.995edap-2, 0x1.31dfeap-2},
                 {0x1.5555555555594p-1, 0x1.999999997f73fp-2, 0x1.249249423ac79p-2, 0x1.c71c51d6d7e76p-3,
                  0x1.746647f14b159p-3, 0x1.39a0eaea502f7p-3, 0x1.2f0ccd19fb262p-3});
  return f - (half - fma(s, fma(z, rest, half), more));
}

/// The values at 0, below, at infinity and NaN.
Number withEdges(Number x, Number result) {
  double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  result = select(x < infinity, result, x);
  result = select(x == 0.0, x.constant(-infinity), result);
  return select(x < 0.0, x.constant(nan), result);
}

// ln 2 in two parts; the product of the first and k is exact.
double ln2High(Number x) { return x.isDouble() ? 0x1.62e42feep-1 : 0x1.63p-1; }
double ln2Low(Number x) { return x.isDouble() ? 0x1.a39ef35793c76p-33 : -0x1.bd0106p-13; }

} // namespace

Scale splitNormal(Number x) {
  Number bits = x.bits();
  int64_t fraction = x.isDouble() ? 52 : 23, middle = x.isDouble() ? 1024 : 128; // makes k positive
  int64_t rootOfHalf = x.isDouble() ? 0x3FE6A09E667F3BCD : 0x3F3504F3;
  Number k = (bits - rootOfHalf + (middle << fraction)) >> fraction;
  Number f = (bits - ((k - middle) << fraction)).asFloat() - 1.0;
  // An integer below 2^52 as f64, for which few processors have an instruction on vectors.
  Number counted =
      x.isDouble() ? (k | 0x4330000000000000).asFloat() - (0x1p52 + 1024) : (k - middle).toFloat();
  return {counted, f};
}

Number buildLog(Number x) {
  auto [k, f] = splitAny(x);
  Number result = fma(k, ln2High(x), logOf(f, k * ln2Low(x)));
  return withEdges(x, result);
}

Number buildLog2(Number x) {
  auto [k, f] = splitAny(x);
  return withEdges(x, fma(logOf(f, f.constant(0)), 0x1.71547652b82fep0, k));
}

Number buildLog10(Number x) {
  auto [k, f] = splitAny(x);
  // log10(2), the first part short as above.
  double high = x.isDouble() ? 0x1.34413509p-2 : 0x1.344p-2;
  double low = x.isDouble() ? 0x1.ef3fde623e256p-35 : 0x1.3509f8p-18;
  Number result = fma(logOf(f, f.constant(0)), 0x1.bcb7b1526e50ep-2, k * low);
  return withEdges(x, fma(k, high, result));
}

Number buildLog1p(Number x) {
  // u = 1 + x has lost some of x; log(1 + x) is log(u) and the loss over u.
  Number u = x + 1.0;
  auto [k, f] = splitAny(u);
  Number lost = select(x < 1.0, x - (u - 1.0), 1.0 - (u - x));
  Number correction = select(u > 0.0, lost / u, x.constant(0));
  Number result = fma(k, ln2High(x), logOf(f, fma(k, ln2Low(x), correction)));
  return select(x.abs() < (x.isDouble() ? 0x1p-54 : 0x1p-25), x, withEdges(u, result));
}

} // namespace offload
