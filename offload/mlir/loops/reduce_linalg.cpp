//===- reduce_linalg.cpp - offload-reduce-linalg ---------------------------===//
//
// A linalg operation without a parallel loop, a sum over everything or a product of two vectors, leaves the
// order of its steps open, as all reductions of linalg do. It becomes an scf.parallel with results, which
// many threads reduce. The output stays where it is: memory of a device, maybe, that kernels read and write.
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"
#include "passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Steps that one thread has done before another kernel would begin.
constexpr int64_t kFew = 256;

bool isAssociative(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op);
}

/// The operation that joins a value and what was reduced so far, for each output; none where there is more to
/// it.
std::optional<SmallVector<Operation *>> combiners(linalg::LinalgOp op) {
  SmallVector<Operation *> found;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    SmallVector<Operation *> used;
    // What an output is on the way may go nowhere else: to another output's value, say.
    if (!matchReduction(op.getRegionOutputArgs(), i, used) || used.size() != 1 || !isAssociative(used[0]) ||
        !used[0]->hasOneUse() || !op.getRegionOutputArgs()[i].hasOneUse())
      return std::nullopt;
    found.push_back(used[0]);
  }
  return found;
}

/// Whether the operation reduces everything, in more than a few steps.
bool isWhole(linalg::LinalgOp op) {
  if (op.getNumParallelLoops() != 0 || !op.hasPureBufferSemantics())
    return false;
  int64_t steps = 1;
  for (int64_t range : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(range))
      return true;
    steps *= range;
  }
  return steps > kFew;
}

class Whole {
public:
  Whole(linalg::LinalgOp op, ArrayRef<Operation *> combiners)
      : op(op), combiners(combiners), b(op), loc(op.getLoc()) {}

  void replace() {
    SmallVector<Value> from, until, step;
    for (const Range &range : op.createLoopRanges(b, loc)) {
      from.push_back(getValueOrCreateConstantIndexOp(b, loc, range.offset));
      until.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
      step.push_back(getValueOrCreateConstantIndexOp(b, loc, range.stride));
    }
    SmallVector<Value> initial;
    SmallVector<SmallVector<Value>> places;
    for (OpOperand &output : op.getDpsInitsMutable()) {
      places.push_back(placeOf(b, output, from)); // the same one in all iterations
      initial.push_back(memref::LoadOp::create(b, loc, output.get(), places.back()));
    }
    auto loop = scf::ParallelOp::create(
        b, loc, from, until, step, initial,
        [&](OpBuilder &in, Location, ValueRange iteration, ValueRange) { fill(in, iteration); });
    loop->setAttr(kInPlace, b.getUnitAttr());
    for (auto [result, output, place] : llvm::zip(loop.getResults(), op.getDpsInits(), places))
      memref::StoreOp::create(b, loc, result, output, place);
    op.erase();
  }

private:
  SmallVector<Value> placeOf(OpBuilder &in, OpOperand &operand, ValueRange iteration) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<Value> place;
    for (AffineExpr expression : map.getResults()) {
      AffineMap one = AffineMap::get(map.getNumDims(), map.getNumSymbols(), expression);
      place.push_back(affine::makeComposedAffineApply(in, loc, one, getAsOpFoldResult(iteration)));
    }
    return place;
  }

  void fill(OpBuilder &in, ValueRange iteration) {
    IRMapping map;
    Block *body = op.getBlock();
    for (OpOperand *input : op.getDpsInputOperands()) {
      Value value = input->get();
      if (isa<MemRefType>(value.getType()))
        value = memref::LoadOp::create(in, loc, value, placeOf(in, *input, iteration));
      map.map(body->getArgument(input->getOperandNumber()), value);
    }
    for (Operation &each : body->without_terminator())
      if (auto number = dyn_cast<linalg::IndexOp>(each))
        map.map(number.getResult(), iteration[number.getDim()]);
      else if (!llvm::is_contained(combiners, &each))
        in.clone(each, map);
    SmallVector<Value> values;
    for (auto [combiner, output] : llvm::zip(combiners, op.getRegionOutputArgs()))
      values.push_back(map.lookupOrDefault(combiner->getOperand(combiner->getOperand(0) == output)));
    auto reduce = scf::ReduceOp::create(in, loc, values);
    for (auto [combiner, output, region] :
         llvm::zip(combiners, op.getRegionOutputArgs(), reduce.getReductions())) {
      Block &block = region.front();
      IRMapping both;
      both.map(output, block.getArgument(0));
      both.map(combiner->getOperand(combiner->getOperand(0) == output), block.getArgument(1));
      OpBuilder inner = OpBuilder::atBlockEnd(&block);
      Operation *joined = inner.clone(*combiner, both);
      scf::ReduceReturnOp::create(inner, loc, joined->getResult(0));
    }
  }

  linalg::LinalgOp op;
  ArrayRef<Operation *> combiners;
  OpBuilder b;
  Location loc;
};

struct ReduceLinalg : public PassWrapper<ReduceLinalg, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceLinalg)

  StringRef getArgument() const final { return "offload-reduce-linalg"; }
  StringRef getDescription() const final { return "Write reductions of everything as parallel loops"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> whole;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::GPUModuleOp, gpu::LaunchOp, scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp>(op))
        return WalkResult::skip();
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && isWhole(linalgOp))
        whole.push_back(linalgOp);
      return WalkResult::advance();
    });
    for (linalg::LinalgOp op : whole)
      if (std::optional<SmallVector<Operation *>> found = combiners(op))
        Whole(op, *found).replace();
  }
};

} // namespace

void registerReduceLinalgPass() { PassRegistration<ReduceLinalg>(); }

} // namespace offload
