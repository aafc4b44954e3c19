//===- workgroup_atomics.cpp - Atomics that no other thread can see ---------===//
//
// One thread of the operating system runs all threads of a block and takes turns only where they wait for
// each other. So nobody comes between the steps of an atomic operation on workgroup or private memory, which
// can be a load, the operation and a store: a tenth of the time of an instruction that locks the bus.
//
//===----------------------------------------------------------------------===//

#include "cpu/kernel_code.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;

namespace offload {
namespace {

/// Threads may change the same place one after the other, so the accesses are no independent ones.
void markOrdered(LoadInst *load, StoreInst *store) {
  MDNode *mark = MDNode::get(load->getContext(), {});
  load->setMetadata(kOrdered, mark);
  store->setMetadata(kOrdered, mark);
}

void lower(AtomicRMWInst &update) {
  IRBuilder<> b(&update);
  Value *address = update.getPointerOperand();
  LoadInst *before = b.CreateAlignedLoad(update.getType(), address, update.getAlign());
  Value *after = buildAtomicRMWValue(update.getOperation(), b, before, update.getValOperand());
  markOrdered(before, b.CreateAlignedStore(after, address, update.getAlign()));
  update.replaceAllUsesWith(before);
  update.eraseFromParent();
}

void lower(AtomicCmpXchgInst &exchange) {
  IRBuilder<> b(&exchange);
  Value *address = exchange.getPointerOperand(), *expected = exchange.getCompareOperand();
  LoadInst *before = b.CreateAlignedLoad(expected->getType(), address, exchange.getAlign());
  Value *same = b.CreateICmpEQ(before, expected);
  Value *after = b.CreateSelect(same, exchange.getNewValOperand(), before);
  markOrdered(before, b.CreateAlignedStore(after, address, exchange.getAlign()));
  Value *result = b.CreateInsertValue(PoisonValue::get(exchange.getType()), before, 0);
  exchange.replaceAllUsesWith(b.CreateInsertValue(result, same, 1));
  exchange.eraseFromParent();
}

void lower(LoadInst &load) {
  load.setAtomic(AtomicOrdering::NotAtomic);
  load.setMetadata(kOrdered, MDNode::get(load.getContext(), {}));
}

} // namespace

void makeBlockAtomicsPlain(Function &body, Value *shared) {
  auto isOfBlock = [&](Value *address) {
    const Value *memory = getUnderlyingObject(address);
    return memory == shared || isa<AllocaInst>(memory);
  };
  for (Instruction &instruction : make_early_inc_range(instructions(body))) {
    if (auto *update = dyn_cast<AtomicRMWInst>(&instruction);
        update && isOfBlock(update->getPointerOperand()))
      lower(*update);
    else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction);
             exchange && isOfBlock(exchange->getPointerOperand()))
      lower(*exchange);
    else if (auto *load = dyn_cast<LoadInst>(&instruction);
             load && load->isAtomic() && isOfBlock(load->getPointerOperand()))
      lower(*load);
  }
}

} // namespace offload
