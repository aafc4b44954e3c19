//===- seldom_arrays.cpp - Arrays that are needed seldom --------------------===//
//
// What threads keep from region to region is in arrays with a place for each (cpu/region_values.cpp). The
// steps that all threads take together use them at constant places, once unrolled, and LLVM could make them
// registers, but for what comes behind: the last steps of a loop, which only some threads take, and which go
// from place to place. They do not come at all where the data's size suits.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/seldom_arrays.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace offload {
namespace {

constexpr uint64_t kMostBytes = 4 << 10;   // more would not become registers
constexpr uint64_t kMostCopied = 16 << 10; // of a function's arrays

/// The loads, stores and memsets of an array: at constant places, and the others.
struct Accesses {
  SmallVector<Instruction *> fixed, moving;
};

/// The operand that is the address of an access; none for anything else.
std::optional<unsigned> addressOperand(const Instruction &access) {
  if (isa<LoadInst, MemSetInst>(access))
    return 0;
  return isa<StoreInst>(access) ? std::optional(StoreInst::getPointerOperandIndex()) : std::nullopt;
}

/// False where there are other uses.
bool collect(Instruction &address, bool isFixed, Accesses &found) {
  for (Use &use : address.uses()) {
    auto *instruction = cast<Instruction>(use.getUser());
    if (auto *element = dyn_cast<GetElementPtrInst>(instruction)) {
      if (!collect(*element, isFixed && element->hasAllConstantIndices(), found))
        return false;
      continue;
    }
    if (instruction->isLifetimeStartOrEnd())
      continue;
    if (instruction->isVolatile() || instruction->isAtomic() ||
        addressOperand(*instruction) != use.getOperandNo())
      return false;
    (isFixed ? found.fixed : found.moving).push_back(instruction);
  }
  return true;
}

/// The address of an access, with another array in the place of this one.
Value *inCopy(Value *address, AllocaInst &array, AllocaInst &copy, Instruction *access) {
  if (address == &array)
    return &copy;
  Instruction *own = cast<GetElementPtrInst>(address)->clone();
  own->setOperand(0, inCopy(own->getOperand(0), array, copy, access));
  own->insertBefore(access->getIterator());
  return own;
}

class Separator {
public:
  Separator(Function &function, DominatorTree &tree, LoopInfo &loops)
      : layout(function.getDataLayout()), tree(tree), loops(loops) {}

  bool separate(AllocaInst &array) {
    std::optional<TypeSize> size = array.getAllocationSize(layout);
    Accesses found;
    if (!size || size->isScalable() || size->getFixedValue() > kMostBytes ||
        copied + size->getFixedValue() > kMostCopied || !collect(array, true, found) || found.fixed.empty() ||
        found.moving.empty())
      return false;
    BasicBlock *entry = entryOf(found), *before = onlyWayTo(entry);
    if (!before || !hasWayAround(before))
      return false;
    Blocks seldom = blocksAround(found.moving, entry);
    // What nobody else reads gains nothing.
    if (none_of(found.fixed, [&](Instruction *access) {
          return isa<LoadInst>(access) && !seldom.contains(access->getParent());
        }))
      return false;
    SmallVector<std::pair<BasicBlock *, BasicBlock *>> exits;
    for (BasicBlock *block : seldom)
      for (BasicBlock *next : successors(block))
        if (!seldom.contains(next)) {
          if (is_contained(exits, std::pair(block, next)))
            return false; // two edges of a switch, say: one of them would be split
          exits.push_back({block, next});
        }
    if (llvm::count(successors(before), entry) != 1)
      return false;
    copied += size->getFixedValue();
    auto *copy = cast<AllocaInst>(array.clone());
    copy->insertAfter(array.getIterator());
    for (auto *accesses : {&found.fixed, &found.moving})
      for (Instruction *access : *accesses)
        if (seldom.contains(access->getParent())) {
          unsigned operand = *addressOperand(*access);
          access->setOperand(operand, inCopy(access->getOperand(operand), array, *copy, access));
        }
    copyOn(before, entry, *copy, array, size->getFixedValue());
    for (auto [block, next] : exits)
      copyOn(block, next, array, *copy, size->getFixedValue());
    return true;
  }

private:
  using Blocks = SmallSetVector<BasicBlock *, 16>;

  /// Where the code with the moving accesses begins: in front of those loops around them that have no others.
  BasicBlock *entryOf(const Accesses &found) const {
    BasicBlock *entry = found.moving.front()->getParent();
    for (Instruction *access : found.moving)
      entry = tree.findNearestCommonDominator(entry, access->getParent());
    for (llvm::Loop *loop = loops.getLoopFor(entry); loop; loop = loop->getParentLoop()) {
      if (any_of(found.fixed, [&](Instruction *access) { return loop->contains(access); }))
        break;
      entry = loop->getHeader();
    }
    return entry;
  }

  /// The block that leads to the entry from outside; null where there are several.
  BasicBlock *onlyWayTo(BasicBlock *entry) const {
    BasicBlock *only = nullptr;
    for (BasicBlock *before : predecessors(entry))
      if (!tree.dominates(entry, before)) {
        if (only && only != before)
          return nullptr;
        only = before;
      }
    return only;
  }

  /// Whether it was a choice to come to this block, or is one to go on from here.
  static bool hasWayAround(BasicBlock *block) {
    while (block && block->getSingleSuccessor())
      block = block->getSinglePredecessor();
    return block != nullptr;
  }

  /// The blocks that come behind the entry alone, and from which there is a way to the accesses.
  Blocks blocksAround(ArrayRef<Instruction *> accesses, BasicBlock *entry) const {
    Blocks found;
    SmallVector<BasicBlock *> open;
    for (Instruction *access : accesses)
      open.push_back(access->getParent());
    while (!open.empty()) {
      BasicBlock *block = open.pop_back_val();
      if (tree.dominates(entry, block) && found.insert(block))
        append_range(open, predecessors(block));
    }
    return found;
  }

  void copyOn(BasicBlock *from, BasicBlock *to, AllocaInst &target, AllocaInst &source, uint64_t bytes) {
    IRBuilder<> b(SplitEdge(from, to, &tree, &loops)->getTerminator());
    b.CreateMemCpy(&target, target.getAlign(), &source, source.getAlign(), bytes);
  }

  const DataLayout &layout;
  DominatorTree &tree;
  LoopInfo &loops;
  uint64_t copied = 0; // bytes
};

} // namespace

PreservedAnalyses SeldomArraysPass::run(Function &function, FunctionAnalysisManager &analyses) {
  SmallVector<AllocaInst *> arrays;
  for (Instruction &instruction : instructions(function))
    if (auto *array = dyn_cast<AllocaInst>(&instruction); array && array->isStaticAlloca())
      arrays.push_back(array);
  if (arrays.empty())
    return PreservedAnalyses::all();
  Separator separator(function, analyses.getResult<DominatorTreeAnalysis>(function),
                      analyses.getResult<LoopAnalysis>(function));
  bool changed = false;
  for (AllocaInst *array : arrays)
    changed |= separator.separate(*array);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace offload
