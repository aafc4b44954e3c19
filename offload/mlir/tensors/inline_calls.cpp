//===- inline_calls.cpp - offload-inline-calls ----------------------------===//
//
// A function that a thread calls, and that takes or gives tensors, becomes a part of the thread. By itself it
// would allocate what it returns, which threads cannot, and its caller could not say where to put it.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Inliner.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;

namespace offload {
namespace {

constexpr size_t kMostCalls = 1000; // functions that call others twice, and so on, become parts without end

bool isInThread(Operation *op) {
  return op->getParentOfType<scf::ForallOp>() || op->getParentOfType<scf::ParallelOp>();
}

bool hasTensor(func::CallOp call) {
  return llvm::any_of(call->getOperandTypes(), llvm::IsaPred<TensorType>) ||
         llvm::any_of(call->getResultTypes(), llvm::IsaPred<TensorType>);
}

struct Call {
  func::CallOp op;
  SmallVector<func::FuncOp> around; // the functions that it has come out of
};

struct InlineCalls : public PassWrapper<InlineCalls, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineCalls)

  StringRef getArgument() const final { return "offload-inline-calls"; }
  StringRef getDescription() const final {
    return "Make functions of tensors a part of threads that call them";
  }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    InlinerInterface interface(&getContext());
    InlinerConfig config;
    SmallVector<Call> calls;
    getOperation().walk([&](func::CallOp call) {
      if (isInThread(call) && hasTensor(call))
        calls.push_back({call, {}});
    });
    SetVector<func::FuncOp> called;
    for (size_t count = 0; !calls.empty() && count < kMostCalls; ++count) {
      Call next = calls.pop_back_val();
      func::CallOp call = next.op;
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function || !function.getBody().hasOneBlock())
        continue;
      if (llvm::is_contained(next.around, function) || function->isProperAncestor(call)) {
        call.emitError()
            << "'func.call' in a loop of threads leads to '" << call.getCallee()
            << "' again: a function of tensors becomes a part of threads that call it, so it must "
               "not call itself; write a loop";
        return signalPassFailure();
      }
      Operation *before = call->getPrevNode(), *behind = call->getNextNode();
      Block *block = call->getBlock();
      if (failed(inlineCall(interface, config.getCloneCallback(), call, function, &function.getBody())))
        continue;
      call.erase();
      called.insert(function);
      next.around.push_back(function);
      auto begin = before ? std::next(before->getIterator()) : block->begin();
      for (Operation &op : llvm::make_range(begin, behind->getIterator()))
        op.walk([&](func::CallOp each) {
          if (hasTensor(each))
            calls.push_back({each, next.around});
        });
    }
    // Those that nothing else calls would be compiled for nothing. The last one called may be all that calls
    // the ones before.
    for (bool erased = true; erased;) {
      erased = false;
      for (func::FuncOp function : called)
        if (function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, getOperation())) {
          called.remove(function);
          symbols.erase(function);
          erased = true;
          break;
        }
    }
  }
};

} // namespace

void registerInlineCallsPass() { PassRegistration<InlineCalls>(); }

} // namespace offload
