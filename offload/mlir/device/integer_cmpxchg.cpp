//===- integer_cmpxchg.cpp - offload-integer-cmpxchg ----------------------===//
//
// memref.generic_atomic_rmw becomes a loop around llvm.cmpxchg of the element's type; LLVM's cmpxchg takes
// integers and pointers only. For floats this pass compares and exchanges the bits.
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

struct IntegerCmpXchg : public PassWrapper<IntegerCmpXchg, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(IntegerCmpXchg)

  StringRef getArgument() const final { return "offload-integer-cmpxchg"; }
  StringRef getDescription() const final { return "Make cmpxchg of floats one of their bits"; }

  void runOnOperation() final {
    getOperation()->walk([](LLVM::AtomicCmpXchgOp op) {
      if (isa<FloatType>(op.getVal().getType()))
        exchangeBits(op);
    });
  }
};

} // namespace

void registerIntegerCmpXchgPass() { PassRegistration<IntegerCmpXchg>(); }

} // namespace offload
