//===- descriptors.cpp - offload-descriptor-arguments, -lower-descriptors -===//
//
// A TMA descriptor is made by host code and handed to a kernel. Its type belongs to a dialect whose lowering
// knows operations but no functions: a kernel that takes one would not be lowered. The first pass makes such
// arguments pointers, on both sides of the launch; the second lowers the making of one to a call of the
// runtime, in host code alone.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

bool isDescriptor(Type type) { return isa<nvgpu::TensorMapDescriptorType>(type); }

struct DescriptorArguments : public PassWrapper<DescriptorArguments, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DescriptorArguments)

  StringRef getArgument() const final { return "offload-descriptor-arguments"; }
  StringRef getDescription() const final { return "Hand descriptors to kernels as pointers"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<LLVM::LLVMDialect>(); }

  void runOnOperation() final {
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    getOperation()->walk([&](gpu::GPUFuncOp function) {
      Block &entry = function.getBody().front();
      SmallVector<Type> types(function.getArgumentTypes());
      OpBuilder b = OpBuilder::atBlockBegin(&entry);
      for (unsigned i = 0; i < types.size(); ++i) {
        if (!isDescriptor(types[i]))
          continue;
        BlockArgument argument = entry.getArgument(i);
        auto cast = UnrealizedConversionCastOp::create(b, function.getLoc(), types[i], ValueRange{argument});
        argument.replaceAllUsesExcept(cast.getResult(0), cast);
        argument.setType(types[i] = pointer);
      }
      function.setFunctionType(FunctionType::get(&getContext(), types, function.getResultTypes()));
    });
    getOperation()->walk([&](gpu::LaunchFuncOp launch) {
      OpBuilder b(launch);
      for (OpOperand &operand : launch->getOpOperands())
        if (isDescriptor(operand.get().getType()))
          operand.set(
              UnrealizedConversionCastOp::create(b, launch.getLoc(), pointer, operand.get()).getResult(0));
    });
  }
};

struct LowerDescriptors : public PassWrapper<LowerDescriptors, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerDescriptors)

  StringRef getArgument() const final { return "offload-lower-descriptors"; }
  StringRef getDescription() const final { return "Make descriptors by calls of the runtime"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    LLVMTypeConverter converter(&getContext());
    converter.addConversion([](nvgpu::TensorMapDescriptorType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    RewritePatternSet patterns(&getContext());
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    // MLIR's pass converts the types of loops as well, and refuses those that carry tokens.
    ConversionTarget target(getContext());
    target.addIllegalOp<nvgpu::TmaCreateDescriptorOp>();
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect, memref::MemRefDialect>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void registerDescriptorPasses() {
  PassRegistration<DescriptorArguments>();
  PassRegistration<LowerDescriptors>();
}

} // namespace offload
