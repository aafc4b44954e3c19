//===- reduction.cpp - A reduction as loops without results ----------------===//
//
// Many iterations each reduce every n-th value and store what they got; further loops reduce that until one
// value is left. Iterations that have reduced nothing have nothing to start with, because a reduction need
// not have a neutral element: there are as many of them as there are values, at most. The first one starts
// with the initial value.
//
// Loops of several dimensions are taken as rows: an iteration takes every n-th row, and of it every m-th
// value.
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace offload {
namespace {

/// How many values the loops leave, one after the other; a loop is left out where there are fewer anyway. The
/// first is what fills a large GPU, and the last one's few steps are those of a single thread.
constexpr int64_t kLeft[] = {1 << 17, 1 << 11, 1 << 5, 1};
/// Of a row, how many values side by side go to different threads: enough for whole cache lines and few
/// enough that each goes along the row for some steps.
constexpr int64_t kColumns = 256;
/// Values that each iteration of the first loop has at least, but for the last ones: with fewer, storing what
/// they leave would be most of the work.
constexpr int64_t kEach = 16;

class Reduction {
public:
  explicit Reduction(scf::ParallelOp loop)
      : loop(loop), end(cast<scf::ReduceOp>(loop.getBody()->getTerminator())), b(loop), loc(loop.getLoc()),
        inPlace(loop->hasAttr(kInPlace)) {}

  void replace() {
    countValues();
    Value rest = total;
    SmallVector<Value> buffers;
    for (auto [stage, most] : llvm::enumerate(kLeft)) {
      std::optional<int64_t> known = getConstantIntValue(rest);
      if (known && most > 1 && (*known <= kLeft[stage + 1] || (!buffers.empty() && *known <= most)))
        continue;
      bool isLast = most == 1;
      SmallVector<Value> next;
      if (buffers.empty()) {
        Threads threads = shareOut(most);
        next = isLast && inPlace ? SmallVector<Value>() : allocate(threads.count, most);
        reduceValues(threads, next);
        rest = threads.count;
      } else {
        Value count = isLast ? index(1) : clamp(rest, index(most));
        next = isLast && inPlace ? SmallVector<Value>() : allocate(count, most);
        reduceAgain(buffers, rest, count, next);
        rest = count;
      }
      free(buffers);
      buffers = next;
    }
    inPlace ? dropHostCode() : loadResults(buffers);
    loop.erase();
  }

private:
  /// Those of the first loop: `columns` of each of `rows`.
  struct Threads {
    Value rows, columns, count;
  };

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

  /// Where there are no values, one thread stores the initial one.
  Value clamp(Value count, Value most) {
    return b.createOrFold<arith::MaxSIOp>(loc, b.createOrFold<arith::MinSIOp>(loc, count, most), index(1));
  }

  void countValues() {
    rows = index(1);
    for (auto [low, high, step] : llvm::zip(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
      Value span = b.createOrFold<arith::SubIOp>(loc, high, low);
      Value count = b.createOrFold<arith::CeilDivSIOp>(loc, span, step);
      counts.push_back(b.createOrFold<arith::MaxSIOp>(loc, count, index(0)));
      if (counts.size() < loop.getNumLoops())
        rows = b.createOrFold<arith::MulIOp>(loc, rows, counts.back());
    }
    total = b.createOrFold<arith::MulIOp>(loc, rows, counts.back());
  }

  Threads shareOut(int64_t most) {
    if (most == 1)
      return {index(1), index(1), index(1)};
    if (loop.getNumLoops() == 1) {
      Value columns = clamp(b.createOrFold<arith::CeilDivSIOp>(loc, total, index(kEach)), index(most));
      return {index(1), columns, columns};
    }
    // Without values there is neither a row nor a column.
    Value columns =
        clamp(b.createOrFold<arith::MinSIOp>(loc, counts.back(), total), index(std::min(most, kColumns)));
    Value room = b.createOrFold<arith::DivUIOp>(loc, index(most), columns);
    Value each = clamp(b.createOrFold<arith::MinSIOp>(loc, rows, total), room);
    return {each, columns, b.createOrFold<arith::MulIOp>(loc, each, columns)};
  }

  /// Of static size, which kernels that take plain pointers need.
  SmallVector<Value> allocate(Value count, int64_t most) {
    SmallVector<Value> buffers;
    for (Type type : loop.getResultTypes()) {
      auto buffer = MemRefType::get(getConstantIntValue(count).value_or(most), type);
      buffers.push_back(memref::AllocOp::create(b, loc, buffer));
    }
    return buffers;
  }

  void free(ArrayRef<Value> buffers) {
    for (Value buffer : buffers)
      memref::DeallocOp::create(b, loc, buffer);
  }

  /// Into `buffers`, or where the results belong.
  void store(OpBuilder &in, ValueRange values, ArrayRef<Value> buffers, Value at) {
    for (auto [i, value] : llvm::enumerate(values))
      if (buffers.empty())
        memref::StoreOp::create(in, loc, value, initial(i).getMemref(), initial(i).getIndices());
      else
        memref::StoreOp::create(in, loc, value, buffers[i], at);
  }

  SmallVector<Value> loadAll(OpBuilder &in, ArrayRef<Value> buffers, Value at) {
    SmallVector<Value> values;
    for (Value buffer : buffers)
      values.push_back(memref::LoadOp::create(in, loc, buffer, at));
    return values;
  }

  memref::LoadOp initial(unsigned i) { return loop.getInitVals()[i].getDefiningOp<memref::LoadOp>(); }

  SmallVector<Value> initialValues(OpBuilder &in) {
    SmallVector<Value> values(loop.getInitVals());
    if (inPlace)
      for (auto [i, value] : llvm::enumerate(values))
        value = memref::LoadOp::create(in, loc, initial(i).getMemref(), initial(i).getIndices());
    return values;
  }

  /// The author's values: thread (r, c) takes rows r, r + threads.rows, and so on, and of these the columns
  /// c, c + threads.columns, and so on.
  void reduceValues(const Threads &threads, ArrayRef<Value> to) {
    Value zero = index(0), one = index(1);
    bool hasRows = loop.getNumLoops() > 1;
    SmallVector<Value> from = {zero}, until = {threads.columns}, step = {one};
    if (hasRows)
      from = {zero, zero}, until = {threads.rows, threads.columns}, step = {one, one};
    scf::ParallelOp::create(b, loc, from, until, step, [&](OpBuilder &in, Location, ValueRange own) {
      Value number = own.back();
      if (hasRows)
        number =
            arith::AddIOp::create(in, loc, arith::MulIOp::create(in, loc, own[0], threads.columns), number);
      Value first = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, number, zero);
      SmallVector<Value> sums = initialValues(in);
      if (hasRows)
        sums =
            forEach(in, own[0], rows, threads.rows, sums, [&](OpBuilder &body, Value row, ValueRange sums) {
              Value later = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::ne, row, own[0]);
              Value joins = arith::OrIOp::create(body, loc, first, later);
              return reduceRow(body, row, own[1], threads.columns, joins, sums);
            });
      else
        sums = reduceRow(in, {}, own[0], threads.columns, first, sums);
      store(in, sums, to, number);
    });
  }

  /// Adds every n-th value from number `own` on to the sums; the first of them replaces these unless it
  /// `joins`.
  SmallVector<Value> reduceRow(OpBuilder &in, Value row, Value own, Value n, Value joins, ValueRange sums) {
    IRMapping outer;
    if (row)
      mapRow(in, row, outer);
    return forEach(in, own, counts.back(), n, sums, [&](OpBuilder &body, Value column, ValueRange sums) {
      IRMapping map = outer;
      mapVariable(body, loop.getNumLoops() - 1, column, map);
      for (Operation &op : loop.getBody()->without_terminator())
        body.clone(op, map);
      SmallVector<Value> values;
      for (Value value : end.getOperands())
        values.push_back(map.lookupOrDefault(value));
      SmallVector<Value> both = combine(body, end, sums, values, map);
      Value later = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::ne, column, own);
      Value joined = arith::OrIOp::create(body, loc, joins, later);
      for (auto [sum, value] : llvm::zip(both, values))
        sum = arith::SelectOp::create(body, loc, joined, sum, value);
      return both;
    });
  }

  SmallVector<Value> forEach(OpBuilder &in, Value from, Value until, Value step, ValueRange sums,
                             function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> make) {
    auto made = scf::ForOp::create(in, loc, from, until, step, sums,
                                   [&](OpBuilder &body, Location, Value number, ValueRange sums) {
                                     scf::YieldOp::create(body, loc, make(body, number, sums));
                                   });
    return SmallVector<Value>(made.getResults());
  }

  /// The induction variables of all loops but the last, which is the fastest.
  void mapRow(OpBuilder &in, Value row, IRMapping &map) {
    for (unsigned i = loop.getNumLoops() - 1; i-- > 0;) {
      mapVariable(in, i, i ? arith::RemUIOp::create(in, loc, row, counts[i]).getResult() : row, map);
      if (i)
        row = arith::DivUIOp::create(in, loc, row, counts[i]);
    }
  }

  void mapVariable(OpBuilder &in, unsigned i, Value place, IRMapping &map) {
    Value scaled = in.createOrFold<arith::MulIOp>(loc, place, loop.getStep()[i]);
    map.map(loop.getInductionVars()[i], in.createOrFold<arith::AddIOp>(loc, scaled, loop.getLowerBound()[i]));
  }

  /// What another loop left.
  void reduceAgain(ArrayRef<Value> from, Value rest, Value count, ArrayRef<Value> to) {
    scf::ParallelOp::create(b, loc, ValueRange{index(0)}, ValueRange{count}, ValueRange{index(1)},
                            [&](OpBuilder &in, Location, ValueRange own) {
                              Value second = arith::AddIOp::create(in, loc, own[0], count);
                              SmallVector<Value> sums =
                                  forEach(in, second, rest, count, loadAll(in, from, own[0]),
                                          [&](OpBuilder &body, Value number, ValueRange sums) {
                                            return combine(body, end, sums, loadAll(body, from, number));
                                          });
                              store(in, sums, to, own[0]);
                            });
  }

  void loadResults(ArrayRef<Value> buffers) {
    loop.replaceAllUsesWith(loadAll(b, buffers, index(0)));
    free(buffers);
  }

  /// Kernels have loaded and stored instead.
  void dropHostCode() {
    for (Value result : loop.getResults())
      for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
        user->erase();
    SmallVector<Operation *> loads;
    for (unsigned i = 0; i < loop.getNumResults(); ++i)
      loads.push_back(initial(i));
    loop.getInitValsMutable().clear();
    for (Operation *load : loads)
      load->erase();
  }

  scf::ParallelOp loop;
  scf::ReduceOp end;
  OpBuilder b;
  Location loc;
  const bool inPlace;
  SmallVector<Value> counts; // of each of the author's loops
  Value rows, total;         // of all but the last, and of all
};

} // namespace

void replaceReduction(scf::ParallelOp loop) { Reduction(loop).replace(); }

} // namespace offload
