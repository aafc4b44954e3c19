//===- strips.cpp - Loops over strips of threads ----------------------------===//

#include "cpu/strips.h"
#include "names.h"

#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

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
  uint32_t lanes = threads <= kMost && threads % kNarrow != 0 ? uint32_t(threads) : kNarrow;
  lanes = std::min(lanes, most);
  uint64_t registers = thread.getFnAttributeAsParsedInteger(kRegisters), kept = bytesKept(thread).value_or(0);
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

/// One of these loops, by its last branch.
void takeLoopApart(BranchInst &back, uint32_t lanes) {
  BasicBlock *header = back.getSuccessor(0), *latch = back.getParent();
  auto *variable = cast<PHINode>(&header->front());
  BasicBlock *front = variable->getIncomingBlock(variable->getIncomingBlock(0) == latch);
  auto *first = dyn_cast<ConstantInt>(variable->getIncomingValueForBlock(front));
  if (!first || !first->isZero())
    return;
  ConstantFoldTerminator(front);
  DominatorTree tree(*header->getParent());
  LoopInfo info(tree);
  llvm::Loop *loop = info.getLoopFor(header);
  auto isUsedBehind = [&](Instruction &each) {
    return any_of(each.users(), [&](User *user) { return !loop->contains(cast<Instruction>(user)); });
  };
  if (!loop || loop->getLoopLatch() != latch || loop->getExitingBlock() != latch ||
      front->getUniqueSuccessor() != header || range_size(header->phis()) != 1 ||
      any_of(loop->blocks(), [&](BasicBlock *block) { return any_of(*block, isUsedBehind); }))
    return;
  BasicBlock *last = SplitEdge(front, header, &tree, &info);
  Instruction *before = front->getTerminator();
  unsigned edge = 0, done = 0;
  auto number = [&](unsigned value) { return ConstantInt::get(first->getType(), value); };
  auto next = [&] { return lanes - done < kFewest ? 1 : bit_floor(lanes - done); };
  for (unsigned length = next(); done + length < lanes; length = next()) {
    ValueToValueMapTy map;
    SmallVector<BasicBlock *> blocks;
    cloneLoopWithPreheader(last, front, loop, map, ".part", &info, &tree, blocks);
    remapInstructionsInBlocks(blocks, map);
    cast<PHINode>(map[variable])->setIncomingValueForBlock(cast<BasicBlock>(map[last]), number(done));
    auto *end = cast<BranchInst>(map[&back]);
    cast<ICmpInst>(end->getCondition())->setOperand(1, number(done + length));
    SmallVector<Metadata *> operands(back.getMetadata(LLVMContext::MD_loop)->operands());
    operands[0] = nullptr;
    MDNode *id = MDNode::getDistinct(back.getContext(), operands);
    id->replaceOperandWith(0, id);
    end->setMetadata(LLVMContext::MD_loop, id);
    before->setSuccessor(edge, cast<BasicBlock>(map[last]));
    before = end;
    edge = 1;
    done += length;
  }
  before->setSuccessor(edge, last);
  variable->setIncomingValueForBlock(last, number(done));
}

/// Loops over an odd number of lanes as several ones in a row, each as long as a vector may be, the last
/// lanes alone: of one loop, the vectorizer would leave what does not fill its vectors to a loop, and what
/// lanes keep would be memory.
void takeOddLanesApart(Function &strip, uint32_t lanes) {
  SmallVector<BranchInst *> backEdges;
  for (BasicBlock &block : strip) {
    auto *back = dyn_cast<BranchInst>(block.getTerminator());
    auto *test = back && back->isConditional() && isParallel(*back) ? dyn_cast<ICmpInst>(back->getCondition())
                                                                    : nullptr;
    auto *bound = test ? dyn_cast<ConstantInt>(test->getOperand(1)) : nullptr;
    auto *variable = bound ? dyn_cast<PHINode>(&back->getSuccessor(0)->front()) : nullptr;
    if (variable && test->hasOneUse() && test->getPredicate() == ICmpInst::ICMP_ULT &&
        bound->equalsInt(lanes) && variable->getNumIncomingValues() == 2 &&
        variable->getBasicBlockIndex(&block) >= 0 &&
        variable->getIncomingValueForBlock(&block) == test->getOperand(0))
      backEdges.push_back(back);
  }
  for (BranchInst *back : backEdges)
    takeLoopApart(*back, lanes);
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
  if (lanes % kShort != 0 && lanes > kFewest)
    takeOddLanesApart(*strip, lanes);
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
  if (auto *threads = dyn_cast<ConstantInt>(blockDim))
    if (auto left = uint32_t(threads->getZExtValue() % lanes); left >= kFewest)
      if (Function *shorter = makeStrip(thread, index, left, warpSize))
        strips.push_back({shorter, left});
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
