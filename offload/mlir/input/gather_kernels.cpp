//===- gather_kernels.cpp - offload-gather-kernels ------------------------===//
//
// Compilers that lower to the LLVM dialect for one vendor, as Triton's does, write their kernels into the
// program's own module and mark them as that vendor's. Here kernels are in a gpu.module: these get one, with
// what they use by name, and what the program keeps to itself and host code does not use. What host code
// uses, too, is copied for them, but for memory that changes, which would be another one in each.
//
//===----------------------------------------------------------------------===//

#include "input/mark_kernels.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace offload {
namespace {

constexpr llvm::StringLiteral kModuleName = "kernels";

struct GatherKernels : public PassWrapper<GatherKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatherKernels)

  StringRef getArgument() const final { return "offload-gather-kernels"; }
  StringRef getDescription() const final {
    return "Give kernels of the LLVM dialect that stand in the program's module a gpu.module";
  }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<gpu::GPUDialect>(); }

  void runOnOperation() final {
    ModuleOp program = getOperation();
    SymbolTable symbols(program);
    llvm::SetVector<Operation *> gathered;
    for (auto function : program.getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal() && isMarkedKernel(function))
        gathered.insert(function);
    size_t kernels = gathered.size();
    if (kernels == 0)
      return;
    for (StringRef list : {"llvm.used", "llvm.compiler.used"})
      if (Operation *kept = symbols.lookup(list)) // names that may go into the other module
        symbols.erase(kept);
    addUsed(gathered, symbols);
    llvm::SetVector<Operation *> ofHost;
    for (Operation &op : *program.getBody())
      if (!gathered.contains(&op) && !isOfProgramAlone(&op))
        ofHost.insert(&op);
    addUsed(ofHost, symbols);
    for (Operation &op : *program.getBody())
      if (!ofHost.contains(&op))
        gathered.insert(&op);
    addUsed(gathered, symbols);
    for (auto [i, op] : llvm::enumerate(gathered))
      if (ofHost.contains(op) && failed(checkShared(op, i < kernels)))
        return signalPassFailure();

    OpBuilder b = OpBuilder::atBlockEnd(program.getBody());
    auto device = gpu::GPUModuleOp::create(b, gathered.front()->getLoc(), kModuleName);
    symbols.insert(device); // which gives it a name of its own
    program->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), b.getUnitAttr());
    for (Operation &op : llvm::make_early_inc_range(*program.getBody())) {
      if (!gathered.contains(&op))
        continue;
      if (ofHost.contains(&op))
        device.getBody()->push_back(op.clone());
      else
        op.moveBefore(device.getBody(), device.getBody()->end());
    }
  }

  static bool isOfProgramAlone(Operation *op) {
    auto isLocal = [](LLVM::Linkage linkage) {
      return linkage == LLVM::Linkage::Internal || linkage == LLVM::Linkage::Private;
    };
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    return (function && isLocal(function.getLinkage())) || (global && isLocal(global.getLinkage()));
  }

  /// Adds what these use by name, and what that uses.
  static void addUsed(llvm::SetVector<Operation *> &found, const SymbolTable &symbols) {
    for (size_t i = 0; i < found.size(); ++i)
      if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(found[i]))
        for (SymbolTable::SymbolUse use : *uses)
          if (Operation *used = symbols.lookup(use.getSymbolRef().getRootReference()))
            found.insert(used);
  }

  /// What host code uses besides kernels.
  static LogicalResult checkShared(Operation *op, bool isKernel) {
    if (isKernel)
      return op->emitError(
          "host code calls this kernel or takes its address: give it a gpu.module, and start "
          "it with gpu.launch_func");
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    if (!global || global.getConstant())
      return success();
    return global.emitError(
        "kernels and host code use this memory by name, and each would have its own: pass "
        "its address to the kernels");
  }
};

} // namespace

void registerGatherKernelsPass() { PassRegistration<GatherKernels>(); }

} // namespace offload
