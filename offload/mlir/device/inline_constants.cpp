//===- inline_constants.cpp - offload-inline-constants --------------------===//
//
// MLIR 22 writes constant operands of inline PTX into its text. Only integers have a form there: a predicate
// became `@-1`, which the assembler refuses, and floats were refused by LLVM. They go through registers.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Whether the constant can stand in the text of an instruction.
bool isImmediate(Type type) { return isa<IntegerType>(type) && !type.isInteger(1); }

struct InlineConstants : public PassWrapper<InlineConstants, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineConstants)

  StringRef getArgument() const final { return "offload-inline-constants"; }
  StringRef getDescription() const final {
    return "Keep constants that are no integers out of the text of inline PTX";
  }

  void runOnOperation() final {
    getOperation()->walk([](NVVM::BasicPtxBuilderInterface op) {
      OpBuilder b(op);
      auto text = dyn_cast<NVVM::InlinePtxOp>(op.getOperation());
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        if (text && llvm::is_contained(text.getReadWriteArgs(), value))
          continue; // what the text changes is no constant
        // What nothing folds and nothing is left of in LLVM hides that it is a constant.
        if (value.getDefiningOp<LLVM::ConstantOp>() && !isImmediate(value.getType()))
          operand.set(LLVM::FreezeOp::create(b, op.getLoc(), value));
      }
    });
  }
};

} // namespace

void registerInlineConstantsPass() { PassRegistration<InlineConstants>(); }

} // namespace offload
