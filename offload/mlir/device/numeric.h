//===- numeric.h - What the passes that prepare numbers share -------------===//
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

namespace offload {

/// The type with another element type: f32 -> i32, vector<4xf32> -> vector<4xi32>.
inline mlir::Type withElement(mlir::Type type, mlir::Type element) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    return vector.clone(element);
  return element;
}

/// A constant of the type, in every element where it is a vector.
inline mlir::Value constantOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                              mlir::TypedAttr element) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    return mlir::arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(vector, element));
  return mlir::arith::ConstantOp::create(b, loc, element);
}

/// The builder's own attributes end at 64 bits: -1 would be 2^64 - 1 of a wider type.
inline mlir::Value integerOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, int64_t value) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  llvm::APInt bits = llvm::APInt(64, value, /*isSigned=*/true).sextOrTrunc(width);
  return constantOf(b, loc, type, b.getIntegerAttr(element, bits));
}

inline mlir::Value floatOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, double value) {
  return constantOf(b, loc, type, b.getFloatAttr(mlir::getElementTypeOrSelf(type), value));
}

/// The integer type of the same shape and width, for the bits of a float.
inline mlir::Type bitsType(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return withElement(type, mlir::IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth()));
}

/// Floats of fewer than 16 bits, which no target computes with.
inline bool isSmallFloat(mlir::Type type) {
  auto element = mlir::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
  return element && element.getWidth() < 16;
}

/// Narrows from f64 to f32 so that a second rounding, to a type with at most 21 bits of significand, gives
/// what one rounding gives: inexact results have an odd last bit.
mlir::Value narrowToOdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value wide);

/// Writes out math.ipowi, and math.fpowi where the library (nvvm, rocdl, libm) has no accurate function for it.
void addPowerPatterns(mlir::RewritePatternSet &patterns, llvm::StringRef library);

/// Makes LLVM's intrinsics for functions of mathematics operations of the math and arith dialects.
void intrinsicsToMath(mlir::Operation *root);

/// Makes calls of functions of another library than the target's (nvvm, rocdl, libm) such operations, too.
void libraryCallsToMath(mlir::Operation *root, llvm::StringRef library);

} // namespace offload
