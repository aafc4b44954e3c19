//===- repair_math.cpp - offload-repair-math ------------------------------===//
//
// convert-math-to-llvm makes expm1(x) exp(x) - 1 and log1p(x) log(1 + x), which loses what the functions are
// for: precision near 0. This pass makes them calls of libm before. It makes rsqrt the root and the division
// of an exact result; the GPU's is approximate, and this pass says that these two may be. Whoever wrote arcp
// or ninf without afn did not ask for the processor's estimate, which is wrong for 0 and denormal numbers:
// these two flags are removed.
//
// A call of libm would be one of a kernel or helper of that name, which computes something else. These get
// other names here; offload-repair-lowered gives kernels theirs again.
//
//===----------------------------------------------------------------------===//

#include "input/library_names.h"
#include "names.h"
#include "passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

LogicalResult setNamesAside(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal() && isOfLibm(function.getName()) &&
        failed(symbols.rename(function, (function.getName() + kOwnFunction).str())))
      return failure();
  return success();
}

struct RepairMath : public PassWrapper<RepairMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairMath)

  StringRef getArgument() const final { return "offload-repair-math"; }
  StringRef getDescription() const final {
    return "Make expm1 and log1p calls of libm, rsqrt of f32 approximate";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, func::FuncDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>())
      if (failed(setNamesAside(module)))
        return signalPassFailure();
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalOp<math::ExpM1Op, math::Log1pOp>();
    RewritePatternSet patterns(&getContext());
    populateMathToLibmConversionPatterns(patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
    getOperation().walk([](math::RsqrtOp root) {
      using F = arith::FastMathFlags;
      F flags = root.getFastmath();
      if (getElementTypeOrSelf(root.getType()).isF32() && !bitEnumContainsAny(flags, F::afn))
        root.setFastmath(bitEnumClear(flags, F::arcp | F::ninf) | F::afn);
    });
  }
};

} // namespace

void registerRepairPasses() { PassRegistration<RepairMath>(); }

} // namespace offload
