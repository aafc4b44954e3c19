//===- ascending_loads.cpp - Memory that is read from front to back ---------===//

#include "codegen/cpu/ascending_loads.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace offload {
namespace {

constexpr size_t kFewest = 4; // loads whose order matters

struct Piece {
  LoadInst *load;
  int64_t offset;
};

bool isBefore(const Value *value, const Instruction &place) {
  auto *instruction = dyn_cast<Instruction>(value);
  return !instruction || instruction->getParent() != place.getParent() || isa<PHINode>(instruction) ||
         instruction->comesBefore(&place);
}

/// Whether nothing between the first and the last of these loads writes, and all could stand where the first
/// does.
bool mayMove(ArrayRef<Piece> pieces, const Value *base) {
  const Instruction &first = *pieces.front().load, *last = pieces.back().load;
  if (!isBefore(base, first))
    return false;
  for (const Instruction *each = &first; each != last; each = each->getNextNode())
    if (each->mayWriteToMemory() || !isGuaranteedToTransferExecutionToSuccessor(each))
      return false;
  return true;
}

/// The value's one use, where that can go along with it.
Instruction *companion(LoadInst &load, const Instruction &first) {
  auto *user = load.hasOneUse() ? dyn_cast<Instruction>(load.user_back()) : nullptr;
  if (!user || user->getParent() != load.getParent() || isa<PHINode>(user) || user->isTerminator() ||
      user->mayReadOrWriteMemory() || user->mayHaveSideEffects() ||
      !all_of(user->operands(), [&](Value *operand) { return operand == &load || isBefore(operand, first); }))
    return nullptr;
  return user;
}

void sortLoads(ArrayRef<Piece> pieces, Value *base) {
  Instruction &first = *pieces.front().load;
  SmallVector<std::pair<Piece, Instruction *>> sorted;
  for (const Piece &piece : pieces)
    sorted.push_back({piece, companion(*piece.load, first)});
  stable_sort(sorted, [](auto &a, auto &b) { return a.first.offset < b.first.offset; });
  Instruction *place = first.clone(); // stays where the first one was
  place->insertBefore(first.getIterator());
  IRBuilder<> b(place);
  for (auto &[piece, user] : sorted) {
    Value *address = piece.load->getPointerOperand();
    piece.load->setOperand(0, b.CreatePtrAdd(base, b.getInt64(uint64_t(piece.offset))));
    RecursivelyDeleteTriviallyDeadInstructions(address);
    piece.load->moveBefore(place->getIterator());
    if (user)
      user->moveBefore(place->getIterator());
  }
  place->eraseFromParent();
}

} // namespace

PreservedAnalyses AscendingLoadsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  if (!function.getName().ends_with(".blocks"))
    return PreservedAnalyses::all();
  const auto &loops = analyses.getResult<LoopAnalysis>(function);
  bool changed = false;
  for (BasicBlock &block : function) {
    if (!loops.getLoopFor(&block))
      continue;
    MapVector<Value *, SmallVector<Piece>> arrays;
    for (Instruction &instruction : block)
      if (auto *load = dyn_cast<LoadInst>(&instruction); load && load->isSimple()) {
        int64_t offset = 0;
        Value *base =
            GetPointerBaseWithConstantOffset(load->getPointerOperand(), offset, function.getDataLayout());
        arrays[base].push_back({load, offset});
      }
    for (auto &[base, pieces] : arrays)
      if (pieces.size() >= kFewest &&
          !is_sorted(pieces, [](const Piece &a, const Piece &b) { return a.offset < b.offset; }) &&
          mayMove(pieces, base)) {
        sortLoads(pieces, base);
        changed = true;
      }
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace offload
