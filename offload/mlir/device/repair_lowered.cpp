//===- repair_lowered.cpp - offload-repair-lowered ------------------------===//
//
// What lowerings of MLIR 22 leave in the LLVM dialect that LLVM does not take, or leaves undefined:
//
// memref.generic_atomic_rmw becomes a loop around llvm.cmpxchg of the element's type. LLVM's takes integers
// and pointers only: floats are compared and exchanged as bits. And what the loop starts from is read as if
// no other thread wrote there: the read becomes atomic.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

void exchangeBits(LLVM::AtomicCmpXchgOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getVal().getType(), bits = b.getIntegerType(type.getIntOrFloatBitWidth());
  Value expected = LLVM::BitcastOp::create(b, loc, bits, op.getCmp());
  Value desired = LLVM::BitcastOp::create(b, loc, bits, op.getVal());
  auto exchange =
      LLVM::AtomicCmpXchgOp::create(b, loc, op.getPtr(), expected, desired, op.getSuccessOrdering(),
                                    op.getFailureOrdering(), op.getSyncscope().value_or(StringRef()),
                                    op.getAlignment().value_or(0), op.getWeak(), op.getVolatile_());
  Value found = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{0});
  Value done = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{1});
  Value result = LLVM::PoisonOp::create(b, loc, op.getRes().getType());
  result = LLVM::InsertValueOp::create(b, loc, result, LLVM::BitcastOp::create(b, loc, type, found),
                                       ArrayRef<int64_t>{0});
  result = LLVM::InsertValueOp::create(b, loc, result, done, ArrayRef<int64_t>{1});
  op.replaceAllUsesWith(result);
  op.erase();
}

/// The value that the loop begins with is a plain load just before it.
void readAtomically(LLVM::AtomicCmpXchgOp op) {
  auto expected = dyn_cast<BlockArgument>(op.getCmp());
  if (!expected)
    return;
  for (Block *before : expected.getOwner()->getPredecessors()) {
    auto branch = dyn_cast<LLVM::BrOp>(before->getTerminator());
    auto load = branch ? branch.getOperand(expected.getArgNumber()).getDefiningOp<LLVM::LoadOp>() : nullptr;
    if (!load || load.getAddr() != op.getPtr() || load.getOrdering() != LLVM::AtomicOrdering::not_atomic)
      continue;
    unsigned bytes = load.getType().getIntOrFloatBitWidth() / 8;
    if (!bytes)
      continue;
    load.setOrdering(LLVM::AtomicOrdering::monotonic);
    load.setAlignment(bytes);
  }
}

struct RepairLowered : public PassWrapper<RepairLowered, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairLowered)

  StringRef getArgument() const final { return "offload-repair-lowered"; }
  StringRef getDescription() const final { return "Mend what lowerings of MLIR leave wrong"; }

  void runOnOperation() final {
    getOperation()->walk([](LLVM::AtomicCmpXchgOp op) {
      readAtomically(op);
      if (isa<FloatType>(op.getVal().getType()))
        exchangeBits(op);
    });
  }
};

} // namespace

void registerRepairLoweredPass() { PassRegistration<RepairLowered>(); }

} // namespace offload
