//===- memory_uses.cpp - What host code does to memory through the runtime ===//

#include "host/memory_uses.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

void Touched::add(const Touched &other) {
  buffers.insert(other.buffers.begin(), other.buffers.end());
  open |= other.open;
  any |= other.any;
}

bool Touched::mayMeet(const Touched &other) const {
  if (any || other.any)
    return !isNothing() && !other.isNothing();
  return (open && other.open) ||
         llvm::any_of(buffers, [&](BufferClass *each) { return other.buffers.contains(each); });
}

static bool isMatrix(Type type) {
  return isa<gpu::SparseSpMatHandleType, gpu::SparseDnTensorHandleType, gpu::SparseSpGEMMOpHandleType>(type);
}

/// Does it look at what matrices hold?
static bool usesMatrices(Operation *op) {
  return !isa<gpu::DestroySpMatOp, gpu::DestroyDnTensorOp, gpu::SpGEMMDestroyDescrOp>(op) &&
         llvm::any_of(op->getOperandTypes(), isMatrix);
}

/// An address among other numbers.
static bool isAddress(Value value) {
  if (isa<LLVM::LLVMPointerType, LLVM::LLVMStructType>(value.getType()))
    return true;
  Operation *op = value.getDefiningOp();
  for (; op && isa<CastOpInterface>(op) && op->getNumOperands() == 1; op = value.getDefiningOp()) {
    if (isa<LLVM::PtrToIntOp>(op))
      return true;
    value = op->getOperand(0);
  }
  return isa_and_nonnull<memref::ExtractAlignedPointerAsIndexOp>(op);
}

bool comesInOrder(gpu::AsyncOpInterface op) {
  if (isa<gpu::DeallocOp>(*op))
    return true;
  if (op.getAsyncToken())
    return false;
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(*op))
    return !launch.getAsyncObject(); // whose stream the author orders
  return isa<gpu::MemcpyOp, gpu::MemsetOp>(*op) || usesMatrices(op);
}

Touched MemoryUses::of(gpu::AsyncOpInterface op) {
  Touched touched;
  touched.any = usesMatrices(op);
  auto touch = [&](Value value) {
    if (!isa<BaseMemRefType>(value.getType()))
      return;
    BufferClass &buffer = flow.classOf(value);
    touched.buffers.insert(&buffer);
    touched.open |= buffer.foreign || !buffer.globals.empty();
    touched.any |= buffer.unknown;
  };
  llvm::for_each(op->getOperands(), touch);
  llvm::for_each(op->getResults(), touch);
  if (isa<gpu::LaunchFuncOp>(*op))
    touched.any |= llvm::any_of(op->getOperands(), isAddress);
  return touched;
}

SmallVector<FunctionOpInterface> MemoryUses::enteredBy(CallOpInterface call) {
  SmallVector<FunctionOpInterface> found;
  if (auto name = dyn_cast_if_present<SymbolRefAttr>(call.getCallableForCallee()))
    found.push_back(symbols.lookupNearestSymbolFrom<FunctionOpInterface>(call, name));
  else
    for (func::FuncOp callee : calleesOf(call))
      found.push_back(callee);
  llvm::erase_if(found, [](FunctionOpInterface each) { return !each || each.isExternal(); });
  return found;
}

const MemoryUses::Body &MemoryUses::bodyOf(FunctionOpInterface function) {
  std::unique_ptr<Body> &body = bodies[function];
  if (body)
    return *body;
  body = std::make_unique<Body>();
  function.walk([&](Operation *op) {
    if (auto call = dyn_cast<CallOpInterface>(op))
      body->calls.push_back(call);
    if (auto async = dyn_cast<gpu::AsyncOpInterface>(op)) {
      Touched touched = of(async);
      body->all.add(touched);
      if (comesInOrder(async))
        body->inOrder.add(touched);
    }
  });
  return *body;
}

Touched MemoryUses::of(CallOpInterface call, bool inOrder) {
  Touched touched;
  SmallVector<FunctionOpInterface> open = enteredBy(call);
  DenseSet<Operation *> seen;
  while (!open.empty()) {
    FunctionOpInterface function = open.pop_back_val();
    if (!seen.insert(function).second)
      continue;
    const Body &body = bodyOf(function);
    touched.add(inOrder ? body.inOrder : body.all);
    for (CallOpInterface inner : body.calls)
      open.append(enteredBy(inner));
  }
  // Nobody knows what a function that is defined elsewhere does with a token.
  touched.any |= !inOrder && seen.empty();
  return touched;
}

} // namespace offload
