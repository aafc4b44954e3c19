//===- block_lanes.cpp - Lanes of a warp that wait with their block ---------===//

#include "cpu/block_lanes.h"
#include "names.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

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

/// Of the lane number that a lane reads: always the same number up, down, or with one bit the other way.
struct Distance {
  enum { Up, Down, Xor } kind;
  uint32_t lanes;
};

class LaneLowering {
public:
  LaneLowering(Function &code, ArrayRef<Value *> blockDim, uint32_t most, uint32_t warpSize)
      : code(code), blockDim(blockDim), warpSize(warpSize),
        words(ArrayType::get(Type::getInt64Ty(code.getContext()), most + 2 * warpSize)) {}

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

  /// Arrays have room for a warp in front and behind (see atDistance).
  void exchange(CallInst *call, Value *array, bool waitAgain) {
    IRBuilder<> b(call);
    Value *given = narrowed(call);
    auto place = [&](Value *thread, int32_t apart = 0) {
      Value *number =
          b.CreateAdd(b.CreateZExt(thread, b.getInt64Ty()), b.getInt64(int32_t(warpSize) + apart));
      return b.CreateInBoundsGEP(given->getType(), array, number);
    };
    auto word = [&](Value *address) { return b.CreateLoad(given->getType(), address); };
    Value *own = thread(b), *source = call->getArgOperand(1), *result;
    b.CreateStore(given, place(own));
    barrier(b);
    Value *lane = b.CreateAnd(own, b.getInt32(warpSize - 1));
    if (std::optional<Distance> distance = distanceOf(source)) {
      result = atDistance(b, *distance, own, lane, [&](int32_t apart) { return word(place(own, apart)); });
    } else {
      Value *other = b.CreateOr(b.CreateSub(own, lane), b.CreateAnd(source, b.getInt32(warpSize - 1)));
      result = word(place(b.CreateSelect(b.CreateICmpULT(other, threads(b)), other, own)));
    }
    if (waitAgain)
      barrier(b);
    call->replaceAllUsesWith(b.CreateZExt(result, call->getType()));
    call->eraseFromParent();
  }

  /// The word that a lane gives, without bits that nobody reads: a vector has more lanes of it then.
  static Value *narrowed(CallInst *call) {
    Value *word = call->getArgOperand(0), *inner;
    if (!match(word, m_ZExt(m_Value(inner))))
      return word;
    unsigned bits = inner->getType()->getIntegerBitWidth();
    bool areRead = llvm::any_of(call->users(), [&](User *user) {
      return !isa<TruncInst>(user) || user->getType()->getIntegerBitWidth() > bits;
    });
    return areRead || bits < 8 || !isPowerOf2_32(bits) ? word : inner;
  }

  /// What lies at a constant distance is read in any case, by a vector of threads together, and taken where
  /// it is a lane's. With the numbers of lanes, LLVM would gather.
  Value *atDistance(IRBuilder<> &b, Distance distance, Value *own, Value *lane,
                    function_ref<Value *(int32_t apart)> word) {
    auto apart = int32_t(distance.lanes);
    Value *lanes = b.getInt32(distance.lanes), *there, *exists;
    switch (distance.kind) {
    case Distance::Up:
      there = word(-apart);
      exists = b.CreateICmpUGE(lane, lanes);
      break;
    case Distance::Down:
      there = word(apart);
      exists = b.CreateAnd(b.CreateICmpULT(lane, b.getInt32(warpSize - distance.lanes)),
                           b.CreateICmpULT(b.CreateAdd(own, lanes), threads(b)));
      break;
    case Distance::Xor:
      there = b.CreateSelect(b.CreateIsNotNull(b.CreateAnd(own, lanes)), word(-apart), word(apart));
      exists = b.CreateICmpULT(b.CreateXor(own, lanes), threads(b));
      break;
    }
    return b.CreateSelect(exists, there, word(0));
  }

  /// As shuffles of the whole warp have it (device/prepare_shuffles.cpp): a lane that would read beyond the
  /// warp reads itself.
  std::optional<Distance> distanceOf(Value *source) const {
    Value *number, *lane, *same;
    CmpPredicate order;
    const APInt *lanes, *width;
    if (!match(source,
               m_Select(m_ICmp(order, m_Value(number), m_APInt(width)), m_Deferred(number), m_Value(same))) ||
        order != CmpInst::ICMP_ULT || *width != warpSize || !isOwnLane(same))
      return std::nullopt;
    auto found = [&](decltype(Distance::kind) kind) -> std::optional<Distance> {
      if (lane != same || !lanes->ult(warpSize) || (kind == Distance::Xor && !lanes->isPowerOf2()))
        return std::nullopt;
      return Distance{kind, uint32_t(lanes->getZExtValue())};
    };
    if (match(number, m_Xor(m_Value(lane), m_APInt(lanes))))
      return found(Distance::Xor);
    if (match(number, m_Add(m_Value(lane), m_APInt(lanes))))
      return found(Distance::Down);
    if (match(number, m_Sub(m_Value(lane), m_APInt(lanes))))
      return found(Distance::Up);
    return std::nullopt;
  }

  /// The rest of the thread's number in its block, divided by the size of a warp.
  bool isOwnLane(Value *value) const {
    Value *thread, *x, *y, *z, *row, *width, *height;
    if (!match(value, m_TruncOrSelf(m_ZExtOrSelf(m_URem(m_Value(thread), m_SpecificInt(warpSize))))) ||
        !match(thread, m_Add(m_Mul(m_Value(row), m_Value(width)), m_Value(x))) ||
        !match(row, m_Add(m_Mul(m_Value(z), m_Value(height)), m_Value(y))))
      return false;
    return isOf(kThreadId, 'x', x) && isOf(kThreadId, 'y', y) && isOf(kThreadId, 'z', z) &&
           isExtent(0, width) && isExtent(1, height);
  }

  bool isExtent(unsigned axis, Value *value) const {
    return value == blockDim[axis] || isOf(kBlockDim, "xyz"[axis], value);
  }

  static bool isOf(StringRef standIn, char axis, Value *value) {
    auto *instruction = dyn_cast<Instruction>(value);
    return instruction && callOf(*instruction, (standIn + Twine(axis)).str());
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
