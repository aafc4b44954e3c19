//===- region_values.cpp - What threads keep from region to region ----------===//

#include "cpu/block_lanes.h"
#include "cpu/regions.h"
#include "names.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {
namespace {

constexpr unsigned kCheap = 12; // instructions that are rather computed again than kept

class Keeper {
public:
  Keeper(RegionCode &pieces, UniformFlow &flow, ThreadArrays &made)
      : pieces(pieces), flow(flow), made(made), tree(pieces.code), loops(tree) {
    ReversePostOrderTraversal<Function *> order(&pieces.code);
    isReducible = !containsIrreducibleCFG<BasicBlock *>(order, loops);
  }

  bool keep() {
    if (!placeAllocas())
      return false;
    demotePhis();
    keepValues();
    keepMemory();
    return true;
  }

private:
  /// Allocas to the function's start. False for one whose size is not known.
  bool placeAllocas() {
    Function &code = pieces.code;
    pieces.start = BasicBlock::Create(code.getContext(), "block", &code, &code.getEntryBlock());
    for (Instruction &instruction : make_early_inc_range(instructions(code)))
      if (auto *alloca = dyn_cast<AllocaInst>(&instruction)) {
        if (!isa<ConstantInt>(alloca->getArraySize()))
          return false;
        alloca->moveBefore(*pieces.start, pieces.start->end());
        if (!pieces.shared.contains(alloca))
          memory.push_back(alloca);
      }
    return true;
  }

  /// Where an incoming value may be stored as soon as it is there, rather than at the end of the block it
  /// comes from, which is in a later region and would have to be brought it: nothing uses the old value any
  /// more, and the new one is computed once on the way around. What a loop on the way computes is there
  /// where that loop ends.
  Instruction *earlyPlace(PHINode &phi, unsigned incoming) {
    auto *value = dyn_cast<Instruction>(phi.getIncomingValue(incoming));
    // Where ways join that did not come of a loop, the other way's value may be there as early.
    llvm::Loop *loop = loops.getLoopFor(phi.getParent());
    if (!isReducible || !value || !loop || loop->getHeader() != phi.getParent() ||
        loop->getLoopLatch() != phi.getIncomingBlock(incoming))
      return nullptr;
    BasicBlock *home = behindLoops(value->getParent(), loop);
    if (!home || pieces.numberOf(home) == pieces.numberOf(phi.getIncomingBlock(incoming)) ||
        any_of(phi.uses(), [&](Use &use) { return comesLater(RegionCode::placeOf(use), value, home, phi); }))
      return nullptr;
    return &*(isa<PHINode>(value) || home != value->getParent() ? home->getFirstInsertionPt()
                                                                : std::next(value->getIterator()));
  }

  /// Whether a use of the old value may come after the place of the new one, and before the phi has that.
  bool comesLater(Instruction *use, Instruction *value, BasicBlock *place, PHINode &phi) const {
    if (tree.dominates(use, value))
      return false;
    if (place == phi.getParent()) // the new value is one of the phis beside it
      return true;
    SmallPtrSet<BasicBlock *, 1> stop = {phi.getParent()};
    return isPotentiallyReachable(place, use->getParent(), &stop, &tree, &loops);
  }

  /// Where the loops around a block end that are inside of a loop; null where one of them may be left before
  /// the block, or has several ends, and where the block is not in that loop.
  BasicBlock *behindLoops(BasicBlock *block, llvm::Loop *outer) const {
    llvm::Loop *inner = loops.getLoopFor(block);
    while (inner != outer) {
      BasicBlock *end = inner && outer->contains(inner) ? inner->getUniqueExitBlock() : nullptr;
      if (!end || !tree.dominates(block, end))
        return nullptr;
      block = end;
      inner = loops.getLoopFor(block);
    }
    return block;
  }

