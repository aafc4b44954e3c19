//===- equal_kernels.cpp - offload-join-equal-kernels ---------------------===//
//
// A model has one layer many times over, and with it the same loops: what was made of those are equal
// kernels, and each would be compiled for each chip. One is kept of those that a function launches, the first
// one, and all its launches are of that.
//
// Each function keeps its own, as they are called after it, and kernels that the author wrote stay: they may
// be launched by name. The latter are marked before loops become kernels (offload-mark-written-kernels);
// afterwards nobody could tell.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/DenseMap.h"

#include <unordered_map>

using namespace mlir;

namespace offload {
namespace {

constexpr llvm::StringLiteral kWritten = "offload.written";

struct MarkWrittenKernels : public PassWrapper<MarkWrittenKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkWrittenKernels)

  StringRef getArgument() const final { return "offload-mark-written-kernels"; }
  StringRef getDescription() const final { return "Mark modules of kernels that are no loops"; }

  void runOnOperation() final {
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>())
      device->setAttr(kWritten, UnitAttr::get(&getContext()));
  }
};

/// A failed assertion says where it stands.
bool tellsItsPlace(gpu::GPUFuncOp kernel) {
  return kernel.walk([](cf::AssertOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Its type, known sizes and attributes of arguments; not its name.
DictionaryAttr attributesOf(gpu::GPUFuncOp kernel) {
  NamedAttrList found(kernel->getAttrDictionary());
  found.erase(SymbolTable::getSymbolAttrName());
  return found.getDictionary(kernel.getContext());
}

/// The same for equal kernels.
size_t hashOf(gpu::GPUFuncOp kernel) {
  llvm::hash_code hash = hash_value(attributesOf(kernel));
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::ignoreHashValue,
                                                                   OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

/// What they use by name is the same: outlining copied it from the program's module.
bool equal(gpu::GPUFuncOp one, gpu::GPUFuncOp other, bool sameLines) {
  auto flags =
      sameLines || tellsItsPlace(one) ? OperationEquivalence::None : OperationEquivalence::IgnoreLocations;
  return attributesOf(one) == attributesOf(other) &&
         OperationEquivalence::isRegionEquivalentTo(&one.getBody(), &other.getBody(), flags);
}

struct JoinEqualKernels : public PassWrapper<JoinEqualKernels, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinEqualKernels)

  JoinEqualKernels() = default;
  JoinEqualKernels(const JoinEqualKernels &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-join-equal-kernels"; }
  StringRef getDescription() const final { return "Keep one of equal kernels that loops became"; }

  void runOnOperation() final {
    llvm::DenseMap<Attribute, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation().walk([&](gpu::LaunchFuncOp launch) { launches[launch.getKernel()].push_back(launch); });
    std::unordered_map<size_t, SmallVector<gpu::GPUFuncOp>> kept;
    SmallVector<gpu::GPUFuncOp> spare;
    for (auto device : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (device->removeAttr(kWritten))
        continue;
      for (auto kernel : device.getOps<gpu::GPUFuncOp>()) {
        auto ours = launches.find(nameOf(kernel));
        if (ours == launches.end())
          continue;
        SmallVector<gpu::GPUFuncOp> &alike = kept[hashOf(kernel)];
        auto *same = llvm::find_if(alike, [&](gpu::GPUFuncOp other) {
          return functionOf(launches.find(nameOf(other))->second) == functionOf(ours->second) &&
                 equal(kernel, other, sameLines);
        });
        if (same == alike.end()) {
          alike.push_back(kernel);
        } else {
          for (gpu::LaunchFuncOp launch : ours->second)
            launch.setKernelAttr(nameOf(*same));
          spare.push_back(kernel);
        }
      }
    }
    for (gpu::GPUFuncOp kernel : spare)
      erase(kernel);
  }

  /// The one whose loop became the kernel.
  static Operation *functionOf(ArrayRef<gpu::LaunchFuncOp> launches) {
    return launches.front()->getParentOfType<FunctionOpInterface>();
  }

  Option<bool> sameLines{*this, "same-lines", llvm::cl::desc("Join those of one place of the program alone"),
                         llvm::cl::init(false)};

  static SymbolRefAttr nameOf(gpu::GPUFuncOp kernel) {
    return SymbolRefAttr::get(kernel->getParentOfType<gpu::GPUModuleOp>().getNameAttr(),
                              {FlatSymbolRefAttr::get(kernel.getNameAttr())});
  }

  /// With its module, where no kernel is left there.
  static void erase(gpu::GPUFuncOp kernel) {
    auto device = kernel->getParentOfType<gpu::GPUModuleOp>();
    kernel.erase();
    if (llvm::none_of(device.getOps<gpu::GPUFuncOp>(), [](gpu::GPUFuncOp left) { return left.isKernel(); }))
      device.erase();
  }
};

} // namespace

void registerEqualKernelsPasses() {
  PassRegistration<MarkWrittenKernels>();
  PassRegistration<JoinEqualKernels>();
}

} // namespace offload
