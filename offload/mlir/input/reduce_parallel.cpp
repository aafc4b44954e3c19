//===- reduce_parallel.cpp - offload-reduce-parallel ----------------------===//
//
// A kernel has no results, so convert-parallel-loops-to-gpu takes no scf.parallel that has some. This pass
// writes outermost ones as loops without: many iterations each reduce every n-th value and store what they
// got, further loops reduce that until one value is left, which host code loads. Iterations that have reduced
// nothing have nothing to start with, because a reduction need not have a neutral element: there are as many
// of them as there are values, at most. The first one starts with the loop's initial value.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// How many values the loops leave, one after the other; a loop is left out where there are fewer anyway.
constexpr int64_t kLeft[] = {16384, 128, 1};

class Reduction {
public:
  explicit Reduction(scf::ParallelOp loop)
      : loop(loop), end(cast<scf::ReduceOp>(loop.getBody()->getTerminator())), b(loop), loc(loop.getLoc()) {}

  /// Puts loops without results before the loop, and what they leave in the place of its results.
  void replace() {
    Value rest = countValues();
    SmallVector<Value> buffers;
    for (int64_t left : kLeft) {
      std::optional<int64_t> known = getConstantIntValue(rest);
      if (known && left > kLeft[1] && *known <= kLeft[1])
        continue;
      Value count = index(1);
      if (left > 1) // where there are no values, one stores the initial one
        count = b.createOrFold<arith::MaxSIOp>(loc, b.createOrFold<arith::MinSIOp>(loc, rest, index(left)),
                                               count);
      SmallVector<Value> next = allocate(getConstantIntValue(count).value_or(left));
      buffers.empty() ? reduceValues(rest, count, next) : reduceAgain(buffers, rest, count, next);
      free(buffers);
      buffers = next, rest = count;
    }
    SmallVector<Value> results;
    for (Value buffer : buffers)
      results.push_back(memref::LoadOp::create(b, loc, buffer, ValueRange{index(0)}));
    free(buffers);
    loop.replaceAllUsesWith(results);
    loop.erase();
  }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

  Value countValues() {
    Value total = index(1);
    for (auto [low, high, step] : llvm::zip(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
      Value span = b.createOrFold<arith::SubIOp>(loc, high, low);
      Value count = b.createOrFold<arith::CeilDivSIOp>(loc, span, step);
      counts.push_back(b.createOrFold<arith::MaxSIOp>(loc, count, index(0)));
      total = b.createOrFold<arith::MulIOp>(loc, total, counts.back());
    }
    return total;
  }

  /// Of static size, which kernels that take plain pointers need.
  SmallVector<Value> allocate(int64_t size) {
    SmallVector<Value> buffers;
    for (Type type : loop.getResultTypes())
      buffers.push_back(memref::AllocOp::create(b, loc, MemRefType::get(size, type)));
    return buffers;
  }

  void free(ArrayRef<Value> buffers) {
    for (Value buffer : buffers)
      memref::DeallocOp::create(b, loc, buffer);
  }

  static void store(OpBuilder &in, Location loc, ValueRange values, ArrayRef<Value> buffers, Value at) {
    for (auto [value, buffer] : llvm::zip(values, buffers))
      memref::StoreOp::create(in, loc, value, buffer, at);
  }

  static SmallVector<Value> loadAll(OpBuilder &in, Location loc, ArrayRef<Value> buffers, Value at) {
    SmallVector<Value> values;
    for (Value buffer : buffers)
      values.push_back(memref::LoadOp::create(in, loc, buffer, at));
    return values;
  }

  /// What the author's reductions make of two values each.
  SmallVector<Value> combine(OpBuilder &in, ValueRange sums, ValueRange values, IRMapping map = {}) {
    SmallVector<Value> results;
    for (auto [region, sum, value] : llvm::zip(end.getReductions(), sums, values)) {
      Block &block = region.front();
      map.map(block.getArgument(0), sum);
      map.map(block.getArgument(1), value);
      for (Operation &op : block.without_terminator())
        in.clone(op, map);
      results.push_back(map.lookupOrDefault(cast<scf::ReduceReturnOp>(block.getTerminator()).getResult()));
    }
    return results;
  }

  /// The author's values: the p-th iteration takes number p, p + count, and so on.
  void reduceValues(Value total, Value count, ArrayRef<Value> to) {
    Value zero = index(0), one = index(1);
    scf::ParallelOp::create(b, loc, zero, count, one, [&](OpBuilder &in, Location, ValueRange own) {
      Value isFirst = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, own[0], zero);
      auto sums = scf::ForOp::create(in, loc, own[0], total, count, loop.getInitVals(),
                                     [&](OpBuilder &body, Location, Value number, ValueRange sums) {
                                       IRMapping map;
                                       mapVariables(body, number, map);
                                       for (Operation &op : loop.getBody()->without_terminator())
                                         body.clone(op, map);
                                       SmallVector<Value> values;
                                       for (Value value : end.getOperands())
                                         values.push_back(map.lookupOrDefault(value));
                                       SmallVector<Value> both = combine(body, sums, values, map);
                                       Value later = arith::CmpIOp::create(
                                           body, loc, arith::CmpIPredicate::ne, number, own[0]);
                                       Value joins = arith::OrIOp::create(body, loc, isFirst, later);
                                       for (auto [sum, value] : llvm::zip(both, values))
                                         sum = arith::SelectOp::create(body, loc, joins, sum, value);
                                       scf::YieldOp::create(body, loc, both);
                                     });
      store(in, loc, sums.getResults(), to, own[0]);
    });
  }

