//===- block_lanes.cpp - Lanes of a warp that wait with their block ---------===//

#include "cpu/block_lanes.h"
#include "names.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace offload {

CallInst *callOf(Instruction &instruction, StringRef prefix) {
  auto *call = dyn_cast<CallInst>(&instruction);
  Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && callee->getName().starts_with(prefix) ? call : nullptr;
}

Value *linearThread(IRBuilder<> &b, ArrayRef<Value *> blockDim, Value *x, Value *y, Value *z) {
  Value *row = b.CreateAdd(y, b.CreateMul(z, blockDim[1], "", true), "", true);
  return b.CreateAdd(x, b.CreateMul(row, blockDim[0], "", true), "", true);
}

namespace {

class LaneLowering {
public:
  LaneLowering(Function &code, ArrayRef<Value *> blockDim, uint32_t most, uint32_t warpSize)
      : code(code), blockDim(blockDim), warpSize(warpSize),
        words(ArrayType::get(Type::getInt64Ty(code.getContext()), most)) {}

  /// Lanes exchange through arrays between barriers of the block. What is reached by all threads of a block
  /// is reached by all lanes of a warp. An array must not be written again before all have read it: two
  /// arrays in turn see to that, but in loops, which come back to the same one and wait a second time.
  BlockArrays run() {
    SmallVector<CallInst *> exchanges, masks;
    for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&code))
      for (Instruction &instruction : *block) {
        if (CallInst *call = callOf(instruction, kExchange))
          exchanges.push_back(call);
        else if (CallInst *call = callOf(instruction, kActiveLanes))
          masks.push_back(call);
      }
    DominatorTree tree(code);
    LoopInfo loops(tree);
    BlockArrays made;
    AllocaInst *places[3] = {};
    unsigned turn = 0;
    for (CallInst *call : exchanges) {
      bool repeats = loops.getLoopFor(call->getParent());
      AllocaInst *&array = places[repeats ? 2 : turn++ % 2];
      if (!array) {
        array = new AllocaInst(words, 0, nullptr, Align(64), "lanes", code.getEntryBlock().begin());
        made.arrays.insert(array);
        made.bytes += 8 * words->getNumElements();
      }
      exchange(call, array, repeats);
    }
    for (CallInst *call : masks)
      mask(call);
    return made;
  }

private:
  void mask(CallInst *call) {
    IRBuilder<> b(call);
    barrier(b); // all threads must come here, or the mask is another
    Value *own = thread(b);
    Value *rest = b.CreateSub(threads(b), b.CreateAnd(own, b.getInt32(~(warpSize - 1))));
    Value *missing = b.CreateSub(b.getInt32(warpSize),
                                 b.CreateBinaryIntrinsic(Intrinsic::umin, rest, b.getInt32(warpSize)));
    missing = b.CreateZExtOrTrunc(missing, call->getType());
    call->replaceAllUsesWith(b.CreateLShr(ConstantInt::getAllOnesValue(call->getType()), missing));
    call->eraseFromParent();
  }

  void exchange(CallInst *call, Value *array, bool waitAgain) {
    IRBuilder<> b(call);
    auto place = [&](Value *thread) {
      return b.CreateInBoundsGEP(words, array, {b.getInt64(0), b.CreateZExt(thread, b.getInt64Ty())});
    };
    Value *own = thread(b);
    b.CreateStore(call->getArgOperand(0), place(own));
    barrier(b);
    Value *warp = b.CreateAnd(own, b.getInt32(~(warpSize - 1)));
    Value *other = b.CreateOr(warp, b.CreateAnd(call->getArgOperand(1), b.getInt32(warpSize - 1)));
    Value *there = b.CreateICmpULT(other, threads(b));
    Value *word = b.CreateLoad(b.getInt64Ty(), place(b.CreateSelect(there, other, own)));
    if (waitAgain)
      barrier(b);
    call->replaceAllUsesWith(word);
    call->eraseFromParent();
  }

  Value *thread(IRBuilder<> &b) {
    Value *ids[3];
    for (unsigned i = 0; i < 3; ++i)
      ids[i] = b.CreateCall(
          code.getParent()->getOrInsertFunction(kThreadId + std::string(1, "xyz"[i]), b.getInt32Ty()), {});
    return linearThread(b, blockDim, ids[0], ids[1], ids[2]);
  }
  Value *threads(IRBuilder<> &b) { return b.CreateMul(b.CreateMul(blockDim[0], blockDim[1]), blockDim[2]); }
  void barrier(IRBuilder<> &b) {
    b.CreateCall(code.getParent()->getOrInsertFunction(kBarrier, b.getVoidTy()), {});
  }

  Function &code;
  ArrayRef<Value *> blockDim;
  const uint32_t warpSize;
  ArrayType *words;
};

} // namespace

BlockArrays lowerLanes(Function &code, ArrayRef<Value *> blockDim, uint32_t most, uint32_t warpSize) {
  return LaneLowering(code, blockDim, most, warpSize).run();
}

} // namespace offload
