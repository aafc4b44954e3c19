//===- prepare_device.cpp - offload-prepare-device ------------------------===//
//
// The first pass of every target's device pipeline: rewrites operations of the gpu dialect whose lowerings
// upstream are missing, differ between the vendors or know some types only, into few that all targets lower
// right. Its options say which target it is; what that means stands in lanes.cpp.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "device/active_lanes.h"
#include "passes.h"

#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct PrepareDevice : public PassWrapper<PrepareDevice, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareDevice)

  PrepareDevice() = default;
  PrepareDevice(const PrepareDevice &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-prepare-device"; }
  StringRef getDescription() const final {
    return "Rewrite gpu operations into those that every target lowers right";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, cf::ControlFlowDialect, complex::ComplexDialect, LLVM::LLVMDialect,
                    memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
    addVendorDialect(registry, target);
  }

  void runOnOperation() final {
    gpu::GPUModuleOp module = getOperation();
    std::unique_ptr<Lanes> lanes = makeLanes(target, subgroupSize, chip);
    if (!lanes) {
      module.emitError() << "offload-prepare-device: no target '" << target << "' with subgroups of "
                         << subgroupSize;
      return signalPassFailure();
    }
    settleArgumentsByValue(module, target);
    if (failed(refuseRecursion(module)) || failed(lowerLaneZeroRegions(module, *lanes)) ||
        failed(lowerReductions(module, *lanes)) || failed(lowerShuffles(module, *lanes)) ||
        failed(lowerIds(module, *lanes)) || failed(lowerPrints(module, *lanes)) ||
        failed(lowerAtomics(module, target)) || failed(lowerFragments(module)))
      return signalPassFailure();
    keepBranchesApart(module, target);
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name in the registry")};
  Option<std::string> chip{*this, "chip", llvm::cl::desc("its chip")};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("threads of a subgroup"),
                                llvm::cl::init(32)};
};

} // namespace

void registerPrepareDevicePass() { PassRegistration<PrepareDevice>(); }

} // namespace offload