  /// The induction variables of iteration `number`; the last loop's is the fastest.
  void mapVariables(OpBuilder &in, Value number, IRMapping &map) {
    for (unsigned i = loop.getNumLoops(); i-- > 0;) {
      Value place = i ? arith::RemUIOp::create(in, loc, number, counts[i]) : number;
      if (i)
        number = arith::DivUIOp::create(in, loc, number, counts[i]);
      Value scaled = arith::MulIOp::create(in, loc, place, loop.getStep()[i]);
      map.map(loop.getInductionVars()[i],
              arith::AddIOp::create(in, loc, scaled, loop.getLowerBound()[i]).getResult());
    }
  }

  /// What another loop left.
  void reduceAgain(ArrayRef<Value> from, Value total, Value count, ArrayRef<Value> to) {
    Value zero = index(0), one = index(1);
    scf::ParallelOp::create(b, loc, zero, count, one, [&](OpBuilder &in, Location, ValueRange own) {
      Value second = arith::AddIOp::create(in, loc, own[0], count);
      auto sums = scf::ForOp::create(in, loc, second, total, count, loadAll(in, loc, from, own[0]),
                                     [&](OpBuilder &body, Location, Value number, ValueRange sums) {
                                       SmallVector<Value> values = loadAll(body, loc, from, number);
                                       scf::YieldOp::create(body, loc, combine(body, sums, values));
                                     });
      store(in, loc, sums.getResults(), to, own[0]);
    });
  }

  scf::ParallelOp loop;
  scf::ReduceOp end;
  OpBuilder b;
  Location loc;
  SmallVector<Value> counts; // of each of the author's loops
};

/// Why a loop's results cannot be left in memory by a kernel.
std::optional<StringRef> whyNot(scf::ParallelOp loop) {
  if (!llvm::all_of(loop.getResultTypes(), [](Type type) {
        return MemRefType::isValidElementType(type) && !isa<BaseMemRefType>(type);
      }))
    return "of what no array holds";
  bool mapped =
      loop->walk([](Operation *op) {
            return op->hasAttr(gpu::getMappingAttrName()) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  if (mapped)
    return "and a mapping of its own to blocks and threads";
  return std::nullopt;
}

struct ReduceParallel : public PassWrapper<ReduceParallel, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceParallel)

  StringRef getArgument() const final { return "offload-reduce-parallel"; }
  StringRef getDescription() const final { return "Write scf.parallel with results as loops without"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<scf::ParallelOp> loops;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::GPUModuleOp, gpu::LaunchOp>(op))
        return WalkResult::skip();
      auto loop = dyn_cast<scf::ParallelOp>(op);
      if (!loop)
        return WalkResult::advance();
      if (loop.getNumReductions() != 0)
        loops.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ParallelOp loop : loops) {
      if (std::optional<StringRef> why = whyNot(loop)) {
        loop.emitOpError("with a reduction ")
            << *why
            << " cannot become a kernel; use gpu.launch with gpu.all_reduce, or scf.for where the loop "
               "belongs to the host";
        return signalPassFailure();
      }
      Reduction(loop).replace();
    }
  }
};

} // namespace

void registerReduceParallelPass() { PassRegistration<ReduceParallel>(); }

} // namespace offload
