//===- inline_constants.cpp - offload-inline-constants --------------------===//
//
// MLIR 22 writes constant operands of inline PTX into its text. Only integers have a form there: a predicate
// became `@-1`, which the assembler refuses, and floats were refused by LLVM. They go through registers.
//
// MLIR numbers a predicate as if there were no results. It becomes an operand like others.
//
// A text without words names what the one behind it changes (see offload-name-changed). It becomes an
// assembly, by which offload-repair-lowered knows it.
//
//===----------------------------------------------------------------------===//

#include "names.h"
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

bool hasRegister(Type type) {
  if (!type.isIntOrFloat())
    return true; // which vectors and pointers do is the lowering's to say
  return type.isInteger(1) || type.isInteger(16) || type.isInteger(32) || type.isInteger(64) ||
         type.isF32() || type.isF64();
}

LogicalResult checkTypes(NVVM::InlinePtxOp op) {
  auto check = [&](Value value) -> LogicalResult {
    bool isText = value.getDefiningOp<LLVM::ConstantOp>() && isImmediate(value.getType());
    if (isText || hasRegister(value.getType()))
      return success();
    return op.emitError("'nvvm.inline_ptx' has a value of ")
           << value.getType() << ", and PTX has no register for it: give it one of 16, 32 or 64 bits";
  };
  return success(llvm::all_of(op->getOperands(), [&](Value value) { return succeeded(check(value)); }) &&
                 llvm::all_of(op->getResults(), [&](Value value) { return succeeded(check(value)); }));
}

void makeAssembly(NVVM::InlinePtxOp named) {
  OpBuilder b(named);
  auto assembly = LLVM::InlineAsmOp::create(b, named.getLoc(), named.getResultTypes(),
                                            named.getReadOnlyArgs(), "", "=r,0", /*has_side_effects=*/true,
                                            /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                            LLVM::AsmDialectAttr(), ArrayAttr());
  assembly->setAttr(kChanged, b.getUnitAttr());
  named->replaceAllUsesWith(assembly);
  named->erase();
}

struct InlineConstants : public PassWrapper<InlineConstants, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineConstants)

  StringRef getArgument() const final { return "offload-inline-constants"; }
  StringRef getDescription() const final {
    return "Keep constants that are no integers out of the text of inline PTX";
  }

  void runOnOperation() final {
    auto prepared = getOperation()->walk([&](NVVM::BasicPtxBuilderInterface op) {
      if (auto text = dyn_cast<NVVM::InlinePtxOp>(op.getOperation())) {
        if (failed(checkTypes(text)))
          return WalkResult::interrupt();
        if (text->hasAttr(kChanged)) {
          makeAssembly(text);
          return WalkResult::advance();
        }
        takePredicate(text);
      }
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
