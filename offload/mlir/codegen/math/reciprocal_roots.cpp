//===- reciprocal_roots.cpp - 1 / sqrt(x) from an estimate ------------------===//

#include "codegen/math/reciprocal_roots.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {
namespace {

/// The processor's estimate, off by 2^-14 of the value; null for vectors of other sizes than its own.
Value *estimate(IRBuilder<> &b, Value *x) {
  Type *single = b.getFloatTy(), *four = FixedVectorType::get(single, 4);
  if (x->getType() == single) {
    Value *none = Constant::getNullValue(four), *in = b.CreateInsertElement(none, x, uint64_t(0));
    Value *out = b.CreateIntrinsic(Intrinsic::x86_avx512_rsqrt14_ss, {}, {none, in, none, b.getInt8(255)});
    return b.CreateExtractElement(out, uint64_t(0));
  }
  auto *type = dyn_cast<FixedVectorType>(x->getType());
  if (!type || type->getElementType() != single)
    return nullptr;
  auto make = [&](Intrinsic::ID function, Constant *all) {
    return b.CreateIntrinsic(function, {}, {x, Constant::getNullValue(type), all});
  };
  switch (type->getNumElements()) {
  case 4:
    return make(Intrinsic::x86_avx512_rsqrt14_ps_128, b.getInt8(255));
  case 8:
    return make(Intrinsic::x86_avx512_rsqrt14_ps_256, b.getInt8(255));
  case 16:
    return make(Intrinsic::x86_avx512_rsqrt14_ps_512, b.getInt16(65535));
  default:
    return nullptr;
  }
}

/// Null where there is no estimate.
Value *reciprocalRoot(IRBuilder<> &b, Value *x) {
  Value *y = estimate(b, x);
  if (!y)
    return nullptr;
  Type *type = x->getType();
  auto fma = [&](Value *p, Value *q, Value *r) {
    return b.CreateIntrinsic(Intrinsic::fma, {type}, {p, q, r});
  };
  Value *half = ConstantFP::get(type, 0.5), *one = ConstantFP::get(type, 1);
  // Half of the estimate by its exponent: processors have more units for that than for products.
  Type *bits = type->getWithNewType(b.getInt32Ty());
  Value *less = b.CreateSub(b.CreateBitCast(y, bits), ConstantInt::get(bits, 1 << 23));
  Value *error = fma(b.CreateFNeg(b.CreateFMul(x, y)), b.CreateBitCast(less, type), half); // (1 - x y^2) / 2
  // Of 0 and infinity the estimate is right, and 0 times infinity is not a number: then twice the estimate.
  // Otherwise the error is far below one.
  return fma(y, b.CreateSelect(b.CreateFCmpOLT(error, one), error, one), y);
}

} // namespace

PreservedAnalyses ReciprocalRootsPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Instruction &division : make_early_inc_range(instructions(function))) {
    Value *x;
    Instruction *root;
    if (!match(&division, m_FDiv(m_FPOne(), m_Instruction(root))) ||
        !match(root, m_Intrinsic<Intrinsic::sqrt>(m_Value(x))) || !division.hasApproxFunc() ||
        !root->hasApproxFunc())
      continue;
    IRBuilder<> b(&division);
    Value *made = reciprocalRoot(b, x);
    if (!made)
      continue;
    division.replaceAllUsesWith(made);
    division.eraseFromParent(); // the root goes where nothing else uses it
    changed = true;
  }
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

} // namespace offload
