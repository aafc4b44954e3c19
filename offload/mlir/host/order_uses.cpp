//===- order_uses.cpp - What runs behind the uses of its memory -----------===//
//
// Programs written for upstream's runtime leave out dependencies. Its free waits for the whole device, and
// sparse-gpu-codegen frees a kernel's operands on streams of their own; here gpu.dealloc is a free in the
// order of its stream. Its copies from memory that is not registered are over soon, and tests of TMA launch a
// kernel without a token while copies to its operands, with one, are not waited for.
//
// So a free, and an operation without a token, depend on every operation with a token that uses the memory
// before them.
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
  gpu::AsyncOpInterface op;
  SmallVector<Value> memory;
  bool any = false; // it may be all there is: a kernel's pointer, or what describes memory for TMA
};

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

void order(const Use &use, BufferFlow &flow, DominanceInfo &dominance) {
  gpu::AsyncOpInterface op = use.op;
  DenseSet<Value> before;
  addBefore(op, before);
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
    return;
  SmallVector<Value> tokens;
  op->getParentOfType<FunctionOpInterface>()->walk([&](gpu::AsyncOpInterface other) {
    if (isa<gpu::DeallocOp>(other) || !dominance.properlyDominates(other, op))
      return;
    if (!other.getAsyncToken()) // done when the next operation starts
      addBefore(other, before);
    else if (missing.contains(other) || use.any)
      tokens.push_back(other.getAsyncToken());
  });
  // The last operation of a stream stands for those before it.
  for (Value token : llvm::reverse(tokens))
    if (!before.contains(token)) {
      op.addAsyncDependency(token);
      addBefore(op, before);
    }
}

} // namespace

void orderUses(ModuleOp module) {
  SmallVector<Use> uses;
  for (Operation &function : module.getOps()) {
    bool tokens = false;
    size_t first = uses.size();
    if (isa<FunctionOpInterface>(function))
      function.walk([&](gpu::AsyncOpInterface op) {
        tokens |= op.getAsyncToken() != nullptr;
        if (std::optional<Use> use = useOf(op))
          uses.push_back(*use);
      });
    if (!tokens)
      uses.truncate(first);
  }
  if (uses.empty())
    return;
  BufferFlow flow(module);
  DominanceInfo dominance(module);
  for (const Use &use : uses)
    order(use, flow, dominance);
}

} // namespace offload
