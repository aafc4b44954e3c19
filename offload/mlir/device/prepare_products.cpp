//===- prepare_products.cpp - offload-prepare-products --------------------===//
//
// nvgpu.mma.sync of bf16: MLIR 22 has the instruction (nvvm.mma.sync), and does not lower the operation to
// it. Those of bytes that offload makes: MLIR's own lowering has sums end at the largest and the least
// number, where arith.addi runs over.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

void lower(nvgpu::MmaSyncOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto registersOf = [&](Value matrix) { // of 32 bits each
    SmallVector<Value> registers;
    auto one = VectorType::get(1, b.getI32Type());
    for (int64_t i = 0; i < cast<VectorType>(matrix.getType()).getDimSize(0); ++i) {
      Value several = vector::ExtractOp::create(b, loc, matrix, i);
      registers.push_back(
          vector::ExtractOp::create(b, loc, vector::BitCastOp::create(b, loc, one, several), 0));
    }
    return registers;
  };
  auto type = cast<VectorType>(op.getType());
  SmallVector<Value> sums;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    sums.push_back(vector::ExtractOp::create(b, loc, op.getMatrixC(), ArrayRef<int64_t>{i / 2, i % 2}));
  bool areBytes = type.getElementType().isInteger();
  auto result =
      LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(sums.size(), type.getElementType()));
  NVVM::MMATypes factor = areBytes ? NVVM::MMATypes::s8 : NVVM::MMATypes::bf16;
  auto overflow = areBytes ? std::optional(NVVM::MMAIntOverflow::wrapped) : std::nullopt;
  Value product =
      NVVM::MmaOp::create(b, loc, result, registersOf(op.getMatrixA()), registersOf(op.getMatrixB()), sums,
                          op.getMmaShapeAsArray(), std::nullopt, overflow, std::array{factor, factor},
                          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  Value matrix = op.getMatrixC();
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    matrix =
        vector::InsertOp::create(b, loc, LLVM::ExtractValueOp::create(b, loc, product, ArrayRef<int64_t>(i)),
                                 matrix, ArrayRef<int64_t>{i / 2, i % 2});
  op.replaceAllUsesWith(matrix);
  op.erase();
}

bool isOfBFloats(nvgpu::MmaSyncOp op) {
  return cast<VectorType>(op.getMatrixA().getType()).getElementType().isBF16() &&
         cast<VectorType>(op.getType()).getElementType().isF32();
}

struct PrepareProducts : public PassWrapper<PrepareProducts, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareProducts)

  StringRef getArgument() const final { return "offload-prepare-products"; }
  StringRef getDescription() const final {
    return "Make products of matrices of bf16, and of bytes, their instructions";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    getOperation()->walk([](nvgpu::MmaSyncOp op) {
      if (isOfBFloats(op) || op->hasAttr(kWraps))
        lower(op);
    });
  }
};

} // namespace

void registerPrepareProductsPass() { PassRegistration<PrepareProducts>(); }

} // namespace offload
