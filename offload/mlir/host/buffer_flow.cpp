//===- buffer_flow.cpp - Which values of host code may be the same memory -===//

#include "host/buffer_flow.h"
#include "names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace offload {

static bool isBuffer(Value value) { return isa<BaseMemRefType>(value.getType()); }

bool isRanked(memref::CopyOp op) {
  return isa<MemRefType>(op.getSource().getType()) && isa<MemRefType>(op.getTarget().getType());
}

Value shownBy(Operation *op) {
  if (auto view = dyn_cast<ViewLikeOpInterface>(op))
    return view.getViewSource();
  // Both are views, which MLIR does not say of them.
  if (auto cast = dyn_cast<memref::CastOp>(op))
    return cast.getSource();
  if (auto transposed = dyn_cast<memref::TransposeOp>(op))
    return transposed.getIn();
  return {};
}

void BufferFlow::flow(Value from, Value to) {
  if (!isBuffer(from) || !isBuffer(to))
    return;
  same.unionSets(from.getAsOpaquePointer(), to.getAsOpaquePointer());
  sources[to].push_back(from);
}

void BufferFlow::flow(ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip(from, to))
    flow(source, target);
}

SmallVector<func::FuncOp> calleesOf(Operation *op) {
  SmallVector<func::FuncOp> found;
  auto find = [&](FlatSymbolRefAttr name) {
    found.push_back(SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, name));
  };
  if (auto call = dyn_cast<func::CallOp>(op))
    find(call.getCalleeAttr());
  else if (auto call = dyn_cast<func::CallIndirectOp>(op))
    op->getParentOfType<ModuleOp>()->walk([&](func::ConstantOp pointer) {
      if (pointer.getType() == call.getCallee().getType())
        find(pointer.getValueAttr());
    });
  return found;
}

static bool isElsewhere(func::FuncOp callee) { return !callee || callee.isExternal(); }

void BufferFlow::connectCall(Operation *call) {
  OperandRange given = cast<CallOpInterface>(call).getArgOperands();
  for (func::FuncOp callee : calleesOf(call)) {
    if (isElsewhere(callee))
      continue;
    flow(given, callee.getArguments());
    callee.walk([&](func::ReturnOp op) { flow(op.getOperands(), call->getResults()); });
  }
}

void BufferFlow::connect(Operation *op) {
  if (Value source = shownBy(op))
    for (Value result : op->getResults())
      flow(source, result);
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    flow(select.getTrueValue(), select.getResult());
    flow(select.getFalseValue(), select.getResult());
  }
  if (auto distinct = dyn_cast<memref::DistinctObjectsOp>(op))
    flow(distinct.getOperands(), distinct.getResults());
  if (auto branch = dyn_cast<BranchOpInterface>(op))
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i)
      flow(branch.getSuccessorOperands(i).getForwardedOperands(),
           op->getSuccessor(i)->getArguments().drop_front(
               branch.getSuccessorOperands(i).getProducedOperandCount()));
  if (auto regions = dyn_cast<RegionBranchOpInterface>(op)) {
    SmallVector<RegionSuccessor> successors;
    regions.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    for (RegionSuccessor &successor : successors)
      flow(regions.getEntrySuccessorOperands(successor), successor.getSuccessorInputs());
  }
  if (auto end = dyn_cast<RegionBranchTerminatorOpInterface>(op))
    if (auto regions = dyn_cast_or_null<RegionBranchOpInterface>(op->getParentOp())) {
      SmallVector<RegionSuccessor> successors;
      SmallVector<Attribute> unknown(op->getNumOperands());
      end.getSuccessorRegions(unknown, successors);
      for (RegionSuccessor &successor : successors)
        flow(end.getSuccessorOperands(successor), successor.getSuccessorInputs());
    }
  if (isa<func::CallOp, func::CallIndirectOp>(op))
    connectCall(op);
  if (auto function = dyn_cast<func::FuncOp>(op))
    connectReturns(function);
}

/// Whoever gets a result frees it in the same way, whichever return it is from.
void BufferFlow::connectReturns(func::FuncOp function) {
  func::ReturnOp first;
  function.walk([&](func::ReturnOp op) {
    if (!first)
      first = op;
    for (auto [one, other] : llvm::zip_equal(first.getOperands(), op.getOperands()))
      if (isBuffer(one))
        same.unionSets(one.getAsOpaquePointer(), other.getAsOpaquePointer());
  });
}

