//===- parallel_loops.cpp - Parallel loops of host code ---------------------===//

#include "loops/parallel_loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace offload {

bool isInKernel(Operation *op) {
  return op->getParentOfType<gpu::LaunchOp>() || op->getParentOfType<gpu::GPUModuleOp>();
}

bool hasThreads(Operation *op) {
  return isa<gpu::LaunchOp, scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp, linalg::LinalgOp,
             tensor::GenerateOp, tensor::PadOp>(op);
}

bool isRunByThreads(Operation *op) {
  if (isInKernel(op))
    return true;
  while ((op = op->getParentOp()))
    if (hasThreads(op))
      return true;
  return false;
}

SmallPtrSet<Operation *, 4> calledFromKernels(ModuleOp module) {
  SmallPtrSet<Operation *, 4> found;
  SmallVector<Operation *> next;
  auto add = [&](func::CallOp call) {
    if (Operation *callee = module.lookupSymbol(call.getCallee()); callee && found.insert(callee).second)
      next.push_back(callee);
  };
  module.walk([&](func::CallOp call) {
    if (isRunByThreads(call))
      add(call);
  });
  while (!next.empty())
    next.pop_back_val()->walk(add);
  return found;
}

SmallVector<scf::ParallelOp> outermostParallel(Operation *root) {
  SmallVector<scf::ParallelOp> loops;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp, gpu::LaunchOp>(op))
      return WalkResult::skip();
    auto loop = dyn_cast<scf::ParallelOp>(op);
    if (!loop)
      return WalkResult::advance();
    loops.push_back(loop);
    return WalkResult::skip();
  });
  return loops;
}

bool takesThreadsForGranted(Operation *op) {
  return isa<gpu::GPUDialect>(op->getDialect()) && !isa<gpu::PrintfOp>(op);
}

void forgetUnfitMapping(scf::ParallelOp nest) {
  SmallVector<Operation *> mapped;
  bool fits = true, ofThreads = false;
  nest->walk([&](Operation *op) {
    ofThreads |= takesThreadsForGranted(op);
    auto mapping = op->getAttrOfType<ArrayAttr>(gpu::getMappingAttrName());
    if (mapping)
      mapped.push_back(op);
    if (auto loop = dyn_cast<scf::ParallelOp>(op))
      fits &= !loop.getNumReductions() && mapping && mapping.size() == loop.getNumLoops() &&
              llvm::all_of(mapping, llvm::IsaPred<gpu::ParallelLoopDimMappingAttr>);
  });
  if (!fits && !ofThreads)
    for (Operation *op : mapped)
      op->removeAttr(gpu::getMappingAttrName());
}

SmallVector<Value> combine(OpBuilder &builder, scf::ReduceOp end, ValueRange sums, ValueRange values,
                           IRMapping map) {
  SmallVector<Value> results;
  for (auto [region, sum, value] : llvm::zip(end.getReductions(), sums, values)) {
    Block &block = region.front();
    map.map(block.getArgument(0), sum);
    map.map(block.getArgument(1), value);
    for (Operation &op : block.without_terminator())
      builder.clone(op, map);
    results.push_back(map.lookupOrDefault(cast<scf::ReduceReturnOp>(block.getTerminator()).getResult()));
  }
  return results;
}

void makeSerial(scf::ParallelOp loop) {
  OpBuilder builder(loop);
  auto end = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  scf::LoopNest nest = scf::buildLoopNest(
      builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), loop.getInitVals(),
      [&](OpBuilder &in, Location, ValueRange iteration, ValueRange sums) {
        IRMapping map;
        map.map(loop.getInductionVars(), iteration);
        for (Operation &op : loop.getBody()->without_terminator())
          in.clone(op, map);
        SmallVector<Value> values;
        for (Value value : end.getOperands())
          values.push_back(map.lookupOrDefault(value));
        return scf::ValueVector(combine(in, end, sums, values, map));
      });
  loop.replaceAllUsesWith(nest.results);
  loop.erase();
}

} // namespace offload
