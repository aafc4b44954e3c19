//===- step_loops.cpp - What a thread's loops keep, and which are unrolled --===//

#include "cpu/block_lanes.h"
#include "cpu/loop_analyses.h"
#include "cpu/strips.h"
#include "names.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"

using namespace llvm;

namespace offload {
namespace {

constexpr unsigned kMostSteps = 32, kMostUnrolled = 2048; // instructions

/// Whether the loop uses memory, and none of the thread's own, which unrolling makes registers.
bool usesMemory(const llvm::Loop &loop) {
  bool uses = false;
  for (BasicBlock *block : loop.blocks())
    for (Instruction &instruction : *block)
      if (const Value *address = getLoadStorePointerOperand(&instruction)) {
        if (isa<AllocaInst>(getUnderlyingObject(address)))
          return false;
        uses = true;
      }
  return uses;
}

/// Whether each step of the loop writes somewhere else and leaves the next step nothing. Unrolled, the steps
/// of a few threads would come one after the other, each with a part of what is written to its place;
/// neighbouring threads that take a step together fill whole cache lines.
bool onlyWrites(const llvm::Loop &loop) {
  return usesMemory(loop) && range_size(loop.getHeader()->phis()) == 1 &&
         any_of(loop.blocks(), [](BasicBlock *block) { return any_of(*block, IsaPred<StoreInst>); });
}

/// Bytes of what is carried from step to step, but for what counts the steps.
uint64_t bytesCarried(const llvm::Loop &loop) {
  uint64_t bytes = 0;
  for (const PHINode &phi : loop.getHeader()->phis())
    if (none_of(phi.users(), [](const User *user) { return isa<ICmpInst>(user); }))
      bytes += phi.getDataLayout().getTypeStoreSize(phi.getType());
  return bytes;
}

/// As many steps as a small loop has that shall be unrolled; 0 for others.
unsigned smallSteps(const llvm::Loop &loop, ScalarEvolution &evolution) {
  unsigned steps = evolution.getSmallConstantTripCount(&loop);
  size_t size = 0;
  for (BasicBlock *block : loop.blocks())
    size += block->size();
  bool isSmall = steps <= kMostSteps && steps * size <= kMostUnrolled;
  return isSmall && !loop.getLoopID() && !waits(loop) && !onlyWrites(loop) ? steps : 0;
}

} // namespace

bool waits(const llvm::Loop &loop) {
  return any_of(loop.blocks(), [](BasicBlock *block) {
    return any_of(*block, [](Instruction &instruction) {
      return callOf(instruction, kBarrier) || callOf(instruction, kExchange) ||
             callOf(instruction, kActiveLanes);
    });
  });
}

std::optional<uint64_t> bytesKept(Function &code) {
  DominatorTree tree(code);
  LoopInfo info(tree);
  uint64_t most = 0;
  for (llvm::Loop *loop : info.getLoopsInPreorder()) {
    if (!loop->isInnermost() || !usesMemory(*loop))
      return std::nullopt;
    most = std::max(most, bytesCarried(*loop));
  }
  return info.empty() ? std::nullopt : std::optional(most);
}

void unrollFully(Instruction &backEdge) {
  LLVMContext &context = backEdge.getContext();
  Metadata *operands[] = {nullptr, MDNode::get(context, MDString::get(context, "llvm.loop.unroll.full"))};
  MDNode *id = MDNode::getDistinct(context, operands);
  id->replaceOperandWith(0, id);
  backEdge.setMetadata(LLVMContext::MD_loop, id);
}

void unrollSmallLoops(Function &code) {
  // Inside of another loop that leaves that one's steps, which are long enough to be taken together. Where
  // threads wait in it, they are together anyway.
  auto stepsInside = [](llvm::Loop &loop, ScalarEvolution &evolution) {
    llvm::Loop *outermost = loop.getOutermostLoop();
    return outermost != &loop && !waits(*outermost) ? smallSteps(loop, evolution) : 0;
  };
  while (takeApart(code, stepsInside))
    ;
  LoopAnalyses analyses;
  auto &info = analyses.functions.getResult<LoopAnalysis>(code);
  auto &evolution = analyses.functions.getResult<ScalarEvolutionAnalysis>(code);
  for (llvm::Loop *loop : info.getLoopsInPreorder())
    if (loop->isInnermost() && loop->getLoopLatch() && smallSteps(*loop, evolution))
      unrollFully(*loop->getLoopLatch()->getTerminator());
}

} // namespace offload
