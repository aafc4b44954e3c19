//===- narrow_quotients.cpp - Division of integers of few bits on AMD GPUs -===//

#include "codegen/gpu/narrow_quotients.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {

static bool isSigned(const Instruction &division) {
  return division.getOpcode() == Instruction::SDiv || division.getOpcode() == Instruction::SRem;
}

static bool isQuotient(const Instruction &division) {
  return division.getOpcode() == Instruction::UDiv || division.getOpcode() == Instruction::SDiv;
}

/// Whether LLVM multiplies or shifts: by constants, but by few of those for which products would be too wide.
static bool isMultiplied(const Instruction &division, bool optimized) {
  const Value *by = division.getOperand(1);
  return isa<Constant>(by) &&
         (!optimized || by->getType()->getScalarSizeInBits() <= 32 || match(by, m_Power2()));
}

/// One division for each element, as LLVM does it later.
static void splitVectors(Function &function, bool optimized, SmallVectorImpl<BinaryOperator *> &divisions) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    if (!instruction.isIntDivRem() || isMultiplied(instruction, optimized))
      continue;
    auto *whole = cast<BinaryOperator>(&instruction);
    auto *type = dyn_cast<FixedVectorType>(whole->getType());
    if (!type) {
      divisions.push_back(whole);
      continue;
    }
    IRBuilder<> b(whole);
    Value *result = PoisonValue::get(type);
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      Value *left = b.CreateExtractElement(whole->getOperand(0), i);
      Value *right = b.CreateExtractElement(whole->getOperand(1), i);
      Value *part = b.CreateBinOp(whole->getOpcode(), left, right);
      if (auto *division = dyn_cast<BinaryOperator>(part); division && division->isIntDivRem())
        divisions.push_back(division);
      result = b.CreateInsertElement(result, part, i);
    }
    whole->replaceAllUsesWith(result);
    whole->eraseFromParent();
  }
}

/// How many bits both operands need, with the sign if the division has one.
static unsigned bitsOfOperands(const BinaryOperator &division, AssumptionCache &assumed,
                               const DominatorTree &tree) {
  const DataLayout &layout = division.getDataLayout();
  unsigned most = 0, width = division.getType()->getIntegerBitWidth();
  for (const Value *operand : division.operands()) {
    // LLVM freezes what it divides once for a quotient and a remainder, and its code generator takes that
    // off.
    if (auto *frozen = dyn_cast<FreezeInst>(operand))
      operand = frozen->getOperand(0);
    unsigned needed =
        isSigned(division)
            ? width - ComputeNumSignBits(operand, layout, &assumed, &division, &tree) + 1
            : computeKnownBits(operand, layout, &assumed, &division, &tree).countMaxActiveBits();
    most = std::max(most, needed);
  }
  return most;
}

static Value *highProduct(IRBuilder<> &b, Value *left, Value *right) {
  Value *product = b.CreateMul(b.CreateZExt(left, b.getInt64Ty()), b.CreateZExt(right, b.getInt64Ty()));
  return b.CreateTrunc(b.CreateLShr(product, 32), b.getInt32Ty());
}

/// The quotient and the remainder of unsigned numbers of 32 bits: 2^32 / right from below by the reciprocal
/// and one step of Newton's, which leaves a quotient that is at most two too small.
static std::pair<Value *, Value *> divided(IRBuilder<> &b, Value *left, Value *right) {
  Value *reciprocal =
      b.CreateIntrinsic(Intrinsic::amdgcn_rcp, {b.getFloatTy()}, {b.CreateUIToFP(right, b.getFloatTy())});
  Value *below = ConstantFP::get(b.getFloatTy(), 4294966784.0); // 2^32 less two units of the last place
  Value *scale = b.CreateFPToUI(b.CreateFMul(reciprocal, below), b.getInt32Ty());
  scale = b.CreateAdd(scale, highProduct(b, scale, b.CreateMul(b.CreateNeg(right), scale)));
  Value *quotient = highProduct(b, left, scale);
  Value *remainder = b.CreateSub(left, b.CreateMul(quotient, right));
  for (int i = 0; i < 2; ++i) {
    Value *more = b.CreateICmpUGE(remainder, right);
    quotient = b.CreateSelect(more, b.CreateAdd(quotient, b.getInt32(1)), quotient);
    remainder = b.CreateSelect(more, b.CreateSub(remainder, right), remainder);
  }
  return {quotient, remainder};
}

static Value *written(IRBuilder<> &b, const BinaryOperator &division) {
  Type *type = b.getInt32Ty();
  Value *left = b.CreateIntCast(division.getOperand(0), type, isSigned(division));
  Value *right = b.CreateIntCast(division.getOperand(1), type, isSigned(division));
  // All ones for a negative number, whose size is then what is left after both of these.
  Value *sign = b.getInt32(0);
  auto withSign = [&](Value *value, Value *ones) { return b.CreateSub(b.CreateXor(value, ones), ones); };
  if (isSigned(division)) {
    sign = b.CreateAShr(left, 31);
    Value *other = b.CreateAShr(right, 31);
    left = withSign(left, sign);
    right = withSign(right, other);
    if (isQuotient(division)) // a remainder has the sign of what is divided
      sign = b.CreateXor(sign, other);
  }
  auto [quotient, remainder] = divided(b, left, right);
  // -2^31 / -1 fits a wider type alone.
  Value *size = b.CreateZExtOrTrunc(isQuotient(division) ? quotient : remainder, division.getType());
  return withSign(size, b.CreateSExtOrTrunc(sign, division.getType()));
}

/// A number divided by -1 is its negative, also the least, whose quotient LLVM would make the least again.
static void negateByOnes(BinaryOperator &division) {
  IRBuilder<> b(division.getNextNode());
  Value *left = division.getOperand(0), *right = division.getOperand(1);
  Value *isOnes = b.CreateICmpEQ(right, Constant::getAllOnesValue(right->getType()));
  Value *chosen = b.CreateSelect(isOnes, b.CreateNeg(left), &division);
  division.replaceUsesWithIf(chosen, [&](Use &use) { return use.getUser() != chosen; });
}

void writeNarrowQuotients(Module &module, bool optimized) {
  for (Function &function : module) {
    SmallVector<BinaryOperator *> divisions;
    splitVectors(function, optimized, divisions);
    if (divisions.empty())
      continue;
    AssumptionCache assumed(function);
    DominatorTree tree(function);
    for (BinaryOperator *division : divisions) {
      if (division->getType()->getIntegerBitWidth() > 64)
        continue;
      unsigned bits = bitsOfOperands(*division, assumed, tree);
      unsigned exact = isSigned(*division) ? 23 : 22;
      if (optimized && (bits <= exact || bits > 24)) {
        if (isSigned(*division) && isQuotient(*division) && (bits <= exact || bits == 32) &&
            bits < division->getType()->getIntegerBitWidth())
          negateByOnes(*division);
        continue;
      }
      if (bits > 32)
        continue;
      IRBuilder<> b(division);
      division->replaceAllUsesWith(written(b, *division));
      division->eraseFromParent();
    }
  }
}

} // namespace offload
