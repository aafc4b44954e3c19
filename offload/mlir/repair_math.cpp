//===- repair_math.cpp - offload-repair-math, offload-repair-shuffles -----===//
//
// Two of MLIR's lowerings give wrong results; these passes take the operations out of their hands.
//
//  * convert-math-to-llvm makes expm1(x) exp(x) - 1 and log1p(x) log(1 + x), which loses what the functions
//  are for:
//    precision near 0. offload-repair-math makes them calls of libm before.
//  * gpu.shuffle on AMD takes the width for a power of two. gpu.all_reduce passes the number of active lanes,
//  which is
//    none in the last part of many blocks. offload-repair-shuffles expands all_reduce and then shuffles over
//    32 lanes, with `valid` computed from the width that was asked for.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace offload {
namespace {

struct RepairMath : public PassWrapper<RepairMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairMath)

  StringRef getArgument() const final { return "offload-repair-math"; }
  StringRef getDescription() const final { return "Make expm1 and log1p calls of libm"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, func::FuncDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::ExpM1Op, math::Log1pOp>();
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

constexpr int64_t kSegment = 32; // what all_reduce takes for a subgroup

void widen(gpu::ShuffleOp op) {
  APInt width;
  if (matchPattern(op.getWidth(), m_ConstantInt(&width)) && llvm::isPowerOf2_64(width.getZExtValue()))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) { return arith::ConstantIntOp::create(b, loc, i32, value); };
  Value lane = gpu::LaneIdOp::create(b, loc, b.getIndexType(), /*upper_bound=*/IntegerAttr());
  lane = arith::RemUIOp::create(b, loc, arith::IndexCastUIOp::create(b, loc, i32, lane), constant(kSegment));
  Value source;
  switch (op.getMode()) {
  case gpu::ShuffleMode::XOR:
    source = arith::XOrIOp::create(b, loc, lane, op.getOffset());
    break;
  case gpu::ShuffleMode::UP:
    source = arith::SubIOp::create(b, loc, lane, op.getOffset());
    break;
  case gpu::ShuffleMode::DOWN:
    source = arith::AddIOp::create(b, loc, lane, op.getOffset());
    break;
  case gpu::ShuffleMode::IDX:
    source = op.getOffset();
    break;
  }
  Value valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, source, op.getWidth());
  auto whole =
      gpu::ShuffleOp::create(b, loc, op.getValue(), op.getOffset(), constant(kSegment), op.getMode());
  op.getShuffleResult().replaceAllUsesWith(whole.getShuffleResult());
  op.getValid().replaceAllUsesWith(valid);
  op.erase();
}

struct RepairShuffles : public PassWrapper<RepairShuffles, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairShuffles)

  StringRef getArgument() const final { return "offload-repair-shuffles"; }
  StringRef getDescription() const final { return "Expand all_reduce into shuffles of 32 lanes"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    populateGpuAllReducePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation()->walk([](gpu::ShuffleOp op) { widen(op); });
  }
};

} // namespace

void registerRepairPasses() {
  PassRegistration<RepairMath>();
  PassRegistration<RepairShuffles>();
}

} // namespace offload
