//===- region_strips.cpp - Regions whose loops run in strips ----------------===//

#include "codegen/private_memory.h"
#include "cpu/kernel_code.h"
#include "cpu/regions.h"
#include "cpu/strips.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"

using namespace llvm;

namespace offload {
namespace {

constexpr uint64_t kMostOwn = 4 << 10; // bytes of a thread's memory that a strip multiplies

bool hasLoop(RegionCode &pieces, const Region &region) {
  DominatorTree tree(pieces.code);
  LoopInfo info(tree);
  return any_of(region.blocks, [&](BasicBlock *block) { return info.isLoopHeader(block); });
}

} // namespace

void stripRegion(RegionCode &pieces, Region &region, const ThreadArrays &made, uint32_t warpSize,
                 uint32_t mostLanes) {
  if (pieces.code.getSubprogram() || !hasLoop(pieces, region))
    return;
  const DataLayout &layout = pieces.code.getDataLayout();
  SmallVector<AllocaInst *> own;
  uint64_t bytes = 0;
  for (AllocaInst *memory : made.own)
    if (!memory->use_empty() && pieces.numberOf(RegionCode::placeOf(*memory->use_begin())->getParent()) ==
                                    pieces.numberOf(region.entry)) {
      own.push_back(memory);
      bytes += memory->getAllocationSize(layout)->getFixedValue();
    }
  if (bytes > kMostOwn)
    return;
  // What a thread has for itself goes with its code.
  for (AllocaInst *memory : own)
    memory->moveBefore(*region.entry, region.entry->getFirstInsertionPt());
  BasicBlock *body = region.loops.x.body;
  BasicBlock::iterator front = region.entry->getFirstInsertionPt();
  while (&*body->getFirstNonPHIIt() != body->getTerminator())
    body->getFirstNonPHIIt()->moveBefore(*region.entry, front);
  CodeExtractorAnalysisCache cache(pieces.code);
  CodeExtractor extractor(region.blocks, nullptr, false, nullptr, nullptr, nullptr, false,
                          /*AllowAlloca=*/true);
  Function *thread = extractor.isEligible() ? extractor.extractCodeRegion(cache) : nullptr;
  if (!thread)
    return;
  thread->addFnAttr(Attribute::AlwaysInline);
  hoistMemory(*thread);
  addStrips(*cast<CallInst>(thread->user_back()), region.loops.x, pieces.blockDim[0], warpSize, mostLanes);
}

} // namespace offload
