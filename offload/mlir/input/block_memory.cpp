//===- block_memory.cpp - offload-block-memory ----------------------------===//
//
// Kernels that allocate memory of their block (memref.alloc or memref.alloca in workgroup memory) get it as
// workgroup attributions, which every target knows. MLIR lowers the first to malloc and the second to a stack
// slot of each thread, whose address is taken for one in the block's memory.
//
//===----------------------------------------------------------------------===//

#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// What runs once, in a kernel, and has one size, is the same as an attribution.
bool isAttribution(Operation *op, MemRefType type) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op->getParentOp());
  return kernel && kernel.isKernel() && op->getBlock() == &kernel.getBody().front() &&
         type.hasStaticShape() && type.getLayout().isIdentity();
}

struct BlockMemory : public PassWrapper<BlockMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BlockMemory)

  StringRef getArgument() const final { return "offload-block-memory"; }
  StringRef getDescription() const final {
    return "Make workgroup memory that kernels allocate attributions";
  }

  void runOnOperation() final {
    SmallVector<Operation *> allocations;
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>())
      device.walk([&](Operation *op) {
        if (isa<memref::AllocOp, memref::AllocaOp>(op) &&
            isWorkgroup(cast<MemRefType>(op->getResult(0).getType()).getMemorySpace()))
          allocations.push_back(op);
      });
    for (Operation *op : allocations)
      if (failed(attribute(op)))
        return signalPassFailure();
  }

  LogicalResult attribute(Operation *op) {
    auto type = cast<MemRefType>(op->getResult(0).getType());
    if (!isAttribution(op, type))
      return op->emitError("'")
             << op->getName()
             << "' of the block's memory stands at the beginning of a kernel, outside of loops "
                "and branches, and has a static shape; or give the kernel or its launch a "
                "`workgroup` attribution, and functions that it calls an argument";
    auto kernel = cast<gpu::GPUFuncOp>(op->getParentOp());
    BlockArgument memory = kernel.addWorkgroupAttribution(type, op->getLoc());
    if (auto alignment = op->getAttrOfType<IntegerAttr>("alignment"))
      kernel.setWorkgroupAttributionAttr(kernel.getNumWorkgroupAttributions() - 1,
                                         LLVM::LLVMDialect::getAlignAttrName(), alignment);
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (isa<memref::DeallocOp>(user))
        user->erase();
    op->getResult(0).replaceAllUsesWith(memory);
    op->erase();
    return success();
  }
};

} // namespace

void registerBlockMemoryPass() { PassRegistration<BlockMemory>(); }

} // namespace offload
