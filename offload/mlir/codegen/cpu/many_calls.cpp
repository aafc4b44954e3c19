//===- many_calls.cpp - Host functions of many calls ------------------------===//

#include "codegen/cpu/many_calls.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {
namespace {

/// So many take LLVM milliseconds; code of fewer stays what it is.
constexpr size_t kMostPieces = 64;

bool isCall(const Instruction &instruction) {
  return isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction);
}

/// Addresses in the function's frame are made where they are needed anyway.
bool isOfFrame(const Value *value) {
  while (auto *address = dyn_cast<GetElementPtrInst>(value)) {
    if (!address->hasAllConstantIndices())
      return false;
    value = address->getPointerOperand();
  }
  auto *memory = dyn_cast<AllocaInst>(value);
  return memory && memory->isStaticAlloca();
}

bool canBeStored(const Value *value) {
  Type *type = value->getType();
  // What marks the lifetime of memory takes the alloca itself.
  return (isa<Argument>(value) || isa<Instruction>(value)) && type->isSingleValueType() &&
         !isa<ScalableVectorType>(type) && !type->isX86_AMXTy() && !value->isSwiftError() &&
         !isOfFrame(value) && !isa<AllocaInst, InvokeInst, CallBrInst>(value);
}

/// The uses of a value that lie between the same two calls of a block.
using Piece = SmallVector<Use *, 2>;

void keepInMemory(Function &function) {
  // Blocks without calls are left alone: registers serve them, and they may be loops.
  MapVector<Value *, std::vector<Piece>> pieces;
  DenseMap<Value *, size_t> last; // the piece before which a value was seen
  size_t number = 0;
  for (BasicBlock &block : function) {
    if (none_of(block, isCall))
      continue;
    ++number;
    for (Instruction &instruction : block) {
      if (isa<PHINode>(instruction))
        continue;
      for (Use &use : instruction.operands()) {
        if (!canBeStored(use))
          continue;
        std::vector<Piece> &uses = pieces[use];
        if (size_t &seen = last[use]; seen != number) {
          seen = number;
          uses.emplace_back();
        }
        uses.back().push_back(&use);
      }
      number += isCall(instruction);
    }
  }
  for (auto &[value, uses] : pieces) {
    if (uses.size() <= kMostPieces)
      continue;
    IRBuilder<> b(&function.getEntryBlock(), function.getEntryBlock().begin());
    Value *memory = b.CreateAlloca(value->getType());
    auto *result = dyn_cast<Instruction>(value);
    if (result)
      b.SetInsertPoint(*result->getInsertionPointAfterDef());
    else
      b.SetInsertPointPastAllocas(&function);
    b.CreateStore(value, memory);
    for (Piece &piece : uses) {
      auto *first = cast<Instruction>(piece.front()->getUser());
      b.SetInsertPoint(first);
      Value *loaded = b.CreateLoad(value->getType(), memory);
      for (Use *use : piece)
        use->set(loaded);
    }
  }
}

} // namespace

void keepInMemoryAcrossCalls(llvm::Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration() && count_if(instructions(function), isCall) > ptrdiff_t(kMostPieces))
      keepInMemory(function);
}

} // namespace offload
