//===- finish_kernels.cpp - offload-finish-kernels ------------------------===//
//
// The end of the way to kernels: refuses parallel loops that no pass could turn into a kernel, which would
// otherwise run on the host, one iteration after the other, on memory that may not be the host's; and gives
// the kernels of a program that was outlined elsewhere, where all of a function's have one name, the names of
// their modules, so that each can be called by its own.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace offload {
namespace {

struct FinishKernels : public PassWrapper<FinishKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FinishKernels)

  StringRef getArgument() const final { return "offload-finish-kernels"; }
  StringRef getDescription() const final { return "Check and name what became kernels"; }

  void runOnOperation() final {
    if (!everyLoopIsAKernel())
      return signalPassFailure();
    nameKernels();
  }

  bool everyLoopIsAKernel() {
    return !getOperation()
                ->walk<WalkOrder::PreOrder>([](Operation *op) {
                  if (isa<gpu::GPUModuleOp>(op))
                    return WalkResult::skip();
                  if (!isa<scf::ParallelOp>(op))
                    return WalkResult::advance();
                  op->emitError(
                      "this parallel loop cannot become a kernel: its body must not have effects outside the "
                      "innermost loop, and its bounds must not depend on what it computes");
                  return WalkResult::interrupt();
                })
                .wasInterrupted();
  }

  void nameKernels() {
    llvm::StringMap<unsigned> count;
    SmallVector<gpu::GPUFuncOp> kernels;
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>())
      for (auto kernel : device.getOps<gpu::GPUFuncOp>())
        if (kernel.isKernel()) {
          ++count[kernel.getName()];
          kernels.push_back(kernel);
        }
    for (gpu::GPUFuncOp kernel : kernels) {
      auto device = kernel->getParentOfType<gpu::GPUModuleOp>();
      if (device->hasAttr(kReady))
        continue; // compiled code has the name
      // Outlining calls modules as their kernels, and numbers them; others have the author's names, which
      // stay.
      StringRef number = device.getName();
      bool outlined = number.consume_front(kernel.getName()) && number.consume_front("_") &&
                      !number.empty() && llvm::all_of(number, llvm::isDigit);
      if (count[kernel.getName()] < 2 || !outlined || count[device.getName()] > 0 ||
          SymbolTable::lookupSymbolIn(device, device.getName()))
        continue;
      auto from = SymbolRefAttr::get(device.getNameAttr(), {FlatSymbolRefAttr::get(kernel.getNameAttr())});
      auto to = SymbolRefAttr::get(device.getNameAttr(), {FlatSymbolRefAttr::get(device.getNameAttr())});
      getOperation()->walk([&](gpu::LaunchFuncOp launch) {
        if (launch.getKernel() == from)
          launch.setKernelAttr(to);
      });
      kernel.setName(device.getName());
    }
  }
};

} // namespace

void registerFinishKernelsPass() { PassRegistration<FinishKernels>(); }

} // namespace offload
