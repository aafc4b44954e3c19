//===- lower_nvgpu.cpp - offload-nvgpu-to-nvvm ----------------------------===//
//
// MLIR's own patterns for the nvgpu dialect. Its pass converts the types of loops and branches as well, and
// knows no fragments of gpu.subgroup_mma among them: a loop that sums up a product would be refused. They are
// left to the lowering of the gpu dialect here.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

/// Registers of a warpgroup's thread: for each 64 rows a struct of its part of the sums.
Type registersOf(nvgpu::WarpgroupAccumulatorType type) {
  VectorType sums = type.getFragmented();
  MLIRContext *context = type.getContext();
  // 128 threads have 64 rows; two of f16 go into a register.
  int64_t registers = sums.getDimSize(1) / (sums.getElementType().isF16() ? 4 : 2);
  SmallVector<Type> one(size_t(registers), sums.getElementType());
  Type rows = LLVM::LLVMStructType::getLiteral(context, one);
  SmallVector<Type> all(size_t(sums.getDimSize(0) / kWgmmaSizeM), rows);
  return LLVM::LLVMStructType::getLiteral(context, all);
}

/// Which thread of a warpgroup has which sums is the same in all warpgroups of a block: MLIR 22 counts warps
/// from the block's first one, and the second warpgroup would store below its rows.
struct StoreSums : public OpConversionPattern<nvgpu::WarpgroupMmaStoreOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(nvgpu::WarpgroupMmaStoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    VectorType type = op.getMatrixD().getType().getFragmented();
    if (!type.getElementType().isF32() && !type.getElementType().isInteger(32))
      return failure();
    constexpr int warps = 4, columns = 8, pair = 2, lanesOfRow = columns / pair;
    Location loc = op.getLoc();
    auto over = [&](Value value, int by) {
      return arith::DivUIOp::create(b, loc, value, constant32(b, loc, by)).getResult();
    };
    auto rest = [&](Value value, int by) {
      return arith::RemUIOp::create(b, loc, value, constant32(b, loc, by)).getResult();
    };
    auto times = [&](Value value, int by) {
      return arith::MulIOp::create(b, loc, value, constant32(b, loc, by)).getResult();
    };
    auto at = [&](Value begin, int64_t by) {
      Value index = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), begin);
      return arith::AddIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, by)).getResult();
    };
    Value thread = linearThread(b, op), lane = rest(thread, kWarpSize);
    Value row = times(rest(over(thread, kWarpSize), warps), kWgmmaSizeM / warps);
    row = arith::AddIOp::create(b, loc, row, over(lane, lanesOfRow));
    Value column = times(rest(lane, lanesOfRow), pair);
    for (int64_t part = 0; part < type.getDimSize(0) / kWgmmaSizeM; ++part)
      for (int64_t each = 0; each < type.getDimSize(1) / pair; ++each) {
        Value sum = LLVM::ExtractValueOp::create(b, loc, adaptor.getMatrixD(), ArrayRef<int64_t>{part, each});
        // Two neighbours, two in the row that is eight further down, then the next eight columns.
        memref::StoreOp::create(b, loc, sum, op.getDstMemref(),
                                ValueRange{at(row, part * kWgmmaSizeM + each / pair % 2 * columns),
                                           at(column, each / 4 * columns + each % pair)});
      }
    b.eraseOp(op);
    return success();
  }
};

/// Host code has copied a kernel's TMA descriptors into the device's memory, past the cache that TMA reads
/// them through: CUDA's programming guide wants a fence in each block before the first use.
void fenceDescriptors(gpu::GPUFuncOp kernel) {
  for (BlockArgument argument : kernel.getArguments())
    for (Operation *user : argument.getUsers()) {
      auto cast = dyn_cast<UnrealizedConversionCastOp>(user);
      if (!cast || cast->use_empty() || !isa<nvgpu::TensorMapDescriptorType>(cast.getType(0)))
        continue;
      OpBuilder b(kernel.getContext());
      b.setInsertionPointAfter(cast);
      nvgpu::TmaFenceOp::create(b, kernel.getLoc(), cast.getResult(0));
    }
}

struct LowerNvgpu : public PassWrapper<LowerNvgpu, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerNvgpu)

  StringRef getArgument() const final { return "offload-nvgpu-to-nvvm"; }
  StringRef getDescription() const final {
    return "Lower the nvgpu dialect, in loops that carry fragments, too";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect, NVVM::NVVMDialect>();
  }

  void runOnOperation() final {
    MLIRContext *context = &getContext();
    getOperation()->walk([](gpu::GPUFuncOp function) {
      if (function.isKernel())
        fenceDescriptors(function);
    });
    LLVMTypeConverter converter(context);
    nvgpu::populateCommonGPUTypeAndAttributeConversions(converter);
    Type word = IntegerType::get(context, 64);
    converter.addConversion([](gpu::MMAMatrixType type) -> Type { return type; });
    // Tokens of copies are nothing at run time; any type will do.
    converter.addConversion(
        [](nvgpu::DeviceAsyncTokenType type) -> Type { return IntegerType::get(type.getContext(), 32); });
    converter.addConversion([](nvgpu::WarpgroupAccumulatorType type) { return registersOf(type); });
    converter.addConversion([word](nvgpu::MBarrierTokenType) { return word; });
    converter.addConversion([word](nvgpu::WarpgroupMatrixDescriptorType) { return word; });
    converter.addConversion([&](nvgpu::MBarrierGroupType type) {
      return converter.convertType(nvgpu::getMBarrierMemrefType(context, type));
    });
    converter.addConversion([](nvgpu::TensorMapDescriptorType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    RewritePatternSet patterns(context);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    patterns.add<StoreSums>(converter, context, /*benefit=*/2);
    ConversionTarget target(*context);
    target
        .addLegalDialect<arith::ArithDialect, LLVM::LLVMDialect, memref::MemRefDialect, NVVM::NVVMDialect>();
    target.addLegalOp<gpu::ThreadIdOp, gpu::BlockDimOp>();
    // Loops carry other values as they are: here an index would get 64 bits, whatever it is to have.
    TypeConverter carried;
    carried.addConversion([&](Type type) {
      return isa<nvgpu::NVGPUDialect>(type.getDialect()) ? converter.convertType(type) : type;
    });
    scf::populateSCFStructuralTypeConversionsAndLegality(carried, patterns, target);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void registerLowerNvgpuPass() { PassRegistration<LowerNvgpu>(); }

} // namespace offload
