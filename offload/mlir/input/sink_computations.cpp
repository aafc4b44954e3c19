//===- sink_computations.cpp - What kernels compute for themselves --------===//
//
// The choice is that of MLIR's gpu-launch-sink-index-computations, which looks at all uses that a value has
// in the program, for each launch: those of a constant of a model are in all of its launches, and of a
// thousand launches that took most of the time. Here the operands of a launch's own body are looked at.
//
//===----------------------------------------------------------------------===//

#include "input/sink_computations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace offload {
namespace {

bool isCheap(Operation *op) {
  return matchPattern(op, m_Constant()) || isa<memref::DimOp, arith::SelectOp, arith::CmpIOp>(op);
}

/// Adds an operation, behind those that it needs, where the kernel has everything else that these need.
bool add(Operation *op, const llvm::SetVector<Value> &used, llvm::SetVector<Operation *> &sunk) {
  if (sunk.contains(op))
    return true;
  if (!isCheap(op))
    return false;
  for (Value operand : op->getOperands()) {
    Operation *made = operand.getDefiningOp();
    if (!(made && add(made, used, sunk)) && !used.contains(operand))
      return false;
  }
  return sunk.insert(op);
}

} // namespace

void sinkComputations(gpu::LaunchOp launch) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(launch.getBody(), used);
  llvm::SetVector<Operation *> sunk;
  for (Value value : used)
    if (Operation *made = value.getDefiningOp())
      add(made, used, sunk);
  IRMapping map;
  OpBuilder builder(launch.getBody());
  for (Operation *op : sunk)
    builder.clone(*op, map);
  launch.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value ours = map.lookupOrNull(operand.get()))
        operand.set(ours);
  });
}

} // namespace offload
