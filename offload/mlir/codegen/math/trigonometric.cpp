//===- trigonometric.cpp - sin, cos, tan ----------------------------------===//
//
// x = n pi/2 + r with |r| <= pi/4; n tells which of sin(r) and cos(r) it is, and its sign. pi/2 stands in
// parts whose products with n are exact (Cody and Waite), which holds for n below 2^20.
//
//===----------------------------------------------------------------------===//

#include "codegen/math/functions.h"

namespace offload {
namespace {

struct Angle {
  Number sine, cosine; // of r
  Number quadrant;     // n, of the width of x
};

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1, kFirst = 0x1.921fb544p0;

/// f32: in f64, where two parts are enough.
Angle singleAngle(Number x) {
  Number wide = x.widened(), aid = wide.constant(roundingAid(wide));
  Number sum = fma(wide, kTwoOverPi, aid), n = sum - aid;
  Number r = fma(n, -0x1.0b4611a626331p-34, fma(n, -kFirst, wide)).narrowed(), z = r * r;
  Number sine = fma(r * z, polynomial(z, {-0x1.555546p-3, 0x1.11077ep-7, -0x1.9956b6p-13}, {}), r);
  Number cosine = fma(z * z, polynomial(z, {0x1.55554ap-5, -0x1.6c0c2ep-10, 0x1.99ead0p-16}, {}),
                      fma(z, -0.5, x.constant(1)));
  return {sine, cosine, sum.bits().narrowed()};
}

/// f64: what is lost in r is kept, and added where the functions of r are formed.
Angle doubleAngle(Number x) {
  Number aid = x.constant(roundingAid(x)), sum = fma(x, kTwoOverPi, aid), n = sum - aid;
  Number left = fma(n, -kFirst, x), second = n * 0x1.0b4611a6p-34, third = n * 0x1.3198a2e037073p-69;
  Number high = left - second, back = high - left;
  Number low = ((left - (high - back)) - (second + back)) - third;
  Number r = high + low, lost = (high - r) + low, z = r * r;
  Number sine = polynomial(z, {},
                           {-0x1.5555555555548p-3, 0x1.111111110f77ep-7, -0x1.a01a019bf8228p-13,
                            0x1.71de35650a32ap-19, -0x1.ae5e597db57c2p-26, 0x1.5d8fb827e3d03p-33});
  Number cosine = polynomial(z, {},
                             {0x1.555555555554bp-5, -0x1.6c16c16c1504cp-10, 0x1.a01a019c97a13p-16,
                              -0x1.27e4f7f911e6ap-22, 0x1.1ee9e17e6b4ccp-29, -0x1.8fa9a7413e865p-37});
  Number half = z * 0.5, near = 1.0 - half;
  sine = r + fma(r * z, sine, fma(-half, lost, lost));
  cosine = near + (((1.0 - near) - half) + fma(z * z, cosine, -(r * lost)));
  return {sine, cosine, sum.bits()};
}

Angle reduce(Number x) { return x.isDouble() ? doubleAngle(x) : singleAngle(x); }

/// The sign that bit 1 of the quadrant is, on a value.
Number signedBy(Number quadrant, Number value) {
  int64_t toSign = value.isDouble() ? 62 : 30;
  Number sign = (quadrant & 2) << toSign;
  return (value.bits() ^ sign).asFloat();
}

} // namespace

Number buildSin(Number x) {
  Angle angle = reduce(x);
  Number odd = (angle.quadrant & 1) != 0;
  Number result = signedBy(angle.quadrant, select(odd, angle.cosine, angle.sine));
  return select(x == 0.0, x, result); // the sign of 0
}

Number buildCos(Number x) {
  Angle angle = reduce(x);
  Number odd = (angle.quadrant & 1) != 0;
  return signedBy(angle.quadrant + 1, select(odd, angle.sine, angle.cosine));
}

Number buildTan(Number x) {
  Angle angle = reduce(x);
  Number odd = (angle.quadrant & 1) != 0;
  Number result = select(odd, -angle.cosine, angle.sine) / select(odd, angle.sine, angle.cosine);
  return select(x == 0.0, x, result);
}

} // namespace offload
