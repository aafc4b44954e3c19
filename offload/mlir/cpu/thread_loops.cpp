//===- thread_loops.cpp - Loops over the threads of a block -----------------===//

#include "cpu/thread_loops.h"
#include "cpu/loop_analyses.h"

#include "llvm/Transforms/Utils/LoopSimplify.h"

using namespace llvm;

namespace offload {

Loop beginLoop(IRBuilder<> &b, Value *first, Value *last, const Twine &name) {
  LLVMContext &context = b.getContext();
  BasicBlock *before = b.GetInsertBlock();
  Function *function = before->getParent();
  Loop loop;
  loop.body = BasicBlock::Create(context, name, function);
  loop.latch = BasicBlock::Create(context, name + ".next", function);
  loop.exit = BasicBlock::Create(context, name + ".end", function);
  b.CreateCondBr(b.CreateICmpULT(first, last), loop.body, loop.exit);
  b.SetInsertPoint(loop.body);
  loop.variable = b.CreatePHI(first->getType(), 2, name + ".i");
  loop.variable->addIncoming(first, before);
  IRBuilder<> latch(loop.latch);
  Value *next =
      latch.CreateAdd(loop.variable, ConstantInt::get(first->getType(), 1), "", /*NUW=*/true, /*NSW=*/false);
  loop.variable->addIncoming(next, loop.latch);
  loop.backEdge = latch.CreateCondBr(latch.CreateICmpULT(next, last), loop.body, loop.exit);
  return loop;
}

void endLoop(IRBuilder<> &b, Loop &loop) {
  b.CreateBr(loop.latch);
  b.SetInsertPoint(loop.exit);
}

ThreadLoops beginThreads(IRBuilder<> &b, ArrayRef<Value *> blockDim) {
  ThreadLoops loops;
  Value *zero = b.getInt32(0);
  loops.z = beginLoop(b, zero, blockDim[2], "z");
  loops.y = beginLoop(b, zero, blockDim[1], "y");
  loops.x = beginLoop(b, zero, blockDim[0], "x");
  return loops;
}

void simplifyLoops(Function &code) {
  LoopAnalyses analyses;
  LoopSimplifyPass().run(code, analyses.functions);
}

/// LLVM knows nothing of it; the author's loops have other metadata.
static constexpr char kOverThreads[] = "offload.over_threads";

void markParallel(BranchInst *backEdge, MDNode *group, unsigned unroll) {
  LLVMContext &context = backEdge->getContext();
  Metadata *parallel[] = {MDString::get(context, "llvm.loop.parallel_accesses"), group};
  Metadata *progress[] = {MDString::get(context, "llvm.loop.mustprogress")};
  // A short loop that is unrolled is no loop for the vectorizer, which comes later.
  SmallVector<Metadata *> whole = {MDString::get(context, "llvm.loop.unroll.disable")};
  if (unroll)
    whole = {MDString::get(context, "llvm.loop.unroll.count"),
             ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), unroll))};
  Metadata *done[] = {MDString::get(context, "llvm.loop.isvectorized"),
                      ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), 1))};
  Metadata *then[] = {MDString::get(context, "llvm.loop.vectorize.followup_vectorized"),
                      MDNode::get(context, done)};
  Metadata *own[] = {MDString::get(context, kOverThreads)};
  Metadata *operands[] = {nullptr,
                          MDNode::get(context, parallel),
                          MDNode::get(context, progress),
                          MDNode::get(context, whole),
                          MDNode::get(context, then),
                          MDNode::get(context, own)};
  MDNode *id = MDNode::getDistinct(context, operands);
  id->replaceOperandWith(0, id);
  backEdge->setMetadata(LLVMContext::MD_loop, id);
}

bool isParallel(const BranchInst &backEdge) {
  MDNode *id = backEdge.getMetadata(LLVMContext::MD_loop);
  return id && any_of(id->operands().drop_front(), [](const MDOperand &each) {
           auto *node = dyn_cast<MDNode>(each);
           auto *name = node && node->getNumOperands() ? dyn_cast<MDString>(node->getOperand(0)) : nullptr;
           return name && name->getString() == kOverThreads;
         });
}

} // namespace offload
