//===- intrinsics_to_math.cpp - LLVM's functions of mathematics in kernels -===//
//
// Kernels that came in the LLVM dialect call functions of mathematics as LLVM's intrinsics. GPUs have code
// for few of those, and MLIR's conversions refuse even these: they are the library's, as the math dialect's
// are. Those that the dialect lacks are written out: roundings to integers, powers of ten, sine and cosine
// in one. Intrinsics that are called by their names (llvm.call_intrinsic) become operations first.
//
//===----------------------------------------------------------------------===//

#include "device/numeric.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

arith::FastMathFlags flagsOf(LLVM::FastmathFlags given) {
  constexpr std::pair<LLVM::FastmathFlags, arith::FastMathFlags> kFlags[] = {
      {LLVM::FastmathFlags::nnan, arith::FastMathFlags::nnan},
      {LLVM::FastmathFlags::ninf, arith::FastMathFlags::ninf},
      {LLVM::FastmathFlags::nsz, arith::FastMathFlags::nsz},
      {LLVM::FastmathFlags::arcp, arith::FastMathFlags::arcp},
      {LLVM::FastmathFlags::contract, arith::FastMathFlags::contract},
      {LLVM::FastmathFlags::afn, arith::FastMathFlags::afn},
      {LLVM::FastmathFlags::reassoc, arith::FastMathFlags::reassoc}};
  auto flags = arith::FastMathFlags::none;
  for (auto [theirs, ours] : kFlags)
    if (LLVM::bitEnumContainsAll(given, theirs))
      flags = flags | ours;
  return flags;
}

/// The exponent is one number for all elements of a vector.
bool replacePower(Operation *op) {
  auto power = dyn_cast<LLVM::PowIOp>(op);
  if (!power)
    return false;
  OpBuilder b(op);
  Value exponent = power.getPower();
  if (isa<VectorType>(power.getType()))
    exponent = vector::BroadcastOp::create(b, op->getLoc(), withElement(power.getType(), exponent.getType()),
                                           exponent);
  auto flags = arith::FastMathFlagsAttr::get(op->getContext(), flagsOf(power.getFastmathFlags()));
  op->replaceAllUsesWith(math::FPowIOp::create(b, op->getLoc(), power.getVal(), exponent, flags));
  op->erase();
  return true;
}

/// A power of ten.
bool replaceExp10(Operation *op) {
  auto from = dyn_cast<LLVM::Exp10Op>(op);
  if (!from)
    return false;
  OpBuilder b(op);
  auto flags = arith::FastMathFlagsAttr::get(op->getContext(), flagsOf(from.getFastmathFlags()));
  Value ten = floatOf(b, op->getLoc(), from.getType(), 10.0);
  op->replaceAllUsesWith(math::PowFOp::create(b, op->getLoc(), ten, from.getIn(), flags));
  op->erase();
  return true;
}

bool replaceSinCos(Operation *op) {
  auto from = dyn_cast<LLVM::SincosOp>(op);
  if (!from)
    return false;
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto both = math::SincosOp::create(b, loc, from.getVal());
  both.setFastmath(flagsOf(from.getFastmathFlags()));
  Value result = LLVM::PoisonOp::create(b, loc, from.getType());
  for (auto [i, value] : llvm::enumerate(both.getResults()))
    result = LLVM::InsertValueOp::create(b, loc, result, value, ArrayRef<int64_t>{int64_t(i)});
  op->replaceAllUsesWith(ValueRange(result));
  op->erase();
  return true;
}

/// A rounding and a conversion. What does not fit is undefined in both.
template <typename From, typename Rounding> bool replaceRounding(Operation *op) {
  auto from = dyn_cast<From>(op);
  if (!from)
    return false;
  OpBuilder b(op);
  Value rounded = Rounding::create(b, op->getLoc(), from.getVal());
  op->replaceAllUsesWith(LLVM::FPToSIOp::create(b, op->getLoc(), from.getType(), rounded));
  op->erase();
  return true;
}

