//===- structure_tensors.cpp - offload-structure-tensors ------------------===//
//
// Branches between the blocks of a function become scf.if, scf.index_switch and scf.while where the function
// has tensors: who frees a tensor's memory is known at the end of a region, not at a block that is reached
// from many others, and MLIR frees nothing in loops of blocks.
//
//===----------------------------------------------------------------------===//

#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct Structure : public ControlFlowToSCFTransformation {
  /// Where a loop ends before it has made a tensor. Bufferization knows no poison.
  Value getUndefValue(Location loc, OpBuilder &b, Type type) final {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return ControlFlowToSCFTransformation::getUndefValue(loc, b, type);
    SmallVector<Value> sizes;
    for (int64_t i = 0, count = tensor.getNumDynamicDims(); i < count; ++i)
      sizes.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    return tensor::EmptyOp::create(b, loc, tensor, sizes);
  }
};

struct StructureTensors : public PassWrapper<StructureTensors, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StructureTensors)

  StringRef getArgument() const final { return "offload-structure-tensors"; }
  StringRef getDescription() const final { return "Write branches of functions with tensors as regions"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, cf::ControlFlowDialect, scf::SCFDialect, tensor::TensorDialect,
                    ub::UBDialect>();
  }

  void runOnOperation() final {
    Structure structure;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!hasTensors(function))
        continue;
      SmallVector<Region *> regions = {&function.getBody()};
      function.walk([&](scf::ExecuteRegionOp op) { regions.push_back(&op.getRegion()); });
      for (Region *region : llvm::reverse(regions)) {
        if (region->empty() || region->hasOneBlock())
          continue;
        DominanceInfo dominance(region->getParentOp());
        if (failed(transformCFGToSCF(*region, structure, dominance))) {
          region->getParentOp()->emitError("has tensors and branches that cannot be written as scf.if and "
                                           "scf.while: write them so");
          return signalPassFailure();
        }
      }
    }
  }
};

} // namespace

void registerStructureTensorsPass() { PassRegistration<StructureTensors>(); }

} // namespace offload
