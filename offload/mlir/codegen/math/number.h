//===- number.h - Formulas that build LLVM IR -----------------------------===//
//
// `Number` is a value of LLVM IR with C++'s operators, so that a function of mathematics reads as its
// formula. It is a scalar or a vector, of floats or of signed integers; constants take its type.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/IR/IRBuilder.h"

#include <initializer_list>
#include <type_traits>

namespace offload {

using Builder = llvm::IRBuilder<>;

class Number {
public:
  Number(Builder &b, llvm::Value *value) : b(&b), value(value) {}

  llvm::Type *type() const { return value->getType(); }
  bool isFloat() const { return type()->isFPOrFPVectorTy(); }
  /// f64, or its bits.
  bool isDouble() const { return type()->getScalarSizeInBits() == 64; }

  Number constant(double number) const { return {*b, llvm::ConstantFP::get(type(), number)}; }
  Number integer(int64_t number) const {
    return {*b, llvm::ConstantInt::getSigned(isFloat() ? bitsType() : type(), number)};
  }
  template <typename T> Number like(T number) const {
    return isFloat() ? constant(double(number)) : integer(int64_t(number));
  }

  /// The bits of a float as an integer, and back.
  Number bits() const { return {*b, b->CreateBitCast(value, bitsType())}; }
  Number asFloat() const {
    llvm::Type *element = isDouble() ? llvm::Type::getDoubleTy(type()->getContext())
                                     : llvm::Type::getFloatTy(type()->getContext());
    return {*b, b->CreateBitCast(value, type()->getWithNewType(element))};
  }
  Number toFloat() const {
    return {*b, b->CreateSIToFP(value, type()->getWithNewType(llvm::Type::getFloatTy(type()->getContext())))};
  }
  /// f32 as f64, and back.
  Number widened() const {
    return {*b, b->CreateFPExt(value, type()->getWithNewType(llvm::Type::getDoubleTy(type()->getContext())))};
  }
  Number narrowed() const {
    llvm::LLVMContext &context = type()->getContext();
    if (isFloat())
      return {*b, b->CreateFPTrunc(value, type()->getWithNewType(llvm::Type::getFloatTy(context)))};
    return {*b, b->CreateTrunc(value, type()->getWithNewType(llvm::Type::getInt32Ty(context)))};
  }
  Number abs() const { return unary(llvm::Intrinsic::fabs); }
  Number sqrt() const { return unary(llvm::Intrinsic::sqrt); }
  Number withSignOf(Number other) const {
    return {*b, b->CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, other.value)};
  }
  /// Shifts of integers, to the right without the sign: x86-64 has no other for vectors of i64 below level 4.
  Number operator<<(int64_t count) const { return {*b, b->CreateShl(value, integer(count).value)}; }
  Number operator>>(int64_t count) const { return {*b, b->CreateLShr(value, integer(count).value)}; }

  Builder *b;
  llvm::Value *value;

private:
  llvm::Type *bitsType() const {
    return type()->getWithNewType(
        llvm::IntegerType::get(type()->getContext(), type()->getScalarSizeInBits()));
  }
  Number unary(llvm::Intrinsic::ID id) const { return {*b, b->CreateUnaryIntrinsic(id, value)}; }
};

#define OFFLOAD_OPERATOR(sign, forFloats, forIntegers)                                                       \
  inline Number operator sign(Number x, Number y) {                                                          \
    return {*x.b, x.isFloat() ? x.b->Create##forFloats(x.value, y.value)                                     \
                              : x.b->Create##forIntegers(x.value, y.value)};                                 \
  }                                                                                                          \
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>                                \
  Number operator sign(Number x, T y) {                                                                      \
    return x sign x.like(y);                                                                                 \
  }                                                                                                          \
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>                                \
  Number operator sign(T x, Number y) {                                                                      \
    return y.like(x) sign y;                                                                                 \
  }
OFFLOAD_OPERATOR(+, FAdd, Add)
OFFLOAD_OPERATOR(-, FSub, Sub)
OFFLOAD_OPERATOR(*, FMul, Mul)
OFFLOAD_OPERATOR(/, FDiv, SDiv)
// Comparisons of floats are false for NaN.
OFFLOAD_OPERATOR(<, FCmpOLT, ICmpSLT)
OFFLOAD_OPERATOR(<=, FCmpOLE, ICmpSLE)
OFFLOAD_OPERATOR(>, FCmpOGT, ICmpSGT)
OFFLOAD_OPERATOR(>=, FCmpOGE, ICmpSGE)
OFFLOAD_OPERATOR(==, FCmpOEQ, ICmpEQ)
OFFLOAD_OPERATOR(!=, FCmpUNE, ICmpNE)
OFFLOAD_OPERATOR(&, And, And)
OFFLOAD_OPERATOR(|, Or, Or)
OFFLOAD_OPERATOR(^, Xor, Xor)
#undef OFFLOAD_OPERATOR

inline Number operator-(Number x) { return {*x.b, x.b->CreateFNeg(x.value)}; }

inline Number operator!(Number x) { return {*x.b, x.b->CreateNot(x.value)}; }

inline Number select(Number condition, Number yes, Number no) {
  return {*yes.b, yes.b->CreateSelect(condition.value, yes.value, no.value)};
}

/// x * y + z, rounded once where the processor does that in one instruction, else twice.
inline Number fma(Number x, Number y, Number z) {
  return {*x.b, x.b->CreateIntrinsic(llvm::Intrinsic::fmuladd, {x.type()}, {x.value, y.value, z.value})};
}
inline Number fma(Number x, double y, Number z) { return fma(x, x.constant(y), z); }
inline Number fma(Number x, Number y, double z) { return fma(x, y, x.constant(z)); }

/// c[0] + c[1] x + c[2] x^2 + …
inline Number polynomial(Number x, llvm::ArrayRef<double> c) {
  Number sum = x.constant(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, coefficient);
  return sum;
}
/// The same with the coefficients of the type of x.
inline Number polynomial(Number x, std::initializer_list<double> f32, std::initializer_list<double> f64) {
  return x.isDouble() ? polynomial(x, llvm::ArrayRef<double>(f64))
                      : polynomial(x, llvm::ArrayRef<double>(f32));
}

/// 1.5 * 2^23 or 2^52: a sum with it has the other summand, rounded to an integer, in its low bits.
inline double roundingAid(Number x) { return x.isDouble() ? 0x1.8p52 : 0x1.8p23; }

/// 2^n for an integer n that is the exponent of a normal number.
inline Number powerOfTwo(Number n) {
  return ((n + (n.isDouble() ? 1023 : 127)) << (n.isDouble() ? 52 : 23)).asFloat();
}

/// x 2^n, where 2^n alone may be too large or too small for the type.
inline Number scaled(Number x, Number n) {
  Number half = ((n + 4096) >> 1) - 2048;
  return x * powerOfTwo(half) * powerOfTwo(n - half);
}

} // namespace offload
