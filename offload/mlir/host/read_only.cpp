//===- read_only.cpp - Arguments whose memory a program only reads --------===//
//
// Python may pass such a function arrays that may not be written, and nothing has to be copied back. Each use
// has to be one of those known here: what is not known may write.

#include "host/read_only.h"

#include "host/buffer_flow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir;

namespace offload {
namespace {

class Reads {
public:
  bool isOnlyRead(Value memory) {
    open.push_back(memory);
    while (!open.empty())
      for (OpOperand &use : open.pop_back_val().getUses())
        if (!reads(use))
          return false;
    return true;
  }

private:
  /// Looks at what is done with this, too.
  void follow(Value memory) {
    if (seen.insert(memory.getAsOpaquePointer()).second)
      open.push_back(memory);
  }

  /// The argument of that number of a function of the program; false where its body is not here.
  bool enter(Operation *from, SymbolRefAttr name, unsigned number) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(from, name);
    if (!callee || callee.isExternal() || number >= callee.getNumArguments() ||
        !isa<BaseMemRefType>(callee.getArgument(number).getType()))
      return false;
    follow(callee.getArgument(number));
    return true;
  }

  bool reads(OpOperand &use) {
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
    if (isa<memref::SubViewOp, memref::CastOp, memref::ReinterpretCastOp, memref::ExpandShapeOp,
            memref::CollapseShapeOp, memref::TransposeOp, memref::MemorySpaceCastOp, memref::ReshapeOp,
            arith::SelectOp>(op)) {
      follow(op->getResult(0));
      return true;
    }
    if (auto call = dyn_cast<func::CallOp>(op))
      return enter(op, call.getCalleeAttr(), use.getOperandNumber());
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
      OperandRange given = launch.getKernelOperands();
      unsigned first = given.getBeginOperandIndex(), number = use.getOperandNumber();
      return number >= first && number < first + given.size() &&
             enter(op, launch.getKernelAttr(), number - first);
    }
    return false;
  }

  SmallVector<Value> open;
  llvm::SmallPtrSet<void *, 8> seen;
};

} // namespace

bool isOnlyRead(BlockArgument argument) {
  return isa<MemRefType>(argument.getType()) && Reads().isOnlyRead(argument);
}

} // namespace offload
