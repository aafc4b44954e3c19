//===- serial_functions.cpp - offload-serial-functions ---------------------===//
//
// A function with parallel loops that is called inside of another parallel loop, or of a launch: each thread
// of its kernel calls it, and runs its loops from end to end. It calls a copy in which they are scf.for; what
// other host code calls keeps its loops, which become kernels.
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"
#include "passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace offload {
namespace {

struct SerialFunctions : public PassWrapper<SerialFunctions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SerialFunctions)

  StringRef getArgument() const final { return "offload-serial-functions"; }
  StringRef getDescription() const final {
    return "Let parallel loops call functions whose own loops are not parallel";
  }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    DenseMap<func::FuncOp, func::FuncOp> copies;
    SmallVector<Operation *> kernels;
    llvm::append_range(kernels, outermostParallel(getOperation()));
    // Some were linalg's loops.
    getOperation()->walk([&](gpu::LaunchOp launch) { kernels.push_back(launch); });
    for (Operation *kernel : kernels)
      callCopies(kernel, symbols, copies);
    // Nobody would launch the kernels of what only such loops called.
    SmallVector<func::FuncOp> copied(llvm::make_first_range(copies));
    auto isUnused = [&](func::FuncOp function) {
      return function.isPrivate() && SymbolTable::symbolKnownUseEmpty(function, getOperation());
    };
    for (auto *unused = llvm::find_if(copied, isUnused); unused != copied.end();
         unused = llvm::find_if(copied, isUnused)) {
      symbols.erase(*unused);
      copied.erase(unused);
    }
  }

  static void callCopies(Operation *root, SymbolTable &symbols,
                         DenseMap<func::FuncOp, func::FuncOp> &copies) {
    SmallVector<func::CallOp> calls;
    root->walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!function || (!copies.contains(function) && !hasLoops(function, symbols)))
        continue;
      func::FuncOp copy = copies.lookup(function);
      if (!copy) {
        copy = function.clone();
        copy.setPrivate();
        symbols.insert(copy);
        copies[function] = copy; // before its own calls: one may be of itself
        copy.walk([](scf::ParallelOp loop) { makeSerial(loop); });
        callCopies(copy, symbols, copies);
      }
      call.setCallee(copy.getName());
    }
  }

  /// Whether the function, or one that it calls, has parallel loops.
  static bool hasLoops(func::FuncOp function, const SymbolTable &symbols) {
    SetVector<Operation *> reached;
    reached.insert(function);
    for (size_t i = 0; i < reached.size(); ++i) {
      bool has = false;
      reached[i]->walk([&](Operation *op) {
        has |= isa<scf::ParallelOp>(op);
        if (auto call = dyn_cast<func::CallOp>(op))
          if (Operation *callee = symbols.lookup<func::FuncOp>(call.getCallee()))
            reached.insert(callee);
      });
      if (has)
        return true;
    }
    return false;
  }
};

} // namespace

void registerSerialFunctionsPass() { PassRegistration<SerialFunctions>(); }

} // namespace offload