/// "llvm.exp.v4f32" by its name: the operation that stands for it. The types in the name are those of the
/// operands and results.
Operation *asOperation(LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
  if (!name.consume_front("llvm.") || call.getNumResults() != 1 || !call.getOpBundleOperands().empty())
    return call;
  name = name.split('.').first;
  constexpr StringRef kNames[] = {
      "acos", "asin", "atan2", "atan",      "copysign", "cos", "cosh",   "exp10",   "exp2",  "exp",
      "fabs", "ceil", "floor", "log10",     "log2",     "log", "llrint", "llround", "lrint", "lround",
      "powi", "pow",  "round", "roundeven", "sincos",   "sin", "sinh",   "sqrt",    "tan",   "tanh"};
  if (!llvm::is_contained(kNames, name))
    return call;
  OpBuilder b(call);
  OperationState state(call.getLoc(), "llvm.intr." + name.str(), call.getArgs(), call->getResultTypes());
  if (call.getFastmathFlags() != LLVM::FastmathFlags::none)
    state.addAttribute("fastmathFlags",
                       LLVM::FastmathFlagsAttr::get(call.getContext(), call.getFastmathFlags()));
  Operation *op = b.create(state);
  call->replaceAllUsesWith(op);
  call.erase();
  return op;
}

template <typename From, typename To> bool replace(Operation *op) {
  auto from = dyn_cast<From>(op);
  if (!from)
    return false;
  OpBuilder b(op);
  auto flags = arith::FastMathFlagsAttr::get(op->getContext(), flagsOf(from.getFastmathFlags()));
  auto to = To::create(b, op->getLoc(), op->getResultTypes(), op->getOperands());
  to.setFastmathAttr(flags);
  op->replaceAllUsesWith(to);
  op->erase();
  return true;
}

} // namespace

void intrinsicsToMath(Operation *root) {
  root->walk([](Operation *op) {
    if (!isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()))
      return;
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      op = asOperation(call);
    (void)(replaceExp10(op) || replaceSinCos(op) || replaceRounding<LLVM::LroundOp, math::RoundOp>(op) ||
           replaceRounding<LLVM::LlroundOp, math::RoundOp>(op) ||
           replaceRounding<LLVM::LrintOp, math::RoundEvenOp>(op) ||
           replaceRounding<LLVM::LlrintOp, math::RoundEvenOp>(op) ||
           replace<LLVM::ACosOp, math::AcosOp>(op) || replace<LLVM::ASinOp, math::AsinOp>(op) ||
           replace<LLVM::ATan2Op, math::Atan2Op>(op) || replace<LLVM::ATanOp, math::AtanOp>(op) ||
           replace<LLVM::CopySignOp, math::CopySignOp>(op) || replace<LLVM::CosOp, math::CosOp>(op) ||
           replace<LLVM::CoshOp, math::CoshOp>(op) || replace<LLVM::Exp2Op, math::Exp2Op>(op) ||
           replace<LLVM::ExpOp, math::ExpOp>(op) || replace<LLVM::FAbsOp, math::AbsFOp>(op) ||
           replace<LLVM::FCeilOp, math::CeilOp>(op) || replace<LLVM::FFloorOp, math::FloorOp>(op) ||
           replace<LLVM::FRemOp, arith::RemFOp>(op) || replace<LLVM::Log10Op, math::Log10Op>(op) ||
           replace<LLVM::Log2Op, math::Log2Op>(op) || replace<LLVM::LogOp, math::LogOp>(op) ||
           replacePower(op) || replace<LLVM::PowOp, math::PowFOp>(op) ||
           replace<LLVM::RoundEvenOp, math::RoundEvenOp>(op) || replace<LLVM::RoundOp, math::RoundOp>(op) ||
           replace<LLVM::SinOp, math::SinOp>(op) || replace<LLVM::SinhOp, math::SinhOp>(op) ||
           replace<LLVM::SqrtOp, math::SqrtOp>(op) || replace<LLVM::TanOp, math::TanOp>(op) ||
           replace<LLVM::TanhOp, math::TanhOp>(op));
  });
}

} // namespace offload
