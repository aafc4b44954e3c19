//===- softmax.cpp - linalg.softmax written out ---------------------------===//
//
// As linalg's own decomposition on tensors has it, a row is gone through three times: for its largest value;
// for its exponentials, which are kept in the output, and their sum; for the quotients.
//
// Rows of memory that are known to have many elements are left to offload-fuse-rows, in these steps: with
// what is done to the same rows in front and behind. Where it shows at run time how many elements there are,
// rows have a subgroup each, or a block where they are long and few, whose lanes share out the row and hand
// on to each other what they have; a lane comes back to its own elements alone. Other rows, and those of few
// elements, have one thread.
//
//===----------------------------------------------------------------------===//

#include "loops/softmax.h"
#include "loops/linalg_steps.h"
#include "loops/parallel_loops.h"
#include "loops/row_threads.h"
#include "names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace offload {
namespace {

/// The elements of a row that a thread goes through; null: it has all of them.
struct Share {
  Value from, until, step;
  RowThreads *threads = nullptr;
};

class Softmax {
public:
  explicit Softmax(linalg::SoftmaxOp op)
      : op(op), b(op), loc(op.getLoc()), dim(unsigned(op.getDimension())), type(op.getInputOperandType()) {
    for (unsigned i = 0; i < unsigned(type.getRank()); ++i)
      if (i != dim)
        others.push_back(sizeOf(i));
    size = sizeOf(dim);
  }

  /// Kernels' threads run operations of linalg alone.
  void write(bool mayLaunch) {
    if (isInKernel(op)) {
      byOneThread(/*isSerial=*/true);
    } else if (!mayLaunch || isRunByThreads(op) || !areOfMemory()) {
      byOneThread(/*isSerial=*/false);
    } else if (areFused()) {
      bySteps();
    } else {
      whereLeast(b, loc, size, kRowSteps, [&] { byLanes(); }, [&] { byOneThread(/*isSerial=*/false); });
    }
    op.erase();
  }

private:
  /// Whether neighbours in a row are neighbours in memory.
  bool areOfMemory() {
    auto isAlong = [](Value memory) {
      auto memref = cast<MemRefType>(memory.getType());
      return memref.isStrided() && memref.getStridesAndOffset().first.back() == 1;
    };
    return dim + 1 == unsigned(type.getRank()) && isAlong(op.getInput()) && isAlong(op.getOutput()) &&
           canBeHandedOn(type.getElementType());
  }

  /// Whether offload-fuse-rows makes one kernel of the steps.
  bool areFused() const {
    bool isAlone = llvm::all_of(type.getShape().drop_back(), [](int64_t rows) { return rows == 1; });
    return !type.isDynamicDim(dim) && type.getDimSize(dim) >= (isAlone ? kFewSteps : kRowSteps);
  }

  void byOneThread(bool isSerial) {
    Value zero = index(b, 0), one = index(b, 1);
    bool isOneRow = others.empty();
    SmallVector<Value> sizes = isOneRow ? SmallVector<Value>{one} : others;
    SmallVector<Value> zeros(sizes.size(), zero), ones(sizes.size(), one);
    auto row = [&](OpBuilder &in, Location, ValueRange numbers) {
      writeRow(in, isOneRow ? ValueRange() : numbers, {zero, size, one});
    };
    if (isSerial)
      scf::buildLoopNest(b, loc, zeros, sizes, ones, row);
    else
      scf::ParallelOp::create(b, loc, zeros, sizes, ones, row);
  }

  /// Operations of linalg, of which one kernel is made later on.
  void bySteps() {
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dim);
    SmallVector<Value> dynamic;
    for (auto [size, other] : llvm::zip_equal(shape, others))
      if (ShapedType::isDynamic(size))
        dynamic.push_back(other);
    Type element = type.getElementType();
    auto numbers = MemRefType::get(shape, element);
    Value largest = memref::AllocOp::create(b, loc, numbers, dynamic);
    Value sum = memref::AllocOp::create(b, loc, numbers, dynamic);
    Value lowest =
        arith::getIdentityValue(arith::AtomicRMWKind::maxnumf, element, b, loc, /*useOnlyFinite=*/true);
    Value nothing = arith::getIdentityValue(arith::AtomicRMWKind::addf, element, b, loc);
    auto reduce = [&](Value from, Value to, function_ref<Value(OpBuilder &, Value, Value)> join) {
      step({from}, to, utils::IteratorType::reduction,
           [&](OpBuilder &in, ValueRange values) { return join(in, values[1], values[0]); });
    };
    linalg::FillOp::create(b, loc, lowest, largest);
    reduce(op.getInput(), largest, [&](OpBuilder &in, Value sofar, Value value) -> Value {
      return arith::MaxNumFOp::create(in, loc, sofar, value);
    });
    step({op.getInput(), largest}, op.getOutput(), utils::IteratorType::parallel,
         [&](OpBuilder &in, ValueRange values) -> Value {
           return math::ExpOp::create(in, loc, arith::SubFOp::create(in, loc, values[0], values[1]));
         });
    linalg::FillOp::create(b, loc, nothing, sum);
    reduce(op.getOutput(), sum, [&](OpBuilder &in, Value sofar, Value value) -> Value {
      return arith::AddFOp::create(in, loc, sofar, value);
    });
    step({op.getOutput(), sum}, op.getOutput(), utils::IteratorType::parallel,
         [&](OpBuilder &in, ValueRange values) -> Value {
           return arith::DivFOp::create(in, loc, values[0], values[1]);
         });
    memref::DeallocOp::create(b, loc, largest);
    memref::DeallocOp::create(b, loc, sum);
  }

