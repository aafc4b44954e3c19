//===- aligned_starts.cpp - Loops that begin with a cache line ------------===//

#include "codegen/cpu/aligned_starts.h"
#include "codegen/cpu/large_arrays.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace offload {
namespace {

/// Fewer bytes than these are not worth a loop in front of the loop.
constexpr uint64_t kWorthIt = 1024;

/// Vectors that a step of the loop writes where it has so few instructions: the narrowest hold a quarter of a
/// line, and stores around the caches want whole ones.
constexpr unsigned kVectors = kLine / 16, kFewInstructions = 16;

class AlignedStart {
public:
  AlignedStart(Loop &loop, LoopInfo &loops, ScalarEvolution &evolution, DominatorTree &dominators)
      : loop(loop), loops(loops), evolution(evolution), dominators(dominators) {}

  bool run() {
    if (!loop.isLoopSimplifyForm() || loop.getExitingBlock() != loop.getLoopLatch() || !loop.getExitBlock() ||
        hasVectorizeTransformation(&loop) == TM_SuppressedByUser)
      return false;
    lastIteration = evolution.getBackedgeTakenCount(&loop);
    StoreInst *store = isa<SCEVCouldNotCompute>(lastIteration) ? nullptr : findStore();
    if (!store)
      return false;
    putInFront(iterationsBefore(*store));
    return true;
  }

private:
  /// A store of every iteration that begins where the one before ended, into an array that is not read:
  /// stores of an array that is are left in the caches. Null where there is none, or atomic operations are.
  StoreInst *findStore() {
    StoreInst *found = nullptr;
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block) {
        if (instruction.isAtomic())
          return nullptr;
        auto *store = dyn_cast<StoreInst>(&instruction);
        if (!found && store && dominators.dominates(block, loop.getLoopLatch()) && continues(*store))
          found = store;
      }
    return found;
  }

  bool continues(StoreInst &store) {
    Type *type = store.getValueOperand()->getType();
    if (!store.isSimple() || !(type->isIntegerTy() || type->isFloatingPointTy()) || !arrayOf(store))
      return false;
    uint64_t size = loop.getHeader()->getDataLayout().getTypeStoreSize(type);
    const auto *address = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()));
    SCEVExpander expander(evolution, "aligned");
    Instruction *before = loop.getLoopPreheader()->getTerminator();
    if (!isPowerOf2_64(size) || size >= kLine || !address || address->getLoop() != &loop ||
        !address->isAffine())
      return false;
    const auto *step = dyn_cast<SCEVConstant>(address->getStepRecurrence(evolution));
    unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
    return step && step->getAPInt() == size && (!most || most > kWorthIt / size) &&
           expander.isSafeToExpandAt(address->getStart(), before) &&
           expander.isSafeToExpandAt(lastIteration, before);
  }

  /// How many iterations come before the first whole line: fewer than the loop has, and none where it does
  /// not matter.
  Value *iterationsBefore(StoreInst &store) {
    uint64_t size = loop.getHeader()->getDataLayout().getTypeStoreSize(store.getValueOperand()->getType());
    Value *large = isLarge(*loop.getHeader()->getParent(), *arrayOf(store), size);
    Instruction *before = loop.getLoopPreheader()->getTerminator();
    SCEVExpander expander(evolution, "aligned");
    const SCEV *start = cast<SCEVAddRecExpr>(evolution.getSCEV(store.getPointerOperand()))->getStart();
    IRBuilder<> b(before);
    Type *i64 = b.getInt64Ty();
    Value *address = b.CreatePtrToInt(expander.expandCodeFor(start, start->getType(), before), i64);
    Value *last =
        b.CreateZExtOrTrunc(expander.expandCodeFor(lastIteration, lastIteration->getType(), before), i64);
    Value *bytes = b.CreateAnd(b.CreateNeg(address), kLine - 1);
    Value *whole = b.CreateIsNull(b.CreateAnd(bytes, size - 1)); // elements lie as they should
    Value *isLong = b.CreateICmpUGE(last, b.getInt64(kWorthIt / size));
    Value *wanted = b.CreateAnd(large, b.CreateAnd(whole, isLong));
    return b.CreateFreeze(b.CreateSelect(wanted, b.CreateLShr(bytes, Log2_64(size)), b.getInt64(0)));
  }

  /// Copies the loop for the first `count` iterations.
  void putInFront(Value *count) {
    BasicBlock *front = loop.getLoopPreheader();
    evolution.forgetLoop(&loop);
    BasicBlock *begin = SplitBlock(front, front->getTerminator(), &dominators, &loops);
    ValueToValueMapTy copies;
    SmallVector<BasicBlock *> blocks;
    Loop *copy = cloneLoopWithPreheader(begin, front, &loop, copies, ".front", &loops, &dominators, blocks);
    remapInstructionsInBlocks(blocks, copies);
    BasicBlock *header = copy->getHeader(), *latch = copy->getLoopLatch();

    // The copy ends by a count of its own.
    IRBuilder<> b(&header->front());
    PHINode *done = b.CreatePHI(b.getInt64Ty(), 2, "done");
    b.SetInsertPoint(latch->getTerminator());
    Value *next = b.CreateAdd(done, b.getInt64(1), "", /*NUW=*/true);
    done->addIncoming(b.getInt64(0), copy->getLoopPreheader());
    done->addIncoming(next, latch);
    latch->getTerminator()->eraseFromParent();
    b.SetInsertPoint(latch);
    b.CreateCondBr(b.CreateICmpEQ(next, count), begin, header);
    if (loop.getNumBlocks() == 1 && loop.getHeader()->size() <= kFewInstructions)
      addStringMetadataToLoop(&loop, "llvm.loop.interleave.count", kVectors);
    addStringMetadataToLoop(copy, "llvm.loop.vectorize.enable", 0);
    addStringMetadataToLoop(copy, "llvm.loop.unroll.disable", 1);
    addStringMetadataToLoop(copy, "llvm.loop.isvectorized", 1);

    front->getTerminator()->eraseFromParent();
    b.SetInsertPoint(front);
    b.CreateCondBr(b.CreateIsNull(count), begin, copy->getLoopPreheader());
    for (PHINode &own : loop.getHeader()->phis()) {
      auto *copied = cast<PHINode>(copies[&own]);
      PHINode *met = PHINode::Create(own.getType(), 2, own.getName() + ".begin", begin->begin());
      met->addIncoming(own.getIncomingValueForBlock(begin), front);
      met->addIncoming(copied->getIncomingValueForBlock(latch), latch);
      own.setIncomingValueForBlock(begin, met);
    }
  }

  Loop &loop;
  LoopInfo &loops;
  ScalarEvolution &evolution;
  DominatorTree &dominators;
  const SCEV *lastIteration = nullptr;
};

} // namespace

PreservedAnalyses AlignedStartsPass::run(Function &function, FunctionAnalysisManager &analyses) {
  if (!function.getName().ends_with(".blocks"))
    return PreservedAnalyses::all();
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  bool changed = false;
  for (Loop *loop : loops.getLoopsInPreorder())
    if (loop->isInnermost())
      changed |= AlignedStart(*loop, loops, evolution, dominators).run();
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace offload
