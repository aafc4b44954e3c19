//===- gather_kernels.cpp - offload-gather-kernels ------------------------===//
//
// Compilers that lower to the LLVM dialect for one vendor, as Triton's does, write their kernels into the
// program's own module and mark them as that vendor's. Here kernels are in a gpu.module: these get one, with
// what they use by name. What host code uses, too, is copied for them, but for memory that changes, which
// would be another one in each. What nobody uses goes: it may be of either side.
//
//===----------------------------------------------------------------------===//

#include "input/mark_kernels.h"
#include "passes.h"
#include "program.h"

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
    addUsed(gathered, symbols);
    llvm::SetVector<Operation *> ofHost;
    for (Operation &op : *program.getBody())
      if (isList(&op))
        addOfHost(op, gathered, symbols, ofHost);
      else if (!gathered.contains(&op) && isSeen(&op))
        ofHost.insert(&op);
    addUsed(ofHost, symbols);
    for (auto [i, op] : llvm::enumerate(gathered))
      if (ofHost.contains(op) && failed(checkShared(op, i < kernels)))
        return signalPassFailure();

    OpBuilder b = OpBuilder::atBlockEnd(program.getBody());
    auto device = gpu::GPUModuleOp::create(b, gathered.front()->getLoc(), kModuleName);
    symbols.insert(device); // which gives it a name of its own
    program->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), b.getUnitAttr());
    for (Operation &op : llvm::make_early_inc_range(*program.getBody())) {
      if (&op == device || (ofHost.contains(&op) && !gathered.contains(&op)))
        continue;
      if (!gathered.contains(&op))
        op.erase();
      else if (ofHost.contains(&op))
        device.getBody()->push_back(op.clone());
      else
        op.moveBefore(device.getBody(), device.getBody()->end());
    }
  }

  /// Names that have to be there whether anything uses them or not.
  static bool isList(Operation *op) {
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    return global && (global.getName() == "llvm.used" || global.getName() == "llvm.compiler.used");
  }

  /// Whether others may use it: by its name, or in a section, as that of what runs at the start.
  static bool isSeen(Operation *op) {
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      return !isLocal(function.getLinkage()) || function.getSection();
    auto global = dyn_cast<LLVM::GlobalOp>(op);
    return !global || !isLocal(global.getLinkage()) || global.getSection();
  }

  /// A list goes with what kernels use: these are kept as kernels are. One of host code alone stays.
  static void addOfHost(Operation &list, const llvm::SetVector<Operation *> &gathered,
                        const SymbolTable &symbols, llvm::SetVector<Operation *> &ofHost) {
    llvm::SetVector<Operation *> listed;
    listed.insert(&list);
    addUsed(listed, symbols);
    if (llvm::none_of(listed, [&](Operation *op) { return gathered.contains(op); }))
      ofHost.insert(&list);
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
