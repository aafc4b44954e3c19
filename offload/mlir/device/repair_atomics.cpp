//===- repair_atomics.cpp - Atomic operations of offload-repair-lowered ---===//
//
// memref.generic_atomic_rmw becomes a loop around llvm.cmpxchg of the element's type. LLVM's takes integers
// and pointers only: floats are compared and exchanged as bits. And what the loop starts from is read as if
// no other thread wrote there: the read becomes atomic.
//
// MLIR's lowering of memref's operations gives them no scope, which is the whole system's: all devices, and
// the CPU while the kernel runs. Such an operation makes AMD's chips write back their cache, and is a loop of
// loads and comparisons on those where it could be one instruction. Kernels meet within their device, and
// within their block in workgroup memory, as in CUDA and HIP. offload-prepare-device has marked the author's
// own operations of LLVM that mean the whole system.
//
// And it orders them (acq_rel) before and after all else that the thread does. A kernel that only counts and
// sums so, that reads nothing of what such operations found and writes nothing but its own and its block's
// memory besides, tells no other block anything by them: they need not wait for each other.
//
// LLVM 22 writes atomicrmw for NVIDIA's GPUs without its order. The author's own get fences around them,
// which are the same; memref's are as CUDA's there, and docs/index.md says so.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "device/vendor_rules.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

// Of LLVM, on every GPU.
constexpr unsigned kWorkgroupSpace = 3, kPrivateSpace = 5;
constexpr StringRef kScope = "syncscope";

void exchangeBits(LLVM::AtomicCmpXchgOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getVal().getType(), bits = b.getIntegerType(type.getIntOrFloatBitWidth());
  Value expected = LLVM::BitcastOp::create(b, loc, bits, op.getCmp());
  Value desired = LLVM::BitcastOp::create(b, loc, bits, op.getVal());
  auto exchange =
      LLVM::AtomicCmpXchgOp::create(b, loc, op.getPtr(), expected, desired, op.getSuccessOrdering(),
                                    op.getFailureOrdering(), op.getSyncscope().value_or(StringRef()),
                                    op.getAlignment().value_or(0), op.getWeak(), op.getVolatile_());
  Value found = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{0});
  Value done = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{1});
  Value result = LLVM::PoisonOp::create(b, loc, op.getRes().getType());
  result = LLVM::InsertValueOp::create(b, loc, result, LLVM::BitcastOp::create(b, loc, type, found),
                                       ArrayRef<int64_t>{0});
  result = LLVM::InsertValueOp::create(b, loc, result, done, ArrayRef<int64_t>{1});
  op.replaceAllUsesWith(result);
  op.erase();
}

/// The value that the loop begins with is a plain load just before it.
void readAtomically(LLVM::AtomicCmpXchgOp op) {
  auto expected = dyn_cast<BlockArgument>(op.getCmp());
  if (!expected)
    return;
  for (Block *before : expected.getOwner()->getPredecessors()) {
    auto branch = dyn_cast<LLVM::BrOp>(before->getTerminator());
    auto load = branch ? branch.getOperand(expected.getArgNumber()).getDefiningOp<LLVM::LoadOp>() : nullptr;
    if (!load || load.getAddr() != op.getPtr() || load.getOrdering() != LLVM::AtomicOrdering::not_atomic)
      continue;
    unsigned bytes = load.getType().isIntOrFloat() ? load.getType().getIntOrFloatBitWidth() / 8 : 0;
    if (!bytes) // a pointer's size is the target's
      continue;
    load.setOrdering(LLVM::AtomicOrdering::monotonic);
    load.setAlignment(bytes);
    if (auto scope = op.getSyncscopeAttr())
      load.setSyncscopeAttr(scope);
  }
}

unsigned spaceOf(Value pointer) { return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace(); }

/// A thread's own memory: in a space of its own, or an array of the function's.
bool isOwn(Value pointer) {
  while (true) {
    if (spaceOf(pointer) == kPrivateSpace)
      return true;
    Operation *made = pointer.getDefiningOp();
    if (isa_and_nonnull<LLVM::AllocaOp>(made))
      return true;
    if (!isa_and_nonnull<LLVM::GEPOp, LLVM::AddrSpaceCastOp>(made))
      return false;
    pointer = made->getOperand(0);
  }
}

