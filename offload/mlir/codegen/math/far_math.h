//===- far_math.h - Where libm is asked after all -------------------------===//
#pragma once

#include "codegen/math/number.h"

namespace offload {

/// The result, in whose place libm's function `name` stands where `isFar`. Goes on in another block.
llvm::Value *withFar(Builder &b, const std::string &name, Number x, Number isFar, Number result);

} // namespace offload
