//===- inline_constants.cpp - offload-inline-constants --------------------===//
//
// MLIR 22 writes constant operands of inline PTX into its text. Only integers have a form there: a predicate
// became `@-1`, which the assembler refuses, and floats were refused by LLVM. They go through registers.
//
// MLIR numbers a predicate as if there were no results. It becomes an operand like others.
//
// What the text changes (rw) MLIR replaces wherever it is used, in front of the text, too, and where it is
// one value and there are no results, nowhere; and it gives it to the registers of other operands. It gets a
// name of its own that only what follows uses, by which offload-repair-lowered knows it. A constant is
// refused: equal ones are one value.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
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
    auto &dominance = getAnalysis<DominanceInfo>();
    auto prepared = getOperation()->walk([&](NVVM::BasicPtxBuilderInterface op) {
      if (auto text = dyn_cast<NVVM::InlinePtxOp>(op.getOperation());
          text && failed(prepare(text, dominance)))
        return WalkResult::interrupt();
      OpBuilder b(op);
      for (OpOperand &operand : op->getOpOperands()) {
        // What nothing folds and nothing is left of in LLVM hides that it is a constant.
        Value value = operand.get();
        if (value.getDefiningOp<LLVM::ConstantOp>() && !isImmediate(value.getType()))
          operand.set(LLVM::FreezeOp::create(b, op.getLoc(), value));
      }
      return WalkResult::advance();
    });
    if (prepared.wasInterrupted())
      signalPassFailure();
  }

private:
  static LogicalResult prepare(NVVM::InlinePtxOp op, DominanceInfo &dominance) {
    OpBuilder b(op);
    if (Value predicate = op.getPredicate()) {
      size_t number = op.getReadWriteArgs().size() + op.getNumResults() + op.getReadOnlyArgs().size();
      op.setPtxCode("@$" + std::to_string(number) + " " + op.getPtxCode().str());
      op.getPredicateMutable().clear();
      op.getReadOnlyArgsMutable().append(predicate);
    }
    for (OpOperand &operand : op.getReadWriteArgsMutable()) {
      Value value = operand.get();
      if (matchPattern(value, m_Constant()))
        return op.emitError(
            "'nvvm.inline_ptx' changes a constant (rw), and all that are equal are one value: "
            "load or compute what it changes, or let it have a result");
      auto named = LLVM::FreezeOp::create(b, op.getLoc(), value);
      named->setAttr(kChanged, b.getUnitAttr());
      value.replaceUsesWithIf(named, [&](OpOperand &use) {
        return &use == &operand || (use.getOwner() != op && dominance.properlyDominates(op, use.getOwner()));
      });
    }
    return success();
  }
};

} // namespace

void registerInlineConstantsPass() { PassRegistration<InlineConstants>(); }

} // namespace offload
