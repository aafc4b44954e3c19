//===- check_input.cpp - offload-check-input ------------------------------===//
//
// Refuses, before anything is changed, programs that no later step can take; the error stands at the
// operation in the author's file and says what to do.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

bool mentionsTensor(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return llvm::any_of(function.getArgumentTypes(), isTensor) ||
           llvm::any_of(function.getResultTypes(), isTensor);
  return llvm::any_of(op->getOperandTypes(), isTensor) || llvm::any_of(op->getResultTypes(), isTensor);
}

struct CheckInput : public PassWrapper<CheckInput, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckInput)

  StringRef getArgument() const final { return "offload-check-input"; }
  StringRef getDescription() const final { return "Refuse programs that cannot be compiled"; }

  void runOnOperation() final {
    bool refused =
        getOperation()
            ->walk<WalkOrder::PreOrder>([](Operation *op) {
              if (!mentionsTensor(op))
                return WalkResult::advance();
              op->emitError("tensors have no memory to hand to a kernel: bufferize the program first, for "
                            "instance with mlir-opt --one-shot-bufferize=bufferize-function-boundaries");
              return WalkResult::interrupt();
            })
            .wasInterrupted();
    if (refused)
      signalPassFailure();
  }
};

} // namespace

void registerCheckInputPass() { PassRegistration<CheckInput>(); }

} // namespace offload
