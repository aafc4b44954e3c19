//===- mark_kernels.cpp - offload-mark-kernels ----------------------------===//
//
// Compilers that lower to the LLVM dialect themselves mark kernels for one vendor: with an attribute
// `*.kernel` of its dialect, or a calling convention `*_kernelcc`. Here kernels are what the gpu dialect
// calls so; others would be functions that nobody can launch. Drivers find kernels by their names: these are
// seen from outside, also where C++ made them of a template. What processor code is for, and how functions
// are called there, each target says, not what the compiler was told that made the program.
//
//===----------------------------------------------------------------------===//

#include "input/mark_kernels.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr llvm::StringLiteral kMark = ".kernel"; // after the name of the dialect

bool isCalledAsKernel(LLVM::LLVMFuncOp function) {
  return LLVM::cconv::stringifyCConv(function.getCConv()).ends_with("_kernelcc");
}

/// Takes the marks of vendors from a function.
void unmark(LLVM::LLVMFuncOp function) {
  SmallVector<StringAttr> marks;
  for (NamedAttribute each : function->getDiscardableAttrs())
    if (each.getName() != gpu::GPUDialect::getKernelFuncAttrName() &&
        each.getName().getValue().ends_with(kMark))
      marks.push_back(each.getName());
  for (StringAttr mark : marks)
    function->removeDiscardableAttr(mark);
  if (isCalledAsKernel(function))
    function.setCConv(LLVM::CConv::C);
}

void showOutside(LLVM::LLVMFuncOp kernel) {
  if (kernel.isExternal())
    return;
  kernel.setLinkage(LLVM::Linkage::External);
  kernel.setVisibility_(LLVM::Visibility::Default);
  kernel.removeComdatAttr();
}

/// Functions that kernels call are called as each target does it.
template <typename Function> void forgetConvention(Function function) {
  if (!llvm::is_contained({LLVM::CConv::C, LLVM::CConv::Fast, LLVM::CConv::Cold}, function.getCConv()))
    function.setCConv(LLVM::CConv::C);
}

void forgetProcessor(LLVM::LLVMFuncOp function) {
  function.removeTargetCpuAttr();
  function.removeTuneCpuAttr();
  function.removeTargetFeaturesAttr();
  ArrayAttr passed = function.getPassthroughAttr();
  if (!passed)
    return;
  auto kept = llvm::filter_to_vector(passed, [](Attribute each) {
    auto pair = dyn_cast<ArrayAttr>(each);
    auto name = pair && !pair.empty() ? dyn_cast<StringAttr>(pair[0]) : StringAttr();
    return !name || (name != "target-cpu" && name != "tune-cpu" && name != "target-features");
  });
  function.setPassthroughAttr(ArrayAttr::get(function.getContext(), kept));
}

struct MarkKernels : public PassWrapper<MarkKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkKernels)

  StringRef getArgument() const final { return "offload-mark-kernels"; }
  StringRef getDescription() const final {
    return "Mark kernels of the LLVM dialect as the gpu dialect does";
  }

  void runOnOperation() final {
    StringRef mark = gpu::GPUDialect::getKernelFuncAttrName();
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>())
      for (auto function : device.getOps<LLVM::LLVMFuncOp>()) {
        if (isMarkedKernel(function)) {
          unmark(function);
          function->setAttr(mark, UnitAttr::get(&getContext()));
          showOutside(function);
        }
        forgetProcessor(function);
        forgetConvention(function);
        function.walk(forgetConvention<LLVM::CallOp>);
      }
  }
};

} // namespace

bool isMarkedKernel(LLVM::LLVMFuncOp function) {
  return isCalledAsKernel(function) ||
         llvm::any_of(function->getDiscardableAttrs(),
                      [](const NamedAttribute &each) { return each.getName().getValue().ends_with(kMark); });
}

void registerMarkKernelsPass() { PassRegistration<MarkKernels>(); }

} // namespace offload
