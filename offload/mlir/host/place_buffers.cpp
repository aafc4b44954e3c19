//===- place_buffers.cpp - offload-place-buffers --------------------------===//
//
// Programs that come from linalg or scf.parallel speak of memory, not of devices: a temporary of theirs is
// memref.alloc, and a kernel that reads it would read host memory. Once kernels are known, this pass makes
// such memory reachable for them:
//
//  * memref.alloc becomes gpu.alloc, its deallocations gpu.dealloc;
//  * memref.alloca becomes gpu.alloc, deallocated where the stack's memory ends;
//  * a memref.global is marked: host_to_llvm.cpp puts it into memory that both sides reach.
//
// Memory that host code uses as well is host_shared. What a buffer may be is followed (buffer_flow.h) through
// views, select, branches, loops and calls. What may be memory of gpu.alloc as well is allocated like it, and
// so has one way of being freed. Memory that the author registered (gpu.host_register) or got from a caller
// is theirs and stays; what fills it may have become a kernel, which runs while it is registered. memref.copy
// to or from memory that may be a device's (a kernel's, or that of callers, which host code does not touch
// otherwise) becomes gpu.memcpy.
//
//===----------------------------------------------------------------------===//

#include "host/buffer_flow.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Puts `free` where the stack memory of an alloca ends, or says that there is no such place.
LogicalResult atEndOfScope(memref::AllocaOp op, const BufferClass &buffer,
                           function_ref<void(OpBuilder &)> free) {
  Region *region = op->getParentRegion();
  if (region->hasOneBlock()) {
    Operation *end = op->getBlock()->getTerminator();
    if (!isa<func::ReturnOp>(end) &&
        llvm::any_of(end->getOperands(), [&](Value value) { return buffer.values.contains(value); }))
      return op.emitOpError("leaves its block and is used by a kernel: use memref.alloc and memref.dealloc");
    OpBuilder b(end);
    free(b);
    return success();
  }
  if (op->getBlock() != &region->front())
    return op.emitOpError("is used by a kernel: put it into the function's first block, or use memref.alloc");
  for (Block &block : *region)
    if (block.getNumSuccessors() == 0) {
      OpBuilder b(block.getTerminator());
      free(b);
    }
  return success();
}

bool isRegistration(Operation *op, const BufferClass &buffer) {
  return isa<gpu::HostRegisterOp, gpu::HostUnregisterOp>(op) && buffer.values.contains(op->getOperand(0));
}

/// Does it call a function of this program with the memory?
bool handsOn(Operation *op, const BufferClass &buffer) {
  auto call = dyn_cast<func::CallOp>(op);
  auto callee =
      call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr()) : func::FuncOp();
  return callee && !callee.isExternal() &&
         llvm::any_of(call.getOperands(), [&](Value value) { return buffer.values.contains(value); });
}

