//===- known_sizes.cpp - offload-known-sizes ------------------------------===//
//
// A gpu.func says known_block_size, known_grid_size and known_cluster_size; functions of other dialects, and
// what older versions of MLIR outlined, say the same with `gpu.` in front. On a gpu.func that is the
// same here, where its launches do not speak against it: nothing but the lowering reads it in this form,
// which believes it even then.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace offload {
namespace {

bool isContradicted(DenseI32ArrayAttr known, gpu::KernelDim3 sizes) {
  return llvm::any_of(llvm::zip_equal(known.asArrayRef(), std::array{sizes.x, sizes.y, sizes.z}),
                      [](auto pair) {
                        Value size = std::get<1>(pair); // null where a launch leaves it to the kernel
                        std::optional<int64_t> given = size ? getConstantIntValue(size) : std::nullopt;
                        return given && *given != std::get<0>(pair);
                      });
}

struct KnownSizes : public PassWrapper<KnownSizes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KnownSizes)

  StringRef getArgument() const final { return "offload-known-sizes"; }
  StringRef getDescription() const final { return "Sizes that kernels know have one name"; }

  void runOnOperation() final {
    llvm::MapVector<Operation *, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation()->walk([&](gpu::GPUFuncOp kernel) { launches[kernel]; });
    getOperation()->walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernelAttr());
      if (kernel)
        launches[kernel].push_back(launch);
    });
    for (auto &[op, of] : launches) {
      auto kernel = cast<gpu::GPUFuncOp>(op);
      auto take = [&, &of = of](StringRef name, auto sizesOf) -> DenseI32ArrayAttr {
        auto known = dyn_cast_or_null<DenseI32ArrayAttr>(kernel->removeDiscardableAttr(name));
        auto speaksAgainst = [&](gpu::LaunchFuncOp launch) { return isContradicted(known, sizesOf(launch)); };
        return known && known.size() == 3 && llvm::none_of(of, speaksAgainst) ? known : DenseI32ArrayAttr();
      };
      auto block =
          take("gpu.known_block_size", [](auto launch) { return launch.getBlockSizeOperandValues(); });
      auto grid = take("gpu.known_grid_size", [](auto launch) { return launch.getGridSizeOperandValues(); });
      auto cluster = take("gpu.known_cluster_size", [](auto launch) {
        return launch.hasClusterSize() ? launch.getClusterSizeOperandValues() : gpu::KernelDim3();
      });
      if (block && !kernel.getKnownBlockSizeAttr())
        kernel.setKnownBlockSizeAttr(block);
      if (grid && !kernel.getKnownGridSizeAttr())
        kernel.setKnownGridSizeAttr(grid);
      if (cluster && !kernel.getKnownClusterSizeAttr())
        kernel.setKnownClusterSizeAttr(cluster);
    }
  }
};

} // namespace

void registerKnownSizesPass() { PassRegistration<KnownSizes>(); }

} // namespace offload
