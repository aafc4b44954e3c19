//===- free_early.cpp - offload-free-early --------------------------------===//
//
// What a function has allocated for its tensors is freed where the function ends: all layers of a network are
// there at once then. Where every use can be seen, by kernels that are done or come first, and by code of
// this function itself, memory goes back behind the last one. What is handed to other functions, carried by
// loops and branches, or seen in a way that is not listed here stays until the end: somebody may still use
// it.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

bool isView(Operation *op) {
  return isa<memref::CastOp, memref::SubViewOp, memref::CollapseShapeOp, memref::ExpandShapeOp,
             memref::ViewOp, memref::ReinterpretCastOp, memref::TransposeOp>(op);
}

/// Whether it only uses what is in the memory, and is done with it when the next operation comes.
bool uses(Operation *op, Value memory) {
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getValue() != memory;
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
    return !launch.getAsyncToken() && launch.getAsyncDependencies().empty() && !launch.getAsyncObject();
  return isa<memref::LoadOp, memref::CopyOp, memref::DimOp>(op);
}

/// Moves `last` to the last use in the block of the memory and of views of it. False where some use is none
/// that can be seen.
bool follow(Value memory, memref::DeallocOp free, Operation *&last) {
  return llvm::all_of(memory.getUsers(), [&](Operation *user) {
    Operation *here = free->getBlock()->findAncestorOpInBlock(*user);
    if (user == free)
      return true;
    if (!here || !here->isBeforeInBlock(free))
      return false;
    if (last->isBeforeInBlock(here))
      last = here;
    return isView(user) ? follow(user->getResult(0), free, last) : uses(user, memory);
  });
}

struct FreeEarly : public PassWrapper<FreeEarly, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FreeEarly)

  StringRef getArgument() const final { return "offload-free-early"; }
  StringRef getDescription() const final {
    return "Free what functions have allocated for their tensors behind its last use";
  }

  void runOnOperation() final {
    // All are looked at first: after a move MLIR counts the whole block again to say what comes before what.
    SmallVector<std::pair<memref::DeallocOp, Operation *>> moves;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kOnTensors))
        function.walk([&](memref::DeallocOp free) {
          Operation *last = free.getMemref().getDefiningOp<memref::AllocOp>();
          if (last && last->getBlock() == free->getBlock() && follow(free.getMemref(), free, last))
            moves.emplace_back(free, last);
        });
    for (auto [free, last] : moves)
      free->moveAfter(last);
  }
};

} // namespace

void registerFreeEarlyPass() { PassRegistration<FreeEarly>(); }

} // namespace offload
