//===- long_chains.cpp - Long code in which each number is made of the last -===//

#include "codegen/cpu/long_chains.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace offload {
namespace {

/// So many take LLVM milliseconds; code of fewer stays what it is.
constexpr unsigned kLongest = 512;

/// Which registers a number is in, or a vector of numbers that fills one; nothing where that depends on the
/// processor.
StringRef registersOf(const Type *type) {
  const Type *number = type->getScalarType();
  bool isInteger = number->isIntegerTy(32) || number->isIntegerTy(64);
  if (!isInteger && !number->isFloatTy() && !number->isDoubleTy())
    return "";
  if (isa<FixedVectorType>(type))
    return type->getPrimitiveSizeInBits() == 128 ? "=x,0,x" : "";
  if (type->isVectorTy())
    return "";
  return isInteger ? "=r,0,r" : "=x,0,x";
}

bool canEnd(const Instruction &instruction) {
  // A product and the sum that it goes into may be one instruction.
  return isa<BinaryOperator, SelectInst, CastInst>(instruction) &&
         instruction.getOpcode() != Instruction::FMul && !registersOf(instruction.getType()).empty();
}

void divide(BasicBlock &block) {
  DenseMap<const Value *, unsigned> lengths; // of the chains that end with numbers that are used once
  for (Instruction &instruction : make_early_inc_range(block)) {
    unsigned length = 0;
    for (const Value *operand : instruction.operands())
      length = std::max(length, lengths.lookup(operand));
    if (isa<PHINode>(instruction) || !instruction.hasOneUse())
      continue;
    ++length;
    if (length >= kLongest && canEnd(instruction)) {
      Type *type = instruction.getType();
      // Empty: what comes out is what went in, in its register. What has two uses is not followed.
      auto *taken = FunctionType::get(type, {type, type}, /*isVarArg=*/false);
      InlineAsm *border = InlineAsm::get(taken, "", registersOf(type), /*hasSideEffects=*/false);
      Use &use = *instruction.use_begin();
      IRBuilder<> b(instruction.getNextNode());
      CallInst *same = b.CreateCall(border, {&instruction, &instruction});
      same->setDoesNotAccessMemory();
      same->setDoesNotThrow();
      use.set(same);
      length = 0;
    }
    lengths[&instruction] = length;
  }
}

} // namespace

void divideLongChains(Module &module) {
  for (Function &function : module)
    for (BasicBlock &block : function)
      if (block.size() > kLongest)
        divide(block);
}

} // namespace offload
