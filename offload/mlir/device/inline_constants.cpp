//===- inline_constants.cpp - offload-inline-constants --------------------===//
//
// MLIR 22 writes constant operands of inline PTX into its text. Only integers have a form there: a predicate
// became `@-1`, which the assembler refuses, and floats were refused by LLVM. They go through registers.
//
// MLIR numbers a predicate as if there were no results. It becomes an operand like others.
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
    getOperation()->walk([&](NVVM::BasicPtxBuilderInterface op) {
      if (auto text = dyn_cast<NVVM::InlinePtxOp>(op.getOperation()))
        takePredicate(text);
      OpBuilder b(op);
      for (OpOperand &operand : op->getOpOperands()) {
        // What nothing folds and nothing is left of in LLVM hides that it is a constant.
        Value value = operand.get();
        if (value.getDefiningOp<LLVM::ConstantOp>() && !isImmediate(value.getType()))
          operand.set(LLVM::FreezeOp::create(b, op.getLoc(), value));
      }
    });
  }

private:
  static void takePredicate(NVVM::InlinePtxOp op) {
    Value predicate = op.getPredicate();
    if (!predicate)
      return;
    size_t number = op.getReadWriteArgs().size() + op.getNumResults() + op.getReadOnlyArgs().size();
    op.setPtxCode("@$" + std::to_string(number) + " " + op.getPtxCode().str());
    op.getPredicateMutable().clear();
    op.getReadOnlyArgsMutable().append(predicate);
  }
};

} // namespace

void registerInlineConstantsPass() { PassRegistration<InlineConstants>(); }

} // namespace offload
