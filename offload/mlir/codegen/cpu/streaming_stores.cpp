//===- streaming_stores.cpp - Stores that go around the caches ------------===//

#include "codegen/cpu/streaming_stores.h"
#include "codegen/cpu/large_arrays.h"

#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LCSSA.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace offload {
namespace {

/// The least that processors have stores around the caches for.
constexpr uint64_t kLeast = 16;

/// Stores of a step, each of which has a branch until the loop is there twice: a long one is not worth it.
constexpr uint64_t kMostParts = 16;

/// Stores of parts of lines in a loop's step, which are compared with each other. Of lines under way at a
/// time, processors have a dozen: more of these would not complete them.
constexpr size_t kMostStores = 64;

class StreamingStores {
public:
  StreamingStores(Function &function, LoopInfo &loops, ScalarEvolution &evolution, DominatorTree &dominators)
      : function(function), loops(loops), evolution(evolution),
        updater(dominators, DomTreeUpdater::UpdateStrategy::Eager), layout(function.getDataLayout()) {}

  bool run() {
    MapVector<Loop *, SmallVector<Place>> ofLoops;
    for (Instruction &instruction : instructions(function)) {
      if (instruction.isAtomic())
        return false;
      if (auto *load = dyn_cast<LoadInst>(&instruction))
        read.insert(getUnderlyingObject(load->getPointerOperand(), 0));
      if (auto *store = dyn_cast<StoreInst>(&instruction); store && isCandidate(*store))
        if (std::optional<Place> place = placeOf(*store))
          ofLoops[place->loop].push_back(*place);
    }
    for (auto &[loop, places] : ofLoops) {
      auto isPart = [](const Place &place) { return place.size < kLine; };
      if (static_cast<size_t>(count_if(places, isPart)) > kMostStores)
        erase_if(places, isPart);
      findRows(places);
      for (const Place &place : places)
        decide(place);
    }
    // Once everything is decided: what is known of a loop would have to be found again after each of these.
    for (auto [store, condition] : streams)
      stream(*store, condition);
    if (!arrays.empty())
      addFences();
    return !arrays.empty();
  }

private:
  bool isCandidate(const StoreInst &store) const {
    auto *type = dyn_cast<FixedVectorType>(store.getValueOperand()->getType());
    return type && !type->getElementType()->isPointerTy() && store.isSimple() &&
           layout.getTypeStoreSize(type) >= kLeast && isPowerOf2_64(layout.getTypeStoreSize(type)) &&
           layout.getTypeStoreSizeInBits(type) == layout.getTypeAllocSizeInBits(type) && arrayOf(store);
  }

  /// The address of a store of an innermost loop, which a step moves by so many bytes.
  struct Place {
    StoreInst *store;
    Loop *loop;
    const SCEVAddRecExpr *address;
    uint64_t step, size;
  };

