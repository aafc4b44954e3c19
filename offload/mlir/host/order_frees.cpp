//===- order_frees.cpp - Memory is given back behind what uses it ---------===//
//
// gpu.dealloc is a free in the order of its stream. Programs written for upstream's runtime, whose free waits
// for the whole device, leave out dependencies: sparse-gpu-codegen frees a kernel's operands on streams of
// their own. Here a dealloc depends on every operation with a token that uses the memory before it.
//
//===----------------------------------------------------------------------===//

#include "host/buffer_flow.h"
#include "host/lowering.h"

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

void orderFree(gpu::DeallocOp free, BufferFlow &flow, DominanceInfo &dominance) {
  DenseSet<Value> before;
  addBefore(free, before);
  DenseSet<Operation *> missing;
  auto add = [&](Operation *op) {
    auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(op);
    if (async && async.getAsyncToken() && !before.contains(async.getAsyncToken()) && !isa<gpu::DeallocOp>(op))
      missing.insert(op);
  };
  for (Value value : flow.classOf(free.getMemref()).values) {
    llvm::for_each(value.getUsers(), add);
    add(value.getDefiningOp());
  }
  // Most programs miss nothing: the whole function is not read for each of their frees.
  if (missing.empty())
    return;
  SmallVector<Value> tokens;
  free->getParentOfType<FunctionOpInterface>()->walk([&](gpu::AsyncOpInterface op) {
    if (isa<gpu::DeallocOp>(op) || !dominance.properlyDominates(op, free))
      return;
    if (!op.getAsyncToken()) // done when the next operation starts
      addBefore(op, before);
    else if (missing.contains(op))
      tokens.push_back(op.getAsyncToken());
  });
  for (Value token : tokens)
    if (!before.contains(token))
      free.getAsyncDependenciesMutable().append(token);
}

} // namespace

void orderFrees(ModuleOp module) {
  SmallVector<gpu::DeallocOp> frees;
  for (Operation &function : module.getOps())
    if (isa<FunctionOpInterface>(function))
      function.walk([&](gpu::DeallocOp free) { frees.push_back(free); });
  if (frees.empty())
    return;
  BufferFlow flow(module);
  DominanceInfo dominance(module);
  for (gpu::DeallocOp free : frees)
    orderFree(free, flow, dominance);
}

} // namespace offload
