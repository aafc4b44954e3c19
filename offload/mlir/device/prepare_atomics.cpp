//===- prepare_atomics.cpp - atomic_rmw without an instruction ------------===//
//
// LLVM has no atomic multiplication: it becomes a loop that compares and exchanges.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace offload {

LogicalResult lowerAtomics(gpu::GPUModuleOp module) {
  module.walk([](memref::AtomicRMWOp op) {
    arith::AtomicRMWKind kind = op.getKind();
    if (kind != arith::AtomicRMWKind::mulf && kind != arith::AtomicRMWKind::muli)
      return;
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto loop = memref::GenericAtomicRMWOp::create(b, loc, op.getMemref(), op.getIndices());
    OpBuilder in = OpBuilder::atBlockEnd(loop.getBody());
    Value old = loop.getCurrentValue(), product;
    if (kind == arith::AtomicRMWKind::mulf)
      product = arith::MulFOp::create(in, loc, old, op.getValue());
    else
      product = arith::MulIOp::create(in, loc, old, op.getValue());
    memref::AtomicYieldOp::create(in, loc, product);
    op.getResult().replaceAllUsesWith(loop.getResult());
    op.erase();
  });
  return success();
}

} // namespace offload
