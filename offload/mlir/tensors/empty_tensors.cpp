//===- empty_tensors.cpp - offload-eliminate-empty-tensors ----------------===//
//
// What is inserted into a tensor is made in its place there, where it begins with an empty one: that is
// MLIR's eliminate-empty-tensors. To tell, it analyses the whole program as bufferization does again after
// it: of long functions, the half of what that takes. Most programs have no such insertion, and need none of
// it.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SubsetOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Looks for empty tensors among what others are made of, in any way; each value is seen once.
class Origins {
public:
  bool haveEmpty(Value tensor) {
    add(tensor);
    while (!waiting.empty() && !found)
      follow(waiting.pop_back_val());
    return found;
  }

private:
  void add(Value value) {
    if (isa<TensorType>(value.getType()) && seen.insert(value).second)
      waiting.push_back(value);
  }

  void follow(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op) {
      Block *block = cast<BlockArgument>(value).getOwner();
      op = block->getParentOp();
      if (!block->isEntryBlock()) { // from anywhere
        found = true;
        return;
      }
      if (isa<FunctionOpInterface>(op))
        return;
    }
    found |= isa<tensor::EmptyOp>(op);
    for (Value operand : op->getOperands())
      add(operand);
    // What a loop hands on, and what a region ends with.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator())
          addEnd(block.getTerminator());
  }

  void addEnd(Operation *end) {
    for (Value operand : end->getOperands())
      add(operand);
    for (Region &region : end->getRegions()) // insertions of all threads
      for (Operation &each : region.getOps())
        for (Value operand : each.getOperands())
          add(operand);
  }

  llvm::DenseSet<Value> seen;
  SmallVector<Value> waiting;
  bool found = false;
};

struct EliminateEmptyTensors : public PassWrapper<EliminateEmptyTensors, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EliminateEmptyTensors)

  StringRef getArgument() const final { return "offload-eliminate-empty-tensors"; }
  StringRef getDescription() const final { return "Make what is inserted into tensors in its place there"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<bufferization::BufferizationDialect, tensor::TensorDialect>();
  }

  void runOnOperation() final {
    Origins origins;
    bool needed = getOperation()
                      ->walk([&](SubsetInsertionOpInterface insertion) {
                        return origins.haveEmpty(insertion.getSourceOperand().get()) ? WalkResult::interrupt()
                                                                                     : WalkResult::advance();
                      })
                      .wasInterrupted();
    OpPassManager eliminates(ModuleOp::getOperationName());
    eliminates.addPass(bufferization::createEmptyTensorEliminationPass());
    if (needed && failed(runPipeline(eliminates, getOperation())))
      signalPassFailure();
  }
};

} // namespace

void registerEliminateEmptyTensorsPass() { PassRegistration<EliminateEmptyTensors>(); }

} // namespace offload