  std::optional<Place> placeOf(StoreInst &store) {
    Loop *loop = loops.getLoopFor(store.getParent());
    if (!loop || !loop->isInnermost() || !loop->getLoopPreheader())
      return std::nullopt;
    const auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()));
    if (!address || address->getLoop() != loop || !address->isAffine())
      return std::nullopt;
    const auto *step = dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution));
    if (!step || step->getAPInt().isNegative())
      return std::nullopt;
    return Place{&store, loop, address, step->getAPInt().getZExtValue(),
                 layout.getTypeStoreSize(store.getValueOperand()->getType())};
  }

  /// Finds the stores that write side by side all that a step goes on by, as those of a loop do that the
  /// vectorizer has interleaved.
  void findRows(ArrayRef<Place> places) {
    for (const Place &at : places) {
      StoreInst *first = at.store;
      if (at.size >= kLine || at.step % kLine != 0 || at.step > kMostParts * at.size)
        continue;
      SmallVector<StoreInst *> row;
      for (const Place &place : places) {
        StoreInst *each = place.store;
        if (place.step != at.step || place.size != at.size || each->getParent() != first->getParent() ||
            arrayOf(*each) != arrayOf(*first))
          continue;
        const auto *apart = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(place.address, at.address));
        if (apart && apart->getAPInt() == row.size() * at.size)
          row.push_back(each);
      }
      if (row.size() * at.size == at.step)
        for (StoreInst *each : row)
          firsts[each] = first;
    }
  }

  void decide(const Place &place) {
    const auto [written, loop, address, step, size] = place;
    StoreInst &store = *written;
    // What the kernel reads anywhere should stay in the caches: a row that is written, and read again to be
    // scaled.
    if (read.contains(arrayOf(store)))
      return;
    Instruction *before = loop->getLoopPreheader()->getTerminator();
    SCEVExpander expander(evolution, "stream");
    Align alignment = alignmentOf(store);
    StoreInst *first = firsts.lookup(&store);
    // Parts of lines that lie apart would be completed at another time, which costs more than it saves.
    if (step % alignment.value() != 0 || (step != size && size < kLine && !first) ||
        !expander.isSafeToExpandAt(address->getStart(), before))
      return;
    // So would the last line, where steps of less than a line may end within it.
    bool mayEndInside = step < kLine;
    const SCEV *end = mayEndInside ? endOf(*loop, *address) : nullptr;
    if (mayEndInside && (!end || !expander.isSafeToExpandAt(end, before)))
      return;
    IRBuilder<> b(before);
    Value *&large = arrays[arrayOf(store)];
    if (!large)
      large = isLarge(function, *arrayOf(store),
                      layout.getTypeStoreSize(store.getValueOperand()->getType()->getScalarType()));
    Value *condition = known(*loop, store, first, address->getStart());
    if (!condition && first && first != &store)
      return;
    if (!condition) {
      Value *places = b.CreatePtrToInt(
          expander.expandCodeFor(address->getStart(), address->getStart()->getType(), before),
          b.getInt64Ty());
      if (end)
        places = b.CreateOr(
            places, b.CreatePtrToInt(expander.expandCodeFor(end, end->getType(), before), b.getInt64Ty()));
      Value *wholeLines = b.CreateIsNull(b.CreateAnd(places, kLine - 1));
      // Frozen, it can leave the loop.
      condition = b.CreateFreeze(b.CreateAnd(large, wholeLines), "streams");
      conditions.push_back({loop, arrayOf(store), first, address->getStart(), condition});
    }
    streams.push_back({&store, condition});
  }

  void stream(StoreInst &store, Value *condition) {
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(condition, store.getIterator(), &then, &otherwise, nullptr, &updater,
                                  &loops);
    auto *streaming = cast<StoreInst>(store.clone());
    streaming->insertBefore(then->getIterator());
    streaming->setAlignment(alignmentOf(store));
    LLVMContext &context = function.getContext();
    MDNode *one =
        MDNode::get(context, ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), 1)));
    streaming->setMetadata(LLVMContext::MD_nontemporal, one);
    store.moveBefore(otherwise->getIterator());
  }

  Align alignmentOf(const StoreInst &store) const {
    return Align(
        std::min(layout.getTypeStoreSize(store.getValueOperand()->getType()).getFixedValue(), kLine));
  }

  /// Where the address is after the loop's last step; null where nobody knows.
  const SCEV *endOf(Loop &loop, const SCEVAddRecExpr &address) {
    const SCEV *last = evolution.getBackedgeTakenCount(&loop);
    if (isa<SCEVCouldNotCompute>(last))
      return nullptr;
    const SCEV *count = evolution.getTripCountFromExitCount(last);
    return isa<SCEVCouldNotCompute>(count) ? nullptr : address.evaluateAtIteration(count, evolution);
  }

  /// The condition of another store in the loop, of the same row or whole lines away in the same array: one
  /// test then decides for all of them, and the loop can be had in two.
  Value *known(const Loop &loop, const StoreInst &store, const StoreInst *first, const SCEV *start) {
    for (const Condition &each : conditions)
      if (first && each.first == first)
        return each.value;
    for (const Condition &each : conditions)
      if (each.loop == &loop && each.array == arrayOf(store))
        if (const auto *apart = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(start, each.start));
            apart && apart->getAPInt().countr_zero() >= Log2_64(kLine))
          return each.value;
    return nullptr;
  }

  /// Before others are told that the blocks are done, what they wrote has to be seen.
  void addFences() {
    for (BasicBlock &block : function)
      if (isa<ReturnInst>(block.getTerminator())) {
        IRBuilder<> b(block.getTerminator());
        b.CreateIntrinsic(b.getVoidTy(), Intrinsic::x86_sse_sfence, {});
      }
  }

  Function &function;
  LoopInfo &loops;
  ScalarEvolution &evolution;
  DomTreeUpdater updater;
  const DataLayout &layout;
  struct Condition {
    const Loop *loop;
    const Instruction *array;
    const StoreInst *first; // of a row; null where a store stands alone
    const SCEV *start;
    Value *value;
  };
  SmallPtrSet<const Value *, 8> read;
  DenseMap<const StoreInst *, StoreInst *> firsts;
  SmallVector<std::pair<StoreInst *, Value *>> streams; // and on what condition
  SmallVector<Condition> conditions;
  DenseMap<const Instruction *, Value *> arrays; // whose stores stream, and whether they are large
};

struct StreamingStoresPass : PassInfoMixin<StreamingStoresPass> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (!function.getName().ends_with(".blocks"))
      return PreservedAnalyses::all();
    bool changed = StreamingStores(function, analyses.getResult<LoopAnalysis>(function),
                                   analyses.getResult<ScalarEvolutionAnalysis>(function),
                                   analyses.getResult<DominatorTreeAnalysis>(function))
                       .run();
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

} // namespace

void addStreamingStores(FunctionPassManager &passes) {
  passes.addPass(LoopSimplifyPass());
  passes.addPass(LCSSAPass());
  passes.addPass(StreamingStoresPass());
  passes.addPass(
      createFunctionToLoopPassAdaptor(SimpleLoopUnswitchPass(/*NonTrivial=*/true), /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
}

} // namespace offload
