//===- region_values.cpp - What threads keep from region to region ----------===//

#include "cpu/block_lanes.h"
#include "cpu/regions.h"
#include "names.h"

#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {
namespace {

constexpr unsigned kCheap = 12; // instructions that are rather computed again than kept

class Keeper {
public:
  Keeper(RegionCode &pieces, UniformFlow &flow, ThreadArrays &made)
      : pieces(pieces), flow(flow), made(made) {}

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
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
          new StoreInst(phi->getIncomingValue(i), kept,
                        phi->getIncomingBlock(i)->getTerminator()->getIterator());
        auto *load = new LoadInst(phi->getType(), kept, "kept", region.entry->getFirstNonPHIIt());
        phi->replaceAllUsesWith(load);
        phi->eraseFromParent();
        if (differs) {
          flow.setDiffers(load);
          memory.push_back(kept);
        } else {
          markCommon(load);
        }
      }
    }
  }

  /// Counts the instructions to compute a value again from arguments and ids; more than kCheap where that is
  /// not possible.
  unsigned cost(Value *value, unsigned depth = 0) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction)
      return 0;
    if (isa<AllocaInst>(instruction))
      return 0; // each use of it finds the thread's place
    if (callOf(*instruction, kThreadId))
      return 1;
    if (depth > kCheap || isa<PHINode, FreezeInst>(instruction) || instruction->isTerminator() ||
        instruction->mayReadOrWriteMemory() || instruction->mayHaveSideEffects())
      return kCheap + 1;
    unsigned sum = 1;
    for (Value *operand : instruction->operands())
      if ((sum += isKeptOnce(operand) ? 1 : cost(operand, depth + 1)) > kCheap)
        break;
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

  /// What differs comes first: it may be computed again from what all threads have in common, which then
  /// crosses too.
  void keepValues() {
    keepValues(/*differing=*/true);
    while (keepValues(/*differing=*/false)) {
    }
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
      for (Use &use : value->uses())
        if (isOutside(use, value))
          uses.push_back(&use);
      if (cost(value) <= kCheap) {
        for (Use *use : uses)
          use->set(again(value, RegionCode::placeOf(*use)));
        continue;
      }
      AllocaInst *kept = pieces.slot(value->getType(), "kept");
      BasicBlock::iterator behind =
          isa<PHINode>(value) ? value->getParent()->getFirstInsertionPt() : std::next(value->getIterator());
      new StoreInst(value, kept, behind);
      for (Use *use : uses) {
        auto *load = new LoadInst(value->getType(), kept, "kept", RegionCode::placeOf(*use)->getIterator());
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
      Type *type = ArrayType::get(one, pieces.most);
      auto *array = new AllocaInst(type, 0, nullptr, Align(64), alloca->getName(), alloca->getIterator());
      made.arrays.insert(array);
      made.bytes += pieces.code.getDataLayout().getTypeAllocSize(type);
      for (Use &use : alloca->uses())
        made.uses.push_back({&use, array, type});
      made.replaced.push_back(alloca);
    }
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
  SmallVector<AllocaInst *> memory; // of one thread
};

} // namespace

bool keepAcrossRegions(RegionCode &pieces, UniformFlow &flow, ThreadArrays &made) {
  return Keeper(pieces, flow, made).keep();
}

} // namespace offload
