//===- functions.h - Functions of mathematics as LLVM IR ------------------===//
//
// Each builds its value for x (and y), f32 or f64, without branches and calls: the vectorizer takes such code
// as any other arithmetic. What each is worth, in units of the last place, tests/cpu/test_host_math.py
// measures and docs/index.md says. The coefficients come from scripts/math_coefficients.py.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/math/number.h"

namespace offload {

Number buildExp(Number x);
/// e^(high + low), |low| far below 1, for results and high that are finite or saturate.
Number buildExpOfSum(Number high, Number low);
Number buildExp2(Number x);
Number buildExpm1(Number x);
Number buildTanh(Number x);

/// x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for normal numbers above 0. k is an integer, as a float.
struct Scale {
  Number k, f;
};
Scale splitNormal(Number x);
Number buildLog(Number x);
Number buildLog2(Number x);
Number buildLog10(Number x);
Number buildLog1p(Number x);
Number buildPow(Number x, Number y);
Number buildErf(Number x); // of f32 alone

/// These hold up to |x| = kMostAngle, beyond which `far` is asked.
constexpr double kMostAngle = 1e6;
Number buildSin(Number x);
Number buildCos(Number x);
Number buildTan(Number x);

/// For processors without an instruction for them.
Number buildRoundEven(Number x);
Number buildRound(Number x);
Number buildTrunc(Number x);
Number buildFloor(Number x);
Number buildCeil(Number x);
Number buildFma(Number x, Number y, Number z); // of f32 alone

} // namespace offload
