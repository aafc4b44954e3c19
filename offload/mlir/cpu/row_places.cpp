//===- row_places.cpp - Kernels that only ask where in a row a thread is ----===//

#include "cpu/row_places.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace offload {
namespace {

bool isExtended(const User *user) { return isa<ZExtInst, SExtInst>(user); }

/// The value behind a widening of it.
Value *plain(Value *value) {
  auto *user = dyn_cast<User>(value);
  return user && isExtended(user) ? user->getOperand(0) : value;
}

/// All that uses the value or a widened one.
SmallVector<User *> usersOf(Value *value) {
  SmallVector<User *> found;
  for (User *user : value->users())
    if (isExtended(user))
      append_range(found, user->users());
    else
      found.push_back(user);
  return found;
}

class RowPlaces {
public:
  RowPlaces(Value *block, Value *size, Value *thread) : block(block), size(size), thread(thread) {}

  bool areAll() const {
    SmallVector<User *> ofThread = usersOf(thread), ofBlock = usersOf(block);
    return !ofThread.empty() && all_of(ofThread, [&](User *user) { return isPlace(user); }) &&
           all_of(ofBlock, [&](User *user) {
             return isStart(user) && all_of(user->users(), [&](User *sum) { return isPlace(sum); });
           });
  }

private:
  /// `block * size`.
  bool isStart(Value *value) const {
    auto *product = dyn_cast<BinaryOperator>(value);
    if (!product)
      return false;
    Value *a = product->getOperand(0), *b = product->getOperand(1);
    auto *known = dyn_cast<ConstantInt>(size), *factor = dyn_cast<ConstantInt>(b);
    if (product->getOpcode() == Instruction::Shl)
      return plain(a) == block && known && factor && factor->getValue().ult(32) &&
             known->getZExtValue() == uint64_t(1) << factor->getZExtValue();
    if (product->getOpcode() != Instruction::Mul)
      return false;
    if (plain(b) == block)
      std::swap(a, b);
    factor = dyn_cast<ConstantInt>(b);
    return plain(a) == block &&
           (plain(b) == size || (known && factor && known->getZExtValue() == factor->getZExtValue()));
  }

  /// `block * size + thread`.
  bool isPlace(Value *value) const {
    auto *sum = dyn_cast<BinaryOperator>(value);
    if (!sum || sum->getOpcode() != Instruction::Add)
      return false;
    Value *a = sum->getOperand(0), *b = sum->getOperand(1);
    return (isStart(a) && plain(b) == thread) || (isStart(b) && plain(a) == thread);
  }

  Value *const block, *const size, *const thread;
};

} // namespace

bool onlyCountsInRow(Function &code, Value *block, Value *size, Value *thread) {
  DominatorTree tree(code);
  return LoopInfo(tree).empty() && RowPlaces(block, size, thread).areAll();
}

} // namespace offload