  void demotePhis() {
    for (Region &region : pieces.regions) {
      SmallVector<PHINode *> phis;
      for (PHINode &phi : region.entry->phis())
        phis.push_back(&phi);
      unsigned number = pieces.numberOf(region.entry);
      for (PHINode *phi : phis) {
        // A slot for all threads is written by regions that do not read it.
        bool differs = flow.differs(phi) || any_of(phi->blocks(), [&](BasicBlock *before) {
                         return pieces.numberOf(before) == number;
                       });
        AllocaInst *kept = pieces.slot(phi->getType(), "kept");
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
          Instruction *early = differs ? earlyPlace(*phi, i) : nullptr;
          Instruction *place = early ? early : phi->getIncomingBlock(i)->getTerminator();
          auto *store = new StoreInst(phi->getIncomingValue(i), kept, place->getIterator());
          if (!early)
            handedOn.insert(store);
        }
        auto *load = new LoadInst(phi->getType(), kept, "kept", region.entry->getFirstNonPHIIt());
        // Where the loop may be left instead, the old value may still be asked for.
        bool goesOn = all_of(phi->blocks(), [](BasicBlock *before) { return before->getSingleSuccessor(); });
        phi->replaceAllUsesWith(load);
        phi->eraseFromParent();
        if (differs) {
          flow.setDiffers(load);
          memory.push_back(kept);
          if (goesOn)
            slots[load] = kept;
        } else {
          markCommon(load);
        }
      }
    }
  }

  /// Counts the instructions to compute a value again from arguments and ids; more than kCheap where that is
  /// not possible.
  unsigned cost(Value *value) {
    costs.clear(); // the code has changed since the last question
    return costOf(value);
  }

  unsigned costOf(Value *value) {
    if (auto known = costs.find(value); known != costs.end())
      return known->second;
    unsigned found = findCost(value);
    costs[value] = found;
    return found;
  }