  /// An operation on each element of the rows, which memory of a smaller rank has one number for each of.
  void step(ValueRange inputs, Value output, utils::IteratorType along,
            function_ref<Value(OpBuilder &, ValueRange)> body) {
    auto rank = unsigned(type.getRank());
    AffineMap elements = b.getMultiDimIdentityMap(rank), rows = elements.dropResult(dim);
    SmallVector<AffineMap> maps;
    auto add = [&](Value memory) {
      maps.push_back(cast<MemRefType>(memory.getType()).getRank() == rank ? elements : rows);
    };
    llvm::for_each(inputs, add);
    add(output);
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    loops[dim] = along;
    linalg::GenericOp::create(b, loc, inputs, output, maps, loops,
                              [&](OpBuilder &in, Location, ValueRange values) {
                                linalg::YieldOp::create(in, loc, body(in, values));
                              });
  }

  void byLanes() {
    Value rows = index(b, 1);
    for (Value other : others)
      rows = b.createOrFold<arith::MulIOp>(loc, rows, other);
    launchRows(b, loc, rows, size, kLongRow, [&](RowThreads threads) {
      OpBuilder in(threads.launch.getBody().front().getTerminator());
      // Where no row is left for a subgroup it has nothing to go through.
      Value until = arith::SelectOp::create(in, loc, threads.exists, size, index(in, 0));
      auto place = placeOfRow(in, loc, threads.row, others);
      writeRow(in, place, {threads.lane, until, index(in, threads.lanes), &threads});
    });
  }

  void writeRow(OpBuilder &in, ValueRange row, Share share) {
    auto at = [&](Value number) {
      SmallVector<Value> place(row);
      place.insert(place.begin() + dim, number);
      return place;
    };
    auto along = [&](Value start, function_ref<Value(OpBuilder &, Value, Value)> step,
                     function_ref<Value(Value, Value)> join) {
      auto loop = scf::ForOp::create(in, loc, share.from, share.until, share.step, start,
                                     [&](OpBuilder &body, Location, Value number, ValueRange sofar) {
                                       scf::YieldOp::create(body, loc, step(body, number, sofar[0]));
                                     });
      loop->setAttr(kIndependentSteps, in.getI64IntegerAttr(0));
      Value own = loop.getResult(0);
      return share.threads ? share.threads->joined(in, loc, own, join) : own;
    };
    Type element = type.getElementType();
    Value lowest =
        arith::getIdentityValue(arith::AtomicRMWKind::maxnumf, element, in, loc, /*useOnlyFinite=*/true);
    Value largest = along(
        lowest,
        [&](OpBuilder &body, Value number, Value sofar) -> Value {
          Value value = memref::LoadOp::create(body, loc, op.getInput(), at(number));
          return arith::MaxNumFOp::create(body, loc, sofar, value);
        },
        [&](Value a, Value c) -> Value { return arith::MaxNumFOp::create(in, loc, a, c); });
    Value nothing = arith::getIdentityValue(arith::AtomicRMWKind::addf, element, in, loc);
    Value sum = along(
        nothing,
        [&](OpBuilder &body, Value number, Value sofar) -> Value {
          Value value = memref::LoadOp::create(body, loc, op.getInput(), at(number));
          Value power = math::ExpOp::create(body, loc, arith::SubFOp::create(body, loc, value, largest));
          memref::StoreOp::create(body, loc, power, op.getOutput(), at(number));
          return arith::AddFOp::create(body, loc, sofar, power);
        },
        [&](Value a, Value c) -> Value { return arith::AddFOp::create(in, loc, a, c); });
    auto last = scf::ForOp::create(in, loc, share.from, share.until, share.step, {},
                                   [&](OpBuilder &body, Location, Value number, ValueRange) {
                                     Value power =
                                         memref::LoadOp::create(body, loc, op.getOutput(), at(number));
                                     Value part = arith::DivFOp::create(body, loc, power, sum);
                                     memref::StoreOp::create(body, loc, part, op.getOutput(), at(number));
                                     scf::YieldOp::create(body, loc);
                                   });
    last->setAttr(kIndependentSteps, in.getI64IntegerAttr(0));
  }

  Value sizeOf(unsigned i) {
    if (!type.isDynamicDim(i))
      return index(b, type.getDimSize(i));
    return memref::DimOp::create(b, loc, op.getInput(), i);
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::SoftmaxOp op;
  OpBuilder b;
  Location loc;
  unsigned dim; // along the rows
  ShapedType type;
  SmallVector<Value> others; // the other dimensions' sizes
  Value size;                // of a row
};

} // namespace

void writeSoftmax(linalg::SoftmaxOp op, bool mayLaunch) { Softmax(op).write(mayLaunch); }

} // namespace offload
