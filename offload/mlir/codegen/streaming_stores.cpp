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

/// What processors have stores around the caches for, and what they write to memory at once.
constexpr uint64_t kPart = 16, kLine = 64;
/// Where the ends of a run of stores share their lines with others, that is paid for by this many bytes.
constexpr uint64_t kLongRun = 512;
/// An array of so many bytes is taken not to stay in a cache.
constexpr uint64_t kLarge = 32 << 20;

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
  /// The load of the address among the kernel's parameters; null for other memory.
  static const Instruction *arrayOf(const StoreInst &store) {
    auto *load = dyn_cast<LoadInst>(getUnderlyingObject(store.getPointerOperand(), /*MaxLookup=*/0));
    return load && load->hasMetadata(kArray) ? load : nullptr;
  }

  bool isCandidate(const StoreInst &store) const {
    auto *type = dyn_cast<FixedVectorType>(store.getValueOperand()->getType());
    return type && !type->getElementType()->isPointerTy() && store.isSimple() &&
           layout.getTypeStoreSize(type) % kPart == 0 &&
           layout.getTypeStoreSizeInBits(type) == layout.getTypeAllocSizeInBits(type) && arrayOf(store);
  }

  /// Memory that the loop reads is in the caches already.
  static bool isRead(const Loop &loop, const Value *object) {
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block)
        if (const auto *load = dyn_cast<LoadInst>(&instruction);
            load && getUnderlyingObject(load->getPointerOperand(), 0) == object)
          return true;
    return false;
  }

  void stream(StoreInst &store) {
    Loop *loop = loops.getLoopFor(store.getParent());
    if (!loop || !loop->isInnermost() || !loop->getLoopPreheader() || isRead(*loop, arrayOf(store)))
      return;
    const auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()));
    if (!address || address->getLoop() != loop || !address->isAffine())
      return;
    const auto *step = dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution));
    const SCEV *last = evolution.getBackedgeTakenCount(loop);
    Instruction *before = loop->getLoopPreheader()->getTerminator();
    SCEVExpander expander(evolution, "stream");
    if (!step || step->getAPInt().urem(kPart) != 0 || isa<SCEVCouldNotCompute>(last) ||
        !expander.isSafeToExpandAt(address->getStart(), before) || !expander.isSafeToExpandAt(last, before))
      return;
    uint64_t size = layout.getTypeStoreSize(store.getValueOperand()->getType());
    bool touches = step->getAPInt() == size; // each store begins where the one before ends
    IRBuilder<> b(before);
    Type *i64 = b.getInt64Ty();
    Value *start = b.CreatePtrToInt(
        expander.expandCodeFor(address->getStart(), address->getStart()->getType(), before), i64);
    Value *good = b.CreateIsNull(b.CreateAnd(start, kLine - 1));
    if (touches && evolution.getUnsignedRangeMax(last).uge(kLongRun / size)) {
      Value *count = b.CreateZExtOrTrunc(expander.expandCodeFor(last, last->getType(), before), i64);
      Value *isLong = b.CreateICmpUGE(count, b.getInt64(kLongRun / size));
      good = b.CreateOr(good, b.CreateAnd(isLong, b.CreateIsNull(b.CreateAnd(start, kPart - 1))));
    } else if (!touches && size < kLine) {
      return; // parts of lines, which others complete at another time
    }
    Value *large = isLarge(*arrayOf(store),
                           layout.getTypeStoreSize(store.getValueOperand()->getType()->getScalarType()));
    // Frozen, it can leave the loop.
    Value *condition = b.CreateFreeze(b.CreateAnd(large, good), "streams");
    Instruction *then = nullptr, *otherwise = nullptr;
    SplitBlockAndInsertIfThenElse(condition, store.getIterator(), &then, &otherwise, nullptr, &updater,
                                  &loops);
    store.moveBefore(otherwise->getIterator());
    storeInParts(store, *then);
    evolution.forgetLoop(loop);
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

  /// Is the array at this address large? Its sizes are parameters of the kernel.
  Value *isLarge(const Instruction &array, uint64_t elementSize) {
    Value *&large = arrays[&array];
    if (large)
      return large;
    const MDNode *node = array.getMetadata(kArray);
    auto number = [&](unsigned i) {
      return unsigned(mdconst::extract<ConstantInt>(node->getOperand(i))->getZExtValue());
    };
    IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
    Types types(function.getContext());
    Value *params =
        b.CreateLoad(types.pointer, b.CreateStructGEP(types.launch, function.getArg(0), LaunchParams));
    Value *bytes = b.getInt64(elementSize);
    for (unsigned i = 0; i < number(1); ++i) {
      Value *slot = b.CreateConstInBoundsGEP1_32(types.pointer, params, number(0) + 2 + i);
      Value *size = b.CreateLoad(b.getIntNTy(number(2)), b.CreateLoad(types.pointer, slot));
      bytes = b.CreateMul(bytes, b.CreateZExt(size, types.i64));
    }
    return large = b.CreateICmpUGE(bytes, b.getInt64(kLarge), "large");
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
