//===- reduce_linalg.cpp - offload-reduce-linalg ---------------------------===//
//
// A linalg operation that reduces everything to one value, a sum over everything or a product of two vectors,
// leaves the order of its steps open, as all reductions of linalg do. It becomes an scf.parallel with
// results, which many threads reduce. The output stays where it is: memory of a device, maybe, that kernels
// read and write.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "loops/parallel_loops.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Whether the operation reduces everything, in more than a few steps. A parallel loop has one iteration.
bool isWhole(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || !op.hasPureBufferSemantics())
    return false;
  int64_t steps = 1;
  bool isKnown = true;
  for (auto [range, kind] : llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    if (kind == utils::IteratorType::parallel && range != 1)
      return false;
    isKnown &= !ShapedType::isDynamic(range);
    steps *= range;
  }
  return !isKnown || steps > kFewSteps;
}

void replace(linalg::LinalgOp op, const LinalgSteps &steps) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  SmallVector<Value> first, from, until, step; // the first iteration; loops of more than one
  SmallVector<unsigned> loops;
  for (auto [i, range] : llvm::enumerate(op.createLoopRanges(b, loc))) {
    first.push_back(getValueOrCreateConstantIndexOp(b, loc, range.offset));
    if (op.getIteratorTypesArray()[i] == utils::IteratorType::parallel)
      continue;
    loops.push_back(unsigned(i));
    from.push_back(first.back());
    until.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    step.push_back(getValueOrCreateConstantIndexOp(b, loc, range.stride));
  }
  SmallVector<Value> initial;
  SmallVector<SmallVector<Value>> places;
  for (OpOperand &output : op.getDpsInitsMutable()) {
    places.push_back(placeOf(b, output, first)); // the same one in all iterations
    initial.push_back(memref::LoadOp::create(b, loc, output.get(), places.back()));
  }
  auto loop = scf::ParallelOp::create(
      b, loc, from, until, step, initial, [&](OpBuilder &in, Location, ValueRange numbers, ValueRange) {
        SmallVector<Value> iteration = first;
        for (auto [i, number] : llvm::zip_equal(loops, numbers))
          iteration[i] = number;
        auto reduce = scf::ReduceOp::create(in, loc, steps.values(in, iteration));
        for (auto [i, region] : llvm::enumerate(reduce.getReductions())) {
          Block &block = region.front();
          OpBuilder inner = OpBuilder::atBlockEnd(&block);
          Value both = steps.joined(inner, unsigned(i), block.getArgument(0), block.getArgument(1));
          scf::ReduceReturnOp::create(inner, loc, both);
        }
      });
  loop->setAttr(kInPlace, b.getUnitAttr());
  for (auto [result, output, place] : llvm::zip_equal(loop.getResults(), op.getDpsInits(), places))
    memref::StoreOp::create(b, loc, result, output, place);
  op.erase();
}

struct ReduceLinalg : public PassWrapper<ReduceLinalg, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceLinalg)

  StringRef getArgument() const final { return "offload-reduce-linalg"; }
  StringRef getDescription() const final { return "Write reductions of everything as parallel loops"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : hostLinalg(getOperation()))
      if (isWhole(op))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          replace(op, *steps);
  }
};

} // namespace

void registerReduceLinalgPass() { PassRegistration<ReduceLinalg>(); }

} // namespace offload
