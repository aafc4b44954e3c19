//===- streaming_stores.cpp - Stores that go around the caches ------------===//

#include "codegen/streaming_stores.h"
#include "codegen/large_arrays.h"

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

class StreamingStores {
public:
  StreamingStores(Function &function, LoopInfo &loops, ScalarEvolution &evolution, DominatorTree &dominators)
      : function(function), loops(loops), evolution(evolution),
        updater(dominators, DomTreeUpdater::UpdateStrategy::Eager), layout(function.getDataLayout()) {}

  bool run() {
    SmallVector<StoreInst *> stores;
    for (Instruction &instruction : instructions(function)) {
      if (instruction.isAtomic())
        return false;
      if (auto *store = dyn_cast<StoreInst>(&instruction); store && isCandidate(*store))
        stores.push_back(store);
    }
    for (StoreInst *store : stores)
      stream(*store);
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

  /// What the kernel reads anywhere should stay in the caches: a row that is written, and read again to be
  /// scaled.
  bool isRead(const Value *object) const {
    return any_of(instructions(function), [&](Instruction &instruction) {
      const auto *load = dyn_cast<LoadInst>(&instruction);
      return load && getUnderlyingObject(load->getPointerOperand(), 0) == object;
    });
  }

  void stream(StoreInst &store) {
    Loop *loop = loops.getLoopFor(store.getParent());
    if (!loop || !loop->isInnermost() || !loop->getLoopPreheader() || isRead(arrayOf(store)))
      return;
    const auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()));
    if (!address || address->getLoop() != loop || !address->isAffine())
      return;
    const auto *step = dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution));
    Instruction *before = loop->getLoopPreheader()->getTerminator();
    SCEVExpander expander(evolution, "stream");
    uint64_t size = layout.getTypeStoreSize(store.getValueOperand()->getType());
    Align alignment(std::min(size, kLine));
    // Parts of lines that lie apart would be completed at another time, which costs more than it saves.
    bool touches = step && step->getAPInt() == size;
    if (!step || step->getAPInt().urem(alignment.value()) != 0 || (!touches && size < kLine) ||
        !expander.isSafeToExpandAt(address->getStart(), before))
      return;
    IRBuilder<> b(before);
    Value *&large = arrays[arrayOf(store)];
    if (!large)
      large = isLarge(function, *arrayOf(store),
                      layout.getTypeStoreSize(store.getValueOperand()->getType()->getScalarType()));
    Value *condition = known(*loop, store, address->getStart());
    if (!condition) {
      Value *start = b.CreatePtrToInt(
          expander.expandCodeFor(address->getStart(), address->getStart()->getType(), before),
          b.getInt64Ty());
      Value *beginsLine = b.CreateIsNull(b.CreateAnd(start, kLine - 1));
      // Frozen, it can leave the loop.
      condition = b.CreateFreeze(b.CreateAnd(large, beginsLine), "streams");
      conditions.push_back({loop, arrayOf(store), address->getStart(), condition});
    }
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(condition, store.getIterator(), &then, &otherwise, nullptr, &updater,
                                  &loops);
    auto *streaming = cast<StoreInst>(store.clone());
    streaming->insertBefore(then->getIterator());
    streaming->setAlignment(alignment);
    MDNode *one = MDNode::get(b.getContext(), ConstantAsMetadata::get(b.getInt32(1)));
    streaming->setMetadata(LLVMContext::MD_nontemporal, one);
    store.moveBefore(otherwise->getIterator());
    evolution.forgetLoop(loop);
  }

  /// The condition of another store in the loop, whole lines away in the same array: one test then decides
  /// for all of them, and the loop can be had in two.
  Value *known(const Loop &loop, const StoreInst &store, const SCEV *start) {
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
    const SCEV *start;
    Value *value;
  };
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
