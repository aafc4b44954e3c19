//===- place_buffers.cpp - offload-place-buffers --------------------------===//
//
// Programs that come from linalg or scf.parallel speak of memory, not of devices: a temporary of theirs is
// memref.alloc, and a kernel that reads it would read host memory. Once kernels are known, this pass makes
// such temporaries gpu.alloc:
//
//  * used by kernels and copies alone: device memory;
//  * used by host code too: memory that both reach (host_shared).
//
// A buffer that goes through branches or to a calling function stays host memory: a deallocation that this
// pass cannot see would be the wrong one. Memory that the author registered (gpu.host_register) is the
// author's business and stays. memref.copy to or from memory of a kernel becomes gpu.memcpy.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Everything that is done to a buffer, through views of it too.
struct Uses {
  bool kernel = false, host = false, registered = false;
  bool passedOn = false; // into control flow or to a caller: who frees it cannot be seen here
  SmallVector<memref::DeallocOp> deallocations;
};

/// Does another function of the program get this one's results? (Python does: it knows what to free, and
/// how.)
bool isCalled(func::FuncOp function) {
  return !SymbolTable::symbolKnownUseEmpty(function, function->getParentOfType<ModuleOp>());
}

Uses usesOf(Value buffer) {
  Uses uses;
  SmallVector<Value> work = {buffer};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isa<gpu::LaunchFuncOp>(user))
        uses.kernel = true;
      else if (auto deallocation = dyn_cast<memref::DeallocOp>(user))
        uses.deallocations.push_back(deallocation);
      else if (isa<RegionBranchTerminatorOpInterface, BranchOpInterface>(user) && !isa<func::ReturnOp>(user))
        uses.passedOn = true;
      else if (isa<func::ReturnOp>(user))
        uses.passedOn = uses.passedOn || isCalled(user->getParentOfType<func::FuncOp>());
      else if (isa<gpu::HostRegisterOp, gpu::HostUnregisterOp>(user))
        uses.registered = true;
      else if (isa<ViewLikeOpInterface, memref::CastOp>(user))
        llvm::append_range(work, user->getResults());
      else if (!isa<memref::DimOp, memref::CopyOp, gpu::MemcpyOp, gpu::MemsetOp>(user))
        uses.host = true; // loads, stores, calls, what else there is
    }
  }
  return uses;
}

/// The buffer that a view shows.
Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ViewLikeOpInterface, memref::CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

struct PlaceBuffers : public PassWrapper<PlaceBuffers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlaceBuffers)

  StringRef getArgument() const final { return "offload-place-buffers"; }
  StringRef getDescription() const final { return "Put temporaries of kernels into device memory"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<gpu::GPUDialect>(); }

  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      function.walk([](memref::AllocOp op) { place(op); });
      function.walk([](memref::CopyOp op) {
        if (!usesOf(sourceOf(op.getSource())).kernel && !usesOf(sourceOf(op.getTarget())).kernel)
          return;
        OpBuilder builder(op);
        gpu::MemcpyOp::create(builder, op.getLoc(), Type(), ValueRange(), op.getTarget(), op.getSource());
        op.erase();
      });
    }
  }

  static void place(memref::AllocOp op) {
    Uses uses = usesOf(op);
    bool identity = op.getType().getLayout().isIdentity() && op.getSymbolOperands().empty();
    if (!uses.kernel || uses.registered || uses.passedOn || !identity)
      return;
    OpBuilder builder(op);
    auto placed = gpu::AllocOp::create(builder, op.getLoc(), op.getType(), /*asyncToken=*/Type(),
                                       /*asyncDependencies=*/ValueRange(), op.getDynamicSizes(),
                                       /*symbolOperands=*/ValueRange(), /*hostShared=*/uses.host);
    for (memref::DeallocOp deallocation : uses.deallocations) {
      OpBuilder at(deallocation);
      gpu::DeallocOp::create(at, deallocation.getLoc(), Type(), ValueRange(), placed.getMemref());
      deallocation.erase();
    }
    op.replaceAllUsesWith(placed.getMemref());
    op.erase();
  }
};

} // namespace

void registerPlaceBuffersPass() { PassRegistration<PlaceBuffers>(); }

} // namespace offload
