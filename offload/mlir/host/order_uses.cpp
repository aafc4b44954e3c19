//===- order_uses.cpp - What runs behind the uses of its memory -----------===//
//
// Programs written for upstream's runtime leave out dependencies. Its free waits for the whole device, and
// sparse-gpu-codegen frees a kernel's operands on streams of their own; here gpu.dealloc is a free in the
// order of its stream. Its copies from memory that is not registered are over soon, and tests of TMA launch a
// kernel without a token while copies to its operands, with one, are not waited for.
//
// So a free, and an operation without a token, depend on every operation with a token that uses the memory
// before them. Where such an operation stands in a loop or on one of several ways, or a function gets the
// memory, there is no token to depend on: all that is on the function's streams is waited for.
//
//===----------------------------------------------------------------------===//

#include "host/buffer_flow.h"
#include "host/lowering.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace offload {
namespace {

/// The tokens that an operation waits for, and those that these wait for.
void addBefore(Operation *op, DenseSet<Value> &tokens) {
  SmallVector<Value> found;
  if (auto async = dyn_cast<gpu::AsyncOpInterface>(op))
    llvm::append_range(found, async.getAsyncDependencies());
  while (!found.empty()) {
    Value token = found.pop_back_val();
    if (!tokens.insert(token).second)
      continue;
    if (auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(token.getDefiningOp()))
      llvm::append_range(found, async.getAsyncDependencies());
  }
}

/// A use of memory that must not overtake earlier ones.
struct Use {
  Operation *op; // without tokens where it is a call
  SmallVector<Value> memory;
  bool any = false; // it may be all there is: a kernel's pointer, or what describes memory for TMA
};

/// A call of a function of this program that gets memory.
std::optional<Use> useOf(func::CallOp call) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  if (!callee || callee.isExternal())
    return std::nullopt;
  Use use{call, {}};
  for (Value operand : call.getOperands()) {
    if (isa<BaseMemRefType>(operand.getType()))
      use.memory.push_back(operand);
    use.any |= isa<LLVM::LLVMPointerType>(operand.getType());
  }
  return use;
}

std::optional<Use> useOf(gpu::AsyncOpInterface op) {
  if (auto free = dyn_cast<gpu::DeallocOp>(*op))
    return Use{op, {free.getMemref()}};
  if (op.getAsyncToken())
    return std::nullopt;
  if (auto copy = dyn_cast<gpu::MemcpyOp>(*op))
    return Use{op, {copy.getDst(), copy.getSrc()}};
  if (auto fill = dyn_cast<gpu::MemsetOp>(*op))
    return Use{op, {fill.getDst()}};
  auto launch = dyn_cast<gpu::LaunchFuncOp>(*op);
  if (!launch || launch.getAsyncObject()) // whose stream the author orders
    return std::nullopt;
  Use use{op, {}};
  for (Value operand : launch.getKernelOperands()) {
    if (isa<BaseMemRefType>(operand.getType()))
      use.memory.push_back(operand);
    use.any |= isa<LLVM::LLVMPointerType>(operand.getType());
  }
  return use;
}

/// May it run before, though not always, or in an earlier turn of a loop than the last?
bool mayHaveRun(Operation *other, Operation *op, DominanceInfo &dominance) {
  Block *there = other->getBlock(), *here = op->getBlock();
  if (there->getParent() != here->getParent()) // of a region that has not been lowered
    return other->getParentOfType<FunctionOpInterface>() == op->getParentOfType<FunctionOpInterface>();
  if (!dominance.properlyDominates(other, op))
    return there->isReachable(here);
  return there != here && there->isReachable(there, {here});
}

/// Returns whether all that is on the function's streams has to be waited for.
bool order(const Use &use, BufferFlow &flow, DominanceInfo &dominance) {
  Operation *op = use.op;
  auto waiting = dyn_cast<gpu::AsyncOpInterface>(op);
  DenseSet<Value> before;
  addBefore(op, before);
  if (!waiting) // the tokens that a call gets are the callee's to wait for
    for (Value operand : op->getOperands())
      if (auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(operand.getDefiningOp());
          async && operand == async.getAsyncToken() && before.insert(operand).second)
        addBefore(async, before);
  DenseSet<Operation *> missing;
  auto add = [&](Operation *other) {
    auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(other);
    if (async && async.getAsyncToken() && !before.contains(async.getAsyncToken()) &&
        !isa<gpu::DeallocOp>(other))
      missing.insert(other);
  };
  for (Value memory : use.memory)
    for (Value value : flow.classOf(memory).values) {
      llvm::for_each(value.getUsers(), add);
      add(value.getDefiningOp());
    }
  // Most programs miss nothing: the whole function is not read for each of their uses.
  if (missing.empty() && !use.any)
    return false;
  SmallVector<Value> tokens;
  bool unordered = false;
  op->getParentOfType<FunctionOpInterface>()->walk([&](gpu::AsyncOpInterface other) {
    if (isa<gpu::DeallocOp>(other))
      return;
    bool counts = other.getAsyncToken() && (missing.contains(other) || use.any);
    unordered |= counts && mayHaveRun(other, op, dominance);
    if (!dominance.properlyDominates(other, op))
      return;
    if (!other.getAsyncToken()) // done when the next operation starts
      addBefore(other, before);
    else if (counts)
      tokens.push_back(other.getAsyncToken());
  });
  if (!waiting)
    return unordered || llvm::any_of(tokens, [&](Value token) { return !before.contains(token); });
  // The last operation of a stream stands for those before it.
  for (Value token : llvm::reverse(tokens))
    if (!before.contains(token)) {
      waiting.addAsyncDependency(token);
      addBefore(op, before);
    }
  // With a token its author has said behind what it comes.
  return unordered && !waiting.getAsyncToken();
}

} // namespace

SmallVector<Operation *> orderUses(ModuleOp module) {
  SmallVector<Use> uses;
  SmallVector<Operation *> waiting;
  for (Operation &function : module.getOps()) {
    bool tokens = false;
    size_t first = uses.size();
    if (isa<FunctionOpInterface>(function))
      function.walk([&](Operation *op) {
        auto async = dyn_cast<gpu::AsyncOpInterface>(op);
        auto call = dyn_cast<func::CallOp>(op);
        tokens |= async && async.getAsyncToken();
        if (std::optional<Use> use = async ? useOf(async) : call ? useOf(call) : std::nullopt)
          uses.push_back(*use);
      });
    if (!tokens)
      uses.truncate(first);
  }
  if (uses.empty())
    return waiting;
  BufferFlow flow(module);
  DominanceInfo dominance(module);
  for (const Use &use : uses)
    if (order(use, flow, dominance))
      waiting.push_back(use.op);
  return waiting;
}

} // namespace offload
