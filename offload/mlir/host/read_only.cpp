//===- read_only.cpp - Arguments whose memory a program only reads --------===//
//
// Python may pass such a function arrays that may not be written, and nothing has to be copied back. Each use
// has to be one of those known here: what is not known may write.

#include "host/read_only.h"

#include "names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

void OnlyRead::mayBeWritten(Value memory) {
  SmallVector<Value> all{memory};
  while (!all.empty()) {
    Value next = all.pop_back_val();
    if (!written.insert(next).second)
      continue;
    auto found = from.find(next);
    if (found != from.end())
      all.append(found->second.begin(), found->second.end());
  }
}

/// Looks at what is done with this, too, which `memory` has become.
void OnlyRead::follow(Value next, Value memory) {
  from[next].push_back(memory);
  if (seen.insert(next).second)
    open.push_back(next);
  else if (written.contains(next))
    mayBeWritten(memory);
}

/// The argument of that number of a function of the program; false where its body is not here, or is not what
/// runs.
bool OnlyRead::enter(Operation *op, SymbolRefAttr name, unsigned number, Value memory) {
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, name);
  if (!callee || callee.isExternal() || number >= callee.getNumArguments() ||
      !isa<BaseMemRefType>(callee.getArgument(number).getType()) || callee->getParentOp()->hasAttr(kReady))
    return false;
  follow(callee.getArgument(number), memory);
  return true;
}

/// Whether an address is only computed with until it is a condition, as where it shall be a multiple of
/// something.
static bool isOnlyTested(Value address) {
  SmallVector<Value> open{address};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (!isa<arith::ArithDialect>(user->getDialect()))
        return false;
      if (seen.insert(user).second && !user->getResult(0).getType().isInteger(1))
        open.push_back(user->getResult(0));
    }
  return true;
}

bool OnlyRead::reads(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<memref::LoadOp, memref::DimOp, memref::RankOp, vector::LoadOp, vector::MaskedLoadOp,
          vector::GatherOp, vector::ExpandLoadOp, gpu::SubgroupMmaLoadMatrixOp>(op))
    return true;
  if (auto read = dyn_cast<vector::TransferReadOp>(op))
    return isa<MemRefType>(read.getBase().getType());
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return &use == &copy.getSourceMutable();
  if (auto copy = dyn_cast<gpu::MemcpyOp>(op))
    return &use == &copy.getSrcMutable();
  if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(op))
    return &use == &copy.getSrcMutable();
  if (isa<memref::ExtractAlignedPointerAsIndexOp>(op))
    return isOnlyTested(op->getResult(0));
  if (isa<memref::ExtractStridedMetadataOp, memref::SubViewOp, memref::CastOp, memref::ReinterpretCastOp,
          memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp, memref::MemorySpaceCastOp,
          memref::ReshapeOp, arith::SelectOp>(op)) {
    follow(op->getResult(0), use.get());
    return true;
  }
  if (auto call = dyn_cast<func::CallOp>(op))
    return enter(op, call.getCalleeAttr(), use.getOperandNumber(), use.get());
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
    OperandRange given = launch.getKernelOperands();
    unsigned first = given.getBeginOperandIndex(), number = use.getOperandNumber();
    return number >= first && number < first + given.size() &&
           enter(op, launch.getKernelAttr(), number - first, use.get());
  }
  return false;
}

void OnlyRead::look(Value memory) {
  for (OpOperand &use : memory.getUses())
    if (!reads(use))
      return mayBeWritten(memory);
}

bool OnlyRead::isOnlyRead(BlockArgument argument) {
  if (!isa<MemRefType>(argument.getType()) ||
      argument.getOwner()->getParentOp()->getParentOp()->hasAttr(kReady))
    return false;
  if (seen.insert(argument).second)
    open.push_back(argument);
  while (!open.empty())
    look(open.pop_back_val());
  return !written.contains(argument);
}

} // namespace offload
