//===- plain_declarations.cpp - offload-plain-declarations ----------------===//
//
// A function that a gpu.module declares is one that --link brings, under its own name. MLIR's GPU lowerings
// give every function a C interface, so that a call of `f` ends at `_mlir_ciface_f`. That name is needed
// where memrefs are passed (by descriptor); where the interface has the very type of the function, the
// function is called by its own name.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct PlainDeclarations : public PassWrapper<PlainDeclarations, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlainDeclarations)

  StringRef getArgument() const final { return "offload-plain-declarations"; }
  StringRef getDescription() const final {
    return "Call declared functions without memrefs by their own names";
  }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    for (auto interface : llvm::make_early_inc_range(getOperation().getOps<LLVM::LLVMFuncOp>())) {
      StringRef name = interface.getName();
      if (!interface.isExternal() || !name.consume_front(kInterface))
        continue;
      auto wrapper = symbols.lookup<LLVM::LLVMFuncOp>(name);
      if (!wrapper || wrapper.isExternal() || wrapper.getFunctionType() != interface.getFunctionType())
        continue;
      wrapper.getBody().getBlocks().clear();
      wrapper.setLinkage(LLVM::Linkage::External);
      symbols.erase(interface);
    }
  }
};

} // namespace

void registerPlainDeclarationsPass() { PassRegistration<PlainDeclarations>(); }

} // namespace offload