/// Does a kernel in it use the memory, or a function that it calls, maybe?
bool mayUseInKernel(Operation *op, const BufferClass &buffer) {
  auto find = [&](Operation *each) {
    bool uses = isa<gpu::LaunchFuncOp>(each) &&
                llvm::any_of(each->getOperands(), [&](Value value) { return buffer.values.contains(value); });
    return uses || handsOn(each, buffer) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

/// May it register the memory itself, or take it back? `function` is the one that it stands in.
bool mayRegister(Operation *op, const BufferClass &buffer, func::FuncOp function) {
  bool elsewhere = llvm::any_of(buffer.values, [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return isRegistration(user, buffer) && user->getParentOfType<func::FuncOp>() != function;
    });
  });
  auto find = [&](Operation *each) {
    bool may = isRegistration(each, buffer) || (elsewhere && handsOn(each, buffer));
    return may ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

/// Puts it, with the views of the memory that it takes, in front of the kernels before it.
void registerEarlier(gpu::HostRegisterOp op, const BufferClass &buffer) {
  SmallVector<Operation *> moved = {op}; // from the end
  Operation *first = nullptr, *made = op.getValue().getDefiningOp();
  auto function = op->getParentOfType<func::FuncOp>();
  for (Operation *each = op->getPrevNode(); each; each = each->getPrevNode()) {
    if (mayRegister(each, buffer, function) || (each == made && !shownBy(each)))
      break;
    if (each == made) {
      moved.push_back(each);
      made = shownBy(each).getDefiningOp();
    } else if (llvm::any_of(moved,
                            [&](Operation *user) { return llvm::is_contained(each->getUsers(), user); })) {
      if (!isMemoryEffectFree(each)) // a view's size
        break;
      moved.push_back(each);
    } else if (mayUseInKernel(each, buffer)) {
      first = each;
    }
  }
  if (!first)
    return;
  // Those in front of the first kernel stay where they are.
  for (Operation *each : llvm::reverse(moved))
    if (first->isBeforeInBlock(each))
      each->moveBefore(first);
}

/// Puts it behind the kernels after it.
void unregisterLater(gpu::HostUnregisterOp op, const BufferClass &buffer) {
  auto isFreed = [&](Operation *each) { // or may be, by the function that gets it
    return (isa<memref::DeallocOp>(each) && buffer.values.contains(each->getOperand(0))) ||
           (!buffer.deallocations.empty() && handsOn(each, buffer));
  };
  Operation *last = nullptr;
  auto function = op->getParentOfType<func::FuncOp>();
  for (Operation *each = op->getNextNode(); each; each = each->getNextNode()) {
    if (mayRegister(each, buffer, function) || isFreed(each))
      break;
    if (each != &each->getBlock()->back() && mayUseInKernel(each, buffer))
      last = each;
  }
  if (last)
    op->moveAfter(last);
}

/// In place of an allocation; as aligned as that is.
template <typename Op> gpu::AllocOp allocate(OpBuilder &b, Op op, bool shared) {
  constexpr uint64_t kUsual = 64; // of the runtime's memory on the CPU; on devices it is 256
  auto made = gpu::AllocOp::create(b, op->getLoc(), op.getType(), /*asyncToken=*/Type(),
                                   /*asyncDependencies=*/ValueRange(), op.getDynamicSizes(),
                                   /*symbolOperands=*/ValueRange(), shared);
  if (op.getAlignment().value_or(0) > kUsual)
    made->setAttr(kAlignment, op.getAlignmentAttr());
  return made;
}

struct PlaceBuffers : public PassWrapper<PlaceBuffers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlaceBuffers)

  StringRef getArgument() const final { return "offload-place-buffers"; }
  StringRef getDescription() const final { return "Put memory that kernels use where they reach it"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<gpu::GPUDialect>(); }

  void runOnOperation() final {
    BufferFlow flow(getOperation());
    SmallVector<memref::CopyOp> copies;
    bool unreachable = false;
    getOperation()->walk([&](memref::CopyOp op) {
      if (op->getParentOfType<gpu::GPUModuleOp>())
        return;
      BufferClass &source = flow.classOf(op.getSource()), &target = flow.classOf(op.getTarget());
      if (isRanked(op) && (source.mayBeDevice() || target.mayBeDevice()))
        copies.push_back(op);
      if (!isRanked(op) && (isDevice(source) || isDevice(target))) {
        op.emitOpError(
            "of memrefs without a rank is done by the CPU, and this memory may be out of its reach: "
            "cast them to memrefs with one first");
        unreachable = true;
      }
    });
    if (unreachable)
      return signalPassFailure();
    for (gpu::HostRegisterOp op : found<gpu::HostRegisterOp>())
      registerEarlier(op, flow.classOf(op.getValue()));
    for (gpu::HostUnregisterOp op : found<gpu::HostUnregisterOp>())
      unregisterLater(op, flow.classOf(op.getValue()));
    for (BufferClass &buffer : flow.classes())
      if ((buffer.kernel || buffer.device) && !buffer.registered && failed(place(buffer, flow)))
        return signalPassFailure();
    for (memref::CopyOp op : copies) {
      OpBuilder b(op);
      gpu::MemcpyOp::create(b, op.getLoc(), Type(), ValueRange(), op.getTarget(), op.getSource());
      op.erase();
    }
  }

  template <typename Op> SmallVector<Op> found() {
    SmallVector<Op> all;
    getOperation()->walk([&](Op op) { all.push_back(op); });
    return all;
  }

  /// Is it memory that this pass does not place, and that kernels use?
  static bool isDevice(const BufferClass &buffer) {
    return (buffer.device || (buffer.kernel && buffer.foreign)) && !buffer.registered;
  }

  LogicalResult place(BufferClass &buffer, const BufferFlow &flow) {
    if (!buffer.kernel && buffer.allocations.empty()) // nothing is freed that is not of gpu.alloc
      return success();
    for (memref::GetGlobalOp op : buffer.kernel ? ArrayRef(buffer.globals) : ArrayRef<memref::GetGlobalOp>())
      if (auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(op, op.getNameAttr()))
        global->setAttr(kSharedGlobal, UnitAttr::get(&getContext()));
    bool foreign = buffer.foreign || !buffer.globals.empty();
    for (memref::DeallocOp op : buffer.deallocations) {
      bool own = flow.isAllocated(op.getMemref()),
           both = foreign && (!buffer.allocations.empty() || !buffer.stack.empty());
      // Behind a condition, as ownership-based deallocation leaves it, the program knows whose it is.
      if (!own && both && !isa<scf::IfOp>(op->getParentOp()))
        return op.emitOpError("may free a temporary of a kernel or memory from elsewhere: give each a "
                              "deallocation of its own");
      if (!own && foreign && !both)
        continue;
      OpBuilder b(op);
      gpu::DeallocOp::create(b, op.getLoc(), Type(), ValueRange(), op.getMemref());
      op.erase();
    }
    for (memref::AllocaOp op : buffer.kernel ? ArrayRef(buffer.stack) : ArrayRef<memref::AllocaOp>()) {
      OpBuilder b(op);
      auto placed = allocate(b, op, buffer.host);
      auto free = [&](OpBuilder &at) {
        gpu::DeallocOp::create(at, op.getLoc(), Type(), ValueRange(), placed.getMemref());
      };
      if (failed(atEndOfScope(op, buffer, free)))
        return failure();
      op.replaceAllUsesWith(placed.getMemref());
      op.erase();
    }
    for (memref::AllocOp op : buffer.allocations) {
      OpBuilder b(op);
      op.replaceAllUsesWith(allocate(b, op, buffer.host).getMemref());
      op.erase();
    }
    return success();
  }
};

} // namespace

void registerPlaceBuffersPass() { PassRegistration<PlaceBuffers>(); }

} // namespace offload