/// Whether no other block learns from an operation what was before it, nor this one from others.
bool announcesNothing(Operation *op, const AtomicsOfTarget &target) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return load.getOrdering() == LLVM::AtomicOrdering::not_atomic && !load.getVolatile_();
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return spaceOf(store.getAddr()) == kWorkgroupSpace || isOwn(store.getAddr());
  if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op))
    return atomic.getRes().use_empty() && atomic.getBinOp() != LLVM::AtomicBinOp::xchg;
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    return call.getCallee() && isOfDeviceLibrary(*call.getCallee());
  if (auto fence = dyn_cast<LLVM::FenceOp>(op)) // what barriers are made of; others are the author's orders
    return fence.getSyncscope() == StringRef(target.blockScope);
  return isa<LLVM::AllocaOp>(op) || op == &op->getBlock()->back() ||
         op->getName().getStringRef().contains("barrier") || isMemoryEffectFree(op) ||
         hasSingleEffect<MemoryEffects::Read>(op);
}

/// In kernels: what calls another function may have written before.
void waitForNothing(LLVM::LLVMFuncOp function, const AtomicsOfTarget &target) {
  if (!function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
    return;
  SmallVector<LLVM::AtomicRMWOp> unread;
  WalkResult walked = function.walk([&](Operation *op) {
    if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op); atomic && !atomic->hasAttr(kScope) &&
                                                       atomic.getRes().use_empty() &&
                                                       atomic.getOrdering() == LLVM::AtomicOrdering::acq_rel)
      unread.push_back(atomic);
    return op == function || announcesNothing(op, target) ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!walked.wasInterrupted())
    for (LLVM::AtomicRMWOp atomic : unread)
      atomic.setOrdering(LLVM::AtomicOrdering::monotonic);
}

void settleScope(Operation *op, Value pointer, const AtomicsOfTarget &target) {
  auto given = op->getAttrOfType<StringAttr>(kScope);
  if (!given)
    op->setAttr(kScope,
                StringAttr::get(op->getContext(), spaceOf(pointer) == kWorkgroupSpace ? target.blockScope
                                                                                      : target.deviceScope));
  else if (given == kWholeSystem)
    op->removeAttr(kScope);
}

} // namespace

/// What an order of an operation means, by fences around one without.
static void orderByFences(LLVM::AtomicRMWOp op) {
  using Order = LLVM::AtomicOrdering;
  Order order = op.getOrdering();
  StringRef scope = op.getSyncscope().value_or(StringRef());
  if (scope == "singlethread")
    return;
  bool all = order == Order::acq_rel || order == Order::seq_cst;
  OpBuilder b(op);
  auto fence = [&](Order orderOfFence) {
    LLVM::FenceOp::create(b, op.getLoc(), order == Order::seq_cst ? order : orderOfFence, scope);
  };
  if (all || order == Order::release)
    fence(Order::release);
  b.setInsertionPointAfter(op);
  if (all || order == Order::acquire)
    fence(Order::acquire);
}

void repairAtomics(Operation *root, const AtomicsOfTarget &target) {
  root->walk([](LLVM::AtomicCmpXchgOp op) {
    readAtomically(op);
    if (isa<FloatType>(op.getVal().getType()))
      exchangeBits(op);
  });
  if (target.deviceScope.empty()) // the CPU's own are of the whole system anyway
    return;
  root->walk([&](LLVM::LLVMFuncOp function) { waitForNothing(function, target); });
  SmallVector<LLVM::AtomicRMWOp> authors;
  root->walk([&](Operation *op) {
    if (auto rmw = dyn_cast<LLVM::AtomicRMWOp>(op)) {
      if (target.needsFences && op->hasAttr(kScope))
        authors.push_back(rmw);
      settleScope(op, rmw.getPtr(), target);
      for (const std::string &name : target.attributes)
        op->setAttr(name, UnitAttr::get(op->getContext()));
    } else if (auto exchange = dyn_cast<LLVM::AtomicCmpXchgOp>(op)) {
      settleScope(op, exchange.getPtr(), target);
    } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      if (load.getOrdering() != LLVM::AtomicOrdering::not_atomic)
        settleScope(op, load.getAddr(), target);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      if (store.getOrdering() != LLVM::AtomicOrdering::not_atomic)
        settleScope(op, store.getAddr(), target);
    }
  });
  llvm::for_each(authors, orderByFences);
}

} // namespace offload
