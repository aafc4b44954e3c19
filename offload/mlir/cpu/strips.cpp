//===- strips.cpp - Loops over strips of threads ----------------------------===//

#include "cpu/strips.h"
#include "names.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace offload {
namespace {

constexpr uint64_t kMostKept = 1 << 10;     // bytes of a wide strip: half of AVX-512's registers
constexpr uint32_t kFewest = 4, kMost = 64; // lanes of a strip that is as long as a row of threads
constexpr uint32_t kShort = 8;              // lanes where a narrow strip is not full

uint32_t lanesFor(Function &thread, Value *blockDim, uint32_t most) {
  auto *size = dyn_cast<ConstantInt>(blockDim);
  uint64_t threads = size ? size->getZExtValue() : kNarrow;
  if (threads < kFewest)
    return 0;
  uint64_t registers = thread.getFnAttributeAsParsedInteger(kRegisters), kept = bytesKept(thread).value_or(0);
  uint32_t lanes = threads <= kMost && threads % kNarrow != 0 ? uint32_t(threads) : kNarrow;
  // What is kept for an odd number of lanes is in no whole number of registers.
  if (kept != 0 && lanes % kShort != 0)
    lanes = lanes > kShort ? kShort : kFewest;
  lanes = std::min(lanes, most);
  return registers && kept * lanes > registers ? std::max(bit_floor(uint32_t(registers / kept)), kFewest)
                                               : lanes;
}

/// 0 where a wide strip has nothing before a narrow one.
uint32_t wideLanesFor(Function &thread, Value *blockDim, uint32_t most) {
  auto *size = dyn_cast<ConstantInt>(blockDim);
  uint64_t threads = size ? size->getZExtValue() : 0;
  bool fits = threads > kNarrow && threads <= most && threads % kNarrow == 0;
  std::optional<uint64_t> kept = fits ? bytesKept(thread) : std::nullopt;
  return kept && *kept * threads <= kMostKept ? uint32_t(threads) : 0;
}

/// The lanes of the strips for what one leaves to each thread, because some go another way: the last ones of
/// a row that is not full do. 0 where each of these is alone, as where its loops only go through memory.
uint32_t lanesWithin(Function &thread, uint32_t lanes) {
  for (uint32_t fewer : {kNarrow, kShort, kFewest})
    if (lanes > fewer)
      return lanes % fewer == 0 && (fewer == kNarrow || bytesKept(thread) != 0) ? fewer : 0;
  return 0;
}

/// The thread's code as code of a strip, with the first thread's x in place of the thread's. Null where there
/// is nothing to run together.
Function *makeStrip(Function &thread, unsigned x, uint32_t lanes, uint32_t warpSize) {
  ValueToValueMapTy map;
  Function *strip = CloneFunction(&thread, map);
  strip->setName(thread.getName() + ".strip");
  IRBuilder<> b(&*strip->getEntryBlock().getFirstInsertionPt());
  Argument *first = strip->getArg(x);
  FunctionCallee place =
      thread.getParent()->getOrInsertFunction((Twine(kThreadId) + "x").str(), first->getType());
  CallInst *lane = b.CreateCall(place);
  auto *own = cast<Instruction>(b.CreateAdd(first, lane, "x", /*NUW=*/true, /*NSW=*/true));
  first->replaceUsesWithIf(own, [&](Use &use) { return use.getUser() != own; });

  copyBehindChecks(*strip, lane, lanes);
  splitLoops(*strip, lane, lanes);
  Value *sizes[] = {b.getInt32(lanes), b.getInt32(1), b.getInt32(1)};
  RegionLimits limits{.threads = lanes, .bytes = 32 << 10, .strips = lanesWithin(thread, lanes)};
  if (joinLoops(*strip, lane) == 0 || !makeRegions(*strip, sizes, limits, warpSize)) {
    strip->eraseFromParent();
    return nullptr;
  }
  return strip;
}

} // namespace

void addStrips(CallInst &call, const Loop &loop, Value *blockDim, uint32_t warpSize, uint32_t most) {
  Function &thread = *call.getCalledFunction();
  auto *x = find(call.args(), loop.variable);
  uint32_t wide = wideLanesFor(thread, blockDim, most),
           lanes = wide ? wide : lanesFor(thread, blockDim, most);
  // Line information would have to say where code stands that was taken apart.
  if (x == call.arg_end() || lanes == 0 || thread.getSubprogram())
    return;
  unsigned index = unsigned(x - call.arg_begin());
  Function *strip = makeStrip(thread, index, lanes, warpSize);
  if (!strip && wide)
    strip = makeStrip(thread, index, lanes = lanesFor(thread, blockDim, most), warpSize);
  if (!strip)
    return;
  SmallVector<std::pair<Function *, uint32_t>> strips = {{strip, lanes}};
  if (auto *size = dyn_cast<ConstantInt>(blockDim); size && lanes == kShort)
    if (size->getZExtValue() % kShort >= kFewest)
      if (Function *shorter = makeStrip(thread, index, kFewest, warpSize))
        strips.push_back({shorter, kFewest});
  BasicBlock *front = loop.variable->getIncomingBlock(loop.variable->getIncomingBlock(0) == loop.latch);
  auto *enter = cast<BranchInst>(front->getTerminator());
  BasicBlock *rest = SplitBlock(front, enter);
  front->getTerminator()->eraseFromParent();
  IRBuilder<> b(front);
  Value *done = b.getInt32(0);
  SmallVector<Value *> arguments(call.args());
  for (auto [code, length] : strips) {
    Value *size = b.getInt32(length), *count = b.CreateUDiv(b.CreateSub(blockDim, done), size);
    Loop over = beginLoop(b, b.getInt32(0), count, "strip");
    Value *ahead = b.CreateMul(over.variable, size, "", /*NUW=*/true, /*NSW=*/true);
    arguments[index] = b.CreateAdd(done, ahead, "x", /*NUW=*/true, /*NSW=*/true);
    b.CreateCall(code, arguments);
    endLoop(b, over);
    done = b.CreateAdd(done, b.CreateMul(count, size), "done", /*NUW=*/true, /*NSW=*/true);
  }
  b.CreateBr(rest);
  loop.variable->setIncomingValueForBlock(rest, done);
  b.SetInsertPoint(enter);
  enter->setCondition(b.CreateICmpULT(done, blockDim));
}

} // namespace offload
