//===- active_lanes.cpp - offload-keep-apart ------------------------------===//
//
// What some operations give depends on which lanes of the subgroup come there with a thread, such as the
// first of them. MLIR 22 does not know of that:
//
// It has gpu.subgroup_broadcast as pure, and vendors' operations that move values between lanes. Of two that
// look the same, cse replaces the one in a branch by the one before the branch, where other lanes were
// active.
//
// Its greedy rewrites make blocks that look the same one, as convert-gpu-to-* does with those of a branch's
// two sides, and all lanes get there together.
//
// An operation in vector.mask is of the active lanes of its vector: cse takes it for the same one without a
// mask that stands before it, and the mask is left around nothing.
//
// Each such operation gets a number of its own, and none looks like another one. LLVM keeps them apart
// itself: its calls are convergent.
//
//===----------------------------------------------------------------------===//

#include "device/active_lanes.h"
#include "device/vendor_rules.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Whether the lanes that come together may see each other in an operation. What a function does is not
/// looked up.
bool mayConverge(Operation *op, bool isVendors) {
  return (isVendors || isa<LLVM::CallIntrinsicOp, LLVM::InlineAsmOp, CallOpInterface>(op)) &&
         !isMemoryEffectFree(op);
}

/// The number is text: what lowers operations to inline assembly takes integers for operands.
void number(Operation *root, llvm::function_ref<bool(Operation *)> chosen) {
  int64_t next = 0;
  Builder b(root->getContext());
  root->walk([&](Operation *op) {
    if (chosen(op))
      op->setDiscardableAttr(kActiveSet, b.getStringAttr(std::to_string(next++)));
  });
}

struct KeepApart : public PassWrapper<KeepApart, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepApart)

  StringRef getArgument() const final { return "offload-keep-apart"; }
  StringRef getDescription() const final { return "Number operations that depend on the active lanes"; }

  void runOnOperation() final {
    number(getOperation(), [](Operation *op) {
      if (auto broadcast = dyn_cast<gpu::SubgroupBroadcastOp>(op))
        return broadcast.getBroadcastType() == gpu::BroadcastType::first_active_lane;
      return takesFromLanes(op) || isMasked(op) || isInBlocks(op);
    });
  }

  static bool isMasked(Operation *op) {
    return isa_and_nonnull<vector::MaskOp>(op->getParentOp()) && !op->hasTrait<OpTrait::IsTerminator>();
  }

  /// Operations that may be of all lanes, in blocks that their author wrote: two may look the same.
  static bool isInBlocks(Operation *op) {
    Region *region = op->getParentRegion();
    bool isVendors = !ownerOf(op->getName().getDialectNamespace()).empty();
    return (isa<gpu::SubgroupReduceOp>(op) || mayConverge(op, isVendors)) && region &&
           !region->hasOneBlock() &&
           (op->getParentOfType<gpu::GPUModuleOp>() || op->getParentOfType<gpu::LaunchOp>());
  }
};

} // namespace

void keepBranchesApart(Operation *root, StringRef dialect) {
  number(root, [&](Operation *op) {
    return takesFromLanes(op) || mayConverge(op, op->getName().getDialectNamespace() == dialect);
  });
}

void removeMarks(Operation *root) {
  root->walk([](Operation *op) { op->removeDiscardableAttr(kActiveSet); });
}

void registerKeepApartPass() { PassRegistration<KeepApart>(); }

} // namespace offload
