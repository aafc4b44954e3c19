//===- stack.cpp - How much of the stack a kernel takes ---------------------===//
//
// Kernels run on the stack of whoever launches them, which may be small, and running over its end would end
// the process. Private memory of any size is allowed, so what is large goes elsewhere.
//
//===----------------------------------------------------------------------===//

#include "cpu/kernel_code.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {

bool limitStack(Function &code, Align aligned, function_ref<Value *(IRBuilder<> &, uint64_t)> allocate) {
  const DataLayout &layout = code.getDataLayout();
  auto bytesOf = [&](AllocaInst *memory) { return memory->getAllocationSize(layout)->getFixedValue(); };
  SmallVector<AllocaInst *> all;
  uint64_t total = 0;
  for (Instruction &instruction : code.getEntryBlock())
    if (auto *memory = dyn_cast<AllocaInst>(&instruction); memory && memory->isStaticAlloca()) {
      all.push_back(memory);
      total += bytesOf(memory);
    }
  stable_sort(all, [&](AllocaInst *left, AllocaInst *right) { return bytesOf(left) > bytesOf(right); });

  SmallVector<std::pair<AllocaInst *, uint64_t>> moved;
  uint64_t end = 0;
  Align most(kMemoryAlignment);
  for (AllocaInst *memory : all) {
    if (total <= kStackBytes && memory->getAlign() <= aligned)
      continue;
    total -= bytesOf(memory);
    Align alignment = std::max(memory->getAlign(), Align(kMemoryAlignment));
    most = std::max(most, alignment);
    uint64_t offset = alignTo(end, alignment);
    moved.push_back({memory, offset});
    end = offset + bytesOf(memory);
  }
  if (moved.empty())
    return false;
  IRBuilder<> b(&code.getEntryBlock(), code.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  Value *base = allocate(b, end + (most.value() - kMemoryAlignment));
  if (most.value() > kMemoryAlignment) {
    base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, most.value() - kMemoryAlignment);
    base = b.CreateIntrinsic(Intrinsic::ptrmask, {base->getType(), b.getInt64Ty()},
                             {base, b.getInt64(~(most.value() - 1))});
  }
  for (auto [memory, offset] : moved) {
    Value *place = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset);
    place->takeName(memory);
    memory->replaceAllUsesWith(place);
    memory->eraseFromParent();
  }
  return true;
}

void replaceMovingMemory(Function &code, function_ref<Value *(IRBuilder<> &, Value *)> allocate) {
  for (Instruction &instruction : make_early_inc_range(instructions(code))) {
    auto *memory = dyn_cast<AllocaInst>(&instruction);
    if (!memory || memory->isStaticAlloca())
      continue;
    IRBuilder<> b(memory);
    Value *count = b.CreateZExtOrTrunc(memory->getArraySize(), b.getInt64Ty());
    uint64_t one = code.getDataLayout().getTypeAllocSize(memory->getAllocatedType());
    Value *product =
        b.CreateIntrinsic(Intrinsic::umul_with_overflow, {b.getInt64Ty()}, {count, b.getInt64(one)});
    // More than there is of memory, where it is more than 64 bits can count.
    Value *bytes = b.CreateSelect(b.CreateExtractValue(product, 1), b.getInt64(~uint64_t(0)),
                                  b.CreateExtractValue(product, 0));
    memory->replaceAllUsesWith(allocate(b, bytes));
    memory->eraseFromParent();
  }
}

} // namespace offload