  unsigned findCost(Value *value) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction)
      return 0;
    if (isa<AllocaInst>(instruction))
      return 0; // each use of it finds the thread's place
    if (callOf(*instruction, kThreadId))
      return 1;
    if (isa<PHINode, FreezeInst>(instruction) || instruction->isTerminator() ||
        instruction->mayReadOrWriteMemory() || instruction->mayHaveSideEffects())
      return kCheap + 1;
    unsigned sum = 1;
    for (Value *operand : instruction->operands()) {
      unsigned own = costOf(operand);
      bool isKept = own > kCheap && isa<Instruction>(operand) && !flow.differs(operand);
      if ((sum += isKept ? 1 : own) > kCheap)
        break;
    }
    return sum;
  }

  /// Whether a value is the same for all threads and better kept, in one place, than computed again.
  bool isKeptOnce(Value *value) {
    return isa<Instruction>(value) && !flow.differs(value) && cost(value) > kCheap;
  }

  Value *again(Value *value, Instruction *before) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<AllocaInst>(instruction) || isKeptOnce(instruction))
      return value;
    Instruction *copy = instruction->clone();
    for (Use &operand : copy->operands())
      operand.set(again(operand.get(), before));
    copy->insertBefore(before->getIterator());
    return copy;
  }

  /// Whether `again` may compute a value where the program would not have.
  bool mayBeEarly(Value *value) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<AllocaInst>(instruction) || isKeptOnce(instruction) ||
        callOf(*instruction, kThreadId))
      return true;
    return isSafeToSpeculativelyExecute(instruction) &&
           all_of(instruction->operands(), [&](Value *operand) { return mayBeEarly(operand); });
  }

  /// Where to compute or load what is used: in front of the loops of its region, so that a loop's bound is
  /// seen to be the same in each step.
  Instruction *frontOf(Use &use) {
    Instruction *place = RegionCode::placeOf(use);
    unsigned number = pieces.numberOf(place->getParent());
    auto isHere = [&](BasicBlock *block) { return pieces.numberOf(block) == number; };
    for (llvm::Loop *loop = loops.getLoopFor(place->getParent()); loop; loop = loop->getParentLoop()) {
      BasicBlock *front = loop->getLoopPreheader();
      if (!front || !isHere(front) || !all_of(loop->blocks(), isHere))
        break;
      place = front->getTerminator();
    }
    return place;
  }

  /// What differs comes first: it may be computed again from what all threads have in common, which then
  /// crosses too.
  void keepValues() {
    keepValues(/*differing=*/true);
    while (keepValues(/*differing=*/false)) {
    }
  }

  /// Has a phi's value loaded from the phi's own memory, which holds it until the way around ends. There,
  /// where phis hand their values on to each other, what one needs might be overwritten by another.
  bool loadFromSlot(Use &use, Instruction *value) {
    AllocaInst *slot = slots.lookup(value);
    if (!slot || handedOn.contains(use.getUser()))
      return false;
    auto *load = new LoadInst(value->getType(), slot, "kept", frontOf(use)->getIterator());
    flow.setDiffers(load);
    use.set(load);
    return true;
  }

  /// Whether there were any.
  bool keepValues(bool differing) {
    SmallVector<Instruction *> crossing;
    auto isOutside = [&](Use &use, Instruction *value) {
      return pieces.numberOf(RegionCode::placeOf(use)->getParent()) != pieces.numberOf(value->getParent());
    };
    for (Instruction &value : instructions(pieces.code))
      if (value.getParent() != pieces.start && flow.differs(&value) == differing &&
          any_of(value.uses(), [&](Use &use) { return isOutside(use, &value); }))
        crossing.push_back(&value);
    for (Instruction *value : crossing) {
      SmallVector<Use *> uses;
      for (Use &use : make_early_inc_range(value->uses()))
        if (isOutside(use, value) && !loadFromSlot(use, value))
          uses.push_back(&use);
      if (uses.empty())
        continue;
      if (cost(value) <= kCheap) {
        bool early = mayBeEarly(value);
        for (Use *use : uses)
          use->set(again(value, early ? frontOf(*use) : RegionCode::placeOf(*use)));
        continue;
      }
      AllocaInst *kept = pieces.slot(value->getType(), "kept");
      BasicBlock::iterator behind =
          isa<PHINode>(value) ? value->getParent()->getFirstInsertionPt() : std::next(value->getIterator());
      new StoreInst(value, kept, behind);
      for (Use *use : uses) {
        auto *load = new LoadInst(value->getType(), kept, "kept", frontOf(*use)->getIterator());
        if (differing)
          flow.setDiffers(load);
        else
          markCommon(load);
        use->set(load);
      }
      if (differing)
        memory.push_back(kept);
    }
    return !crossing.empty();
  }

  /// Memory of a thread that more than one region uses becomes an array.
  void keepMemory() {
    for (AllocaInst *alloca : memory) {
      std::optional<unsigned> home;
      bool crosses = false;
      for (Use &use : alloca->uses()) {
        unsigned number = pieces.numberOf(RegionCode::placeOf(use)->getParent());
        crosses |= home && *home != number;
        home = number;
      }
      // An address that was kept somewhere may be used anywhere.
      if (!crosses && !mayEscape(alloca)) {
        made.own.push_back(alloca);
        continue;
      }
      Type *one = alloca->getAllocatedType();
      if (alloca->isArrayAllocation())
        one = ArrayType::get(one, cast<ConstantInt>(alloca->getArraySize())->getZExtValue());
      Type *type = ArrayType::get(padded(one, alloca->getAlign()), pieces.most);
      auto *array = new AllocaInst(type, 0, nullptr, std::max(Align(64), alloca->getAlign()),
                                   alloca->getName(), alloca->getIterator());
      made.arrays.insert(array);
      made.bytes += pieces.code.getDataLayout().getTypeAllocSize(type);
      for (Use &use : alloca->uses())
        made.uses.push_back({&use, array, type});
      made.replaced.push_back(alloca);
    }
  }

  /// The type with so much behind it that each in a row of them is aligned.
  Type *padded(Type *type, Align alignment) const {
    const DataLayout &layout = pieces.code.getDataLayout();
    uint64_t size = layout.getTypeAllocSize(type), behind = alignTo(size, alignment) - size;
    if (behind == 0)
      return type;
    LLVMContext &context = type->getContext();
    return StructType::get(context, {type, ArrayType::get(Type::getInt8Ty(context), behind)});
  }

  static void markCommon(LoadInst *load) { load->setMetadata(kCommon, MDNode::get(load->getContext(), {})); }

  static bool mayEscape(Instruction *address) {
    return any_of(address->users(), [&](User *user) {
      if (auto *store = dyn_cast<StoreInst>(user))
        return store->getValueOperand() == address;
      if (auto *element = dyn_cast<GetElementPtrInst>(user))
        return mayEscape(element);
      return !isa<LoadInst>(user);
    });
  }

  RegionCode &pieces;
  UniformFlow &flow;
  ThreadArrays &made;
  DominatorTree tree;
  LoopInfo loops;   // as they are at the start; their blocks stay
  bool isReducible; // whether each way back goes to a loop's header
  DenseMap<Value *, unsigned> costs;
  SmallVector<AllocaInst *> memory;      // of one thread
  DenseMap<Value *, AllocaInst *> slots; // of phis, by what was loaded in their place
  DenseSet<User *> handedOn;             // stores at the ends of the blocks that phis come from
};

} // namespace

bool keepAcrossRegions(RegionCode &pieces, UniformFlow &flow, ThreadArrays &made) {
  return Keeper(pieces, flow, made).keep();
}

} // namespace offload