/// Operations that look at a buffer's shape, or move it on as `connect` knows.
static bool touchesNoMemory(Operation *op) {
  if (isa<func::CallOp, func::CallIndirectOp>(op)) {
    SmallVector<func::FuncOp> callees = calleesOf(op);
    return !callees.empty() && llvm::none_of(callees, isElsewhere);
  }
  // Where bufferization frees one of several buffers, it compares their addresses.
  if (isa<memref::ExtractAlignedPointerAsIndexOp>(op))
    return op->getParentOfType<FunctionOpInterface>()->hasAttr(kOnTensors);
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return isRanked(copy);
  return shownBy(op) ||
         isa<memref::DimOp, memref::RankOp, memref::DistinctObjectsOp, arith::SelectOp, BranchOpInterface,
             RegionBranchOpInterface, RegionBranchTerminatorOpInterface, func::ReturnOp>(op);
}

/// Is an address of the buffer made for kernels alone? Lowered ones take plain pointers.
static bool goesToKernels(Value address) {
  return !address.use_empty() && llvm::all_of(address.getUsers(), [](Operation *user) {
    return isa<gpu::LaunchFuncOp>(user) ||
           (isa<arith::IndexCastOp, arith::IndexCastUIOp, LLVM::IntToPtrOp>(user) &&
            goesToKernels(user->getResult(0)));
  });
}

void BufferFlow::record(Operation *op) {
  bool onDevice = isa<gpu::GPUDialect>(op->getDialect()) || op->getName().getDialectNamespace() == "nvgpu";
  for (Value operand : op->getOperands()) {
    if (!isBuffer(operand))
      continue;
    BufferClass &buffer = classOf(operand);
    if (auto deallocation = dyn_cast<memref::DeallocOp>(op))
      buffer.deallocations.push_back(deallocation);
    else if (isa<gpu::HostRegisterOp, gpu::HostUnregisterOp>(op))
      buffer.registered = true;
    else if (isa<gpu::MemcpyOp, gpu::DeallocOp>(op))
      continue;
    else if (onDevice || (isa<memref::ExtractAlignedPointerAsIndexOp>(op) && goesToKernels(op->getResult(0))))
      buffer.kernel = true;
    else if (!touchesNoMemory(op))
      buffer.host = true;
  }
  for (Value result : op->getResults()) {
    if (!isBuffer(result))
      continue;
    BufferClass &buffer = classOf(result);
    if (auto allocation = dyn_cast<memref::AllocOp>(op))
      buffer.allocations.push_back(allocation);
    else if (auto allocation = dyn_cast<memref::AllocaOp>(op))
      buffer.stack.push_back(allocation);
    else if (auto global = dyn_cast<memref::GetGlobalOp>(op))
      buffer.globals.push_back(global);
    else if (auto allocation = dyn_cast<gpu::AllocOp>(op)) {
      buffer.device = true;
      buffer.deviceAlone |= !allocation.getHostShared();
    } else if (!touchesNoMemory(op))
      buffer.foreign = buffer.unknown = true;
  }
}

BufferClass &BufferFlow::classOf(Value value) {
  void *key = value.getAsOpaquePointer();
  same.insert(key);
  BufferClass *&found = byLeader[same.getLeaderValue(key)];
  if (!found)
    found = &all.emplace_back();
  found->values.insert(value);
  return *found;
}

bool BufferFlow::isAllocated(Value value) const {
  SmallVector<Value> open = {value};
  DenseSet<Value> seen(open.begin(), open.end());
  while (!open.empty()) {
    Value each = open.pop_back_val();
    auto found = sources.find(each);
    bool begins = found == sources.end();
    if (begins && !isa_and_nonnull<memref::AllocOp>(each.getDefiningOp()))
      return false;
    if (auto argument = dyn_cast<BlockArgument>(each))
      if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
          function && function.isPublic() && argument.getOwner()->isEntryBlock())
        return false;
    if (!begins)
      for (Value source : found->second)
        if (seen.insert(source).second)
          open.push_back(source);
  }
  return true;
}

BufferFlow::BufferFlow(ModuleOp module) {
  SmallVector<Operation *> operations;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op))
      return WalkResult::skip();
    operations.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : operations)
    connect(op);
  for (Operation *op : operations)
    record(op);
  SmallVector<func::FuncOp> callable = llvm::filter_to_vector(
      module.getOps<func::FuncOp>(), [](func::FuncOp op) { return op.isPublic() && !op.isExternal(); });
  for (func::FuncOp function : callable)
    for (Value argument : function.getArguments())
      if (isBuffer(argument))
        classOf(argument).foreign = true;
  for (func::FuncOp function : callable)
    if (function->hasAttr(kOnTensors))
      recordResults(function);
}

/// Results of functions on tensors are all of one kind, whether a kernel or host code made them.
void BufferFlow::recordResults(func::FuncOp function) {
  function.walk([&](func::ReturnOp op) {
    for (Value result : op.getOperands())
      if (isBuffer(result) && !classOf(result).foreign)
        classOf(result).kernel = true;
  });
}

} // namespace offload
