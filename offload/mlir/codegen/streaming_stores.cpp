//===- streaming_stores.cpp - Stores that go around the caches ------------===//

#include "codegen/streaming_stores.h"
#include "cpu/spmd_abi.h"
#include "names.h"

#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
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

/// What processors have stores around the caches for, and what they write to memory at once.
constexpr uint64_t kPart = 16, kLine = 64;
/// Where the ends of a run of stores share their lines with others, that is paid for by this many bytes.
constexpr uint64_t kLongRun = 512;
/// Iterations of a loop whose count is not known, for the estimate.
constexpr uint64_t kIterations = 8;

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
    bool changed = false;
    for (StoreInst *store : stores)
      changed |= stream(*store);
    if (changed)
      addFences();
    return changed;
  }

private:
  bool isCandidate(const StoreInst &store) const {
    auto *type = dyn_cast<FixedVectorType>(store.getValueOperand()->getType());
    return type && !type->getElementType()->isPointerTy() && store.isSimple() &&
           layout.getTypeStoreSize(type) % kPart == 0 &&
           layout.getTypeStoreSizeInBits(type) == layout.getTypeAllocSizeInBits(type) &&
           isa<LoadInst>(getUnderlyingObject(store.getPointerOperand())); // a pointer among the parameters
  }

  /// Memory that the loop reads is in the caches already.
  static bool isRead(const Loop &loop, const Value *object) {
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block)
        if (const auto *load = dyn_cast<LoadInst>(&instruction);
            load && getUnderlyingObject(load->getPointerOperand()) == object)
          return true;
    return false;
  }

  bool stream(StoreInst &store) {
    Loop *loop = loops.getLoopFor(store.getParent());
    if (!loop || !loop->isInnermost() || !loop->getLoopPreheader() ||
        isRead(*loop, getUnderlyingObject(store.getPointerOperand())))
      return false;
    const auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()));
    if (!address || address->getLoop() != loop || !address->isAffine())
      return false;
    const auto *step = dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution));
    const SCEV *last = evolution.getBackedgeTakenCount(loop);
    Instruction *before = loop->getLoopPreheader()->getTerminator();
    SCEVExpander expander(evolution, "stream");
    if (!step || step->getAPInt().urem(kPart) != 0 || isa<SCEVCouldNotCompute>(last) ||
        !expander.isSafeToExpandAt(address->getStart(), before) || !expander.isSafeToExpandAt(last, before))
      return false;
    uint64_t size = layout.getTypeStoreSize(store.getValueOperand()->getType());
    bool touches = step->getAPInt() == size; // each store begins where the one before ends
    IRBuilder<> b(before);
    Type *i64 = b.getInt64Ty();
    Value *start = b.CreatePtrToInt(
        expander.expandCodeFor(address->getStart(), address->getStart()->getType(), before), i64);
    Value *good = b.CreateIsNull(b.CreateAnd(start, kLine - 1));
    if (touches) {
      Value *count = b.CreateZExtOrTrunc(expander.expandCodeFor(last, last->getType(), before), i64);
      Value *isLong = b.CreateICmpUGE(count, b.getInt64(kLongRun / size));
      good = b.CreateOr(good, b.CreateAnd(isLong, b.CreateIsNull(b.CreateAnd(start, kPart - 1))));
    } else if (size < kLine) {
      return false; // parts of lines, which others complete at another time
    }
    // Frozen, it can leave the loop.
    Value *condition = b.CreateFreeze(b.CreateAnd(streams(), good), "streams");
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(condition, store.getIterator(), &then, &otherwise, nullptr, &updater,
                                  &loops);
    store.moveBefore(otherwise->getIterator());
    storeInParts(store, *then);
    evolution.forgetLoop(loop);
    return true;
  }

  void storeInParts(StoreInst &store, Instruction &where) {
    IRBuilder<> b(&where);
    b.SetCurrentDebugLocation(store.getDebugLoc());
    Value *value = store.getValueOperand();
    uint64_t size = layout.getTypeStoreSize(value->getType());
    Value *all = b.CreateBitCast(value, FixedVectorType::get(b.getInt32Ty(), unsigned(size / 4)));
    MDNode *one = MDNode::get(b.getContext(), ConstantAsMetadata::get(b.getInt32(1)));
    for (uint64_t at = 0; at < size; at += kPart) {
      SmallVector<int> words;
      for (int word = 0; word < int(kPart / 4); ++word)
        words.push_back(int(at / 4) + word);
      Value *part = b.CreateShuffleVector(all, words);
      StoreInst *made = b.CreateAlignedStore(
          part, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), store.getPointerOperand(), at), Align(kPart));
      made->setMetadata(LLVMContext::MD_nontemporal, one);
      made->setAAMetadata(store.getAAMetadata());
    }
  }

  /// What the launch says of itself, read once.
  Value *streams() {
    if (!flag) {
      IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
      Types types(function.getContext());
      Value *field = b.CreateStructGEP(types.launch, function.getArg(0), LaunchStreams);
      flag = b.CreateIsNotNull(b.CreateLoad(types.i32, field), "launch.streams");
    }
    return flag;
  }

  /// Before others are told that the blocks are done, what they wrote has to be seen.
  void addFences() {
    for (BasicBlock &block : make_early_inc_range(function))
      if (auto *end = dyn_cast<ReturnInst>(block.getTerminator())) {
        Instruction *then =
            SplitBlockAndInsertIfThen(streams(), end->getIterator(), false, nullptr, &updater, &loops);
        IRBuilder<> b(then);
        b.CreateIntrinsic(b.getVoidTy(), Intrinsic::x86_sse_sfence, {});
        return;
      }
  }

  Function &function;
  LoopInfo &loops;
  ScalarEvolution &evolution;
  DomTreeUpdater updater;
  const DataLayout &layout;
  Value *flag = nullptr;
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

uint32_t bytesStored(Function &kernel) {
  DominatorTree dominators(kernel);
  LoopInfo loops(dominators);
  uint64_t bytes = 0;
  for (Instruction &instruction : instructions(kernel)) {
    auto *store = dyn_cast<StoreInst>(&instruction);
    if (!store || !isa<Argument>(getUnderlyingObject(store->getPointerOperand())))
      continue;
    uint64_t size = kernel.getDataLayout().getTypeStoreSize(store->getValueOperand()->getType());
    for (Loop *loop = loops.getLoopFor(store->getParent()); loop; loop = loop->getParentLoop())
      size = std::min<uint64_t>(size * kIterations, UINT32_MAX);
    bytes += size;
  }
  return uint32_t(std::min<uint64_t>(bytes, UINT32_MAX));
}

void addStreamingStores(FunctionPassManager &passes) {
  passes.addPass(LoopSimplifyPass());
  passes.addPass(LCSSAPass());
  passes.addPass(StreamingStoresPass());
  passes.addPass(
      createFunctionToLoopPassAdaptor(SimpleLoopUnswitchPass(/*NonTrivial=*/true), /*UseMemorySSA=*/true));
  passes.addPass(SimplifyCFGPass());
}

} // namespace offload
