//===- fuse_rows.cpp - offload-fuse-rows ----------------------------------===//
//
// Operations one after another that do for each row what needs nothing of other rows, such as the largest
// value, the exponentials, their sum and the quotients of a softmax, or the parts of a normalization: one
// kernel, whose threads do all of it for a row before they are done. What is one number for a row stays in
// registers; what is one for each element is written by the thread that reads it. The threads go through a
// row as few times as they must: once for all steps up to one that needs what another has reduced.
//
// As in reduce_rows.cpp, a row has the lanes of a subgroup, or all threads of a block where it is long. GPUs
// take several neighbours at once where memory lies well (wide_rows.cpp); what a thread has of a row that is
// known to be short enough stays in registers until it comes back to it, and where another step writes the
// same elements, only the last one does.
//
//===----------------------------------------------------------------------===//

#include "loops/fused_rows.h"
#include "loops/linalg_steps.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kFewRows = 256;       // of which each would have more to do
constexpr int64_t kMostSteps = 1 << 15; // than a block of its own does as fast as a whole device

/// How many there are of the rows, where that is known.
std::optional<int64_t> knownRows(const RowSteps &rows) {
  int64_t count = 1;
  for (unsigned loop : ArrayRef(rows.loops).drop_back()) {
    int64_t range = rows.first.getStaticLoopRanges()[loop];
    if (ShapedType::isDynamic(range))
      return std::nullopt;
    count *= range;
  }
  return count;
}

int64_t knownLength(const RowSteps &rows) { return rows.first.getStaticLoopRanges()[rows.loops.back()]; }

Value zeroOf(OpBuilder &b, Location loc, Type type) {
  if (auto number = dyn_cast<ComplexType>(type)) {
    Attribute part = b.getZeroAttr(number.getElementType());
    return complex::ConstantOp::create(b, loc, type, b.getArrayAttr({part, part}));
  }
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

bool areManyRows(const RowSteps &rows) {
  std::optional<int64_t> count = knownRows(rows);
  return count && *count >= kFewRows;
}

bool isWorthIt(const RowSteps &rows) {
  int64_t length = knownLength(rows);
  bool isAlone = knownRows(rows) == 1;
  if (ShapedType::isDynamic(length))
    return !isAlone;
  return length >= (isAlone ? kFewSteps : kRowSteps) && (length <= kMostSteps || areManyRows(rows));
}

} // namespace

FusedRows::FusedRows(RowSteps &rows)
    : rows(rows), b(rows.steps.back().op), loc(rows.first.getLoc()), length(knownLength(rows)),
      unused(keepInOutputs(rows)) {
  for (const RowStep &step : rows.steps)
    for (const RowAccess &output : step.outputs)
      if (isBetween(rows, output.buffer))
        between.insert(output.buffer);
}

void FusedRows::replace() {
  SmallVector<Range> ranges = rows.first.createLoopRanges(b, loc);
  for (unsigned loop : rows.loops)
    sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, ranges[loop].size));
  if (!ShapedType::isDynamic(length)) {
    launch();
    for (const RowStep &step : rows.steps)
      step.op->erase();
    eraseUnread();
    return;
  }
  Value isFit = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, sizes.back(), index(b, kRowSteps));
  if (!areManyRows(rows)) {
    Value isShort =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, sizes.back(), index(b, kMostSteps));
    isFit = arith::AndIOp::create(b, loc, isFit, isShort);
  }
  auto either = scf::IfOp::create(b, loc, isFit, /*withElseRegion=*/true);
  b.setInsertionPointToStart(either.thenBlock());
  launch();
  for (const RowStep &step : rows.steps)
    step.op->moveBefore(either.elseBlock()->getTerminator());
}

void FusedRows::launch() {
  Value count = index(b, 1);
  SmallVector<Value> dimensions(sizes.begin(), sizes.end() - 1);
  for (Value size : dimensions)
    count = b.createOrFold<arith::MulIOp>(loc, count, size);
  int64_t isLong = knownRows(rows) == 1 ? kLongRowLanes : kLongRow;
  launchRows(b, loc, count, sizes.back(), isLong, [&](RowThreads made) {
    in = OpBuilder(made.launch.getBody().front().getTerminator());
    zero = index(in, 0);
    wide = WideRows::of(rows, length, made);
    if (!wide)
      return writeRow(made, count, dimensions);
    Value isFit = wide->fit(in, loc, rows, sizes.back());
    auto either = scf::IfOp::create(in, loc, isFit, /*withElseRegion=*/true);
    either->setAttr(kWideRows, in.getUnitAttr());
    in = either.getThenBodyBuilder();
    if (wide->areBlocks)
      writeRowsOfBlock(made, count, dimensions);
    else
      writeRow(made, count, dimensions);
    wide.reset();
    in = either.getElseBodyBuilder();
    writeRow(made, count, dimensions);
  });
}

void FusedRows::writeRowsOfBlock(RowThreads made, Value count, ArrayRef<Value> dimensions) {
  made.exists = arith::ConstantIntOp::create(in, loc, 1, 1);
  made.lanes = wide->lanes;
  if (made.together == 1)
    return writeRow(made, count, dimensions);
  Value before = arith::MulIOp::create(in, loc, made.launch.getThreadIds().y, index(in, kRowLanes));
  made.lane = arith::AddIOp::create(in, loc, before, made.lane);
  Value together = index(in, made.together), one = index(in, 1);
  Value first = arith::MulIOp::create(in, loc, made.launch.getBlockIds().x, together);
  Value behind = arith::MinUIOp::create(in, loc, arith::AddIOp::create(in, loc, first, together), count);
  auto loop = scf::ForOp::create(in, loc, first, behind, one);
  in = OpBuilder(loop.getBody()->getTerminator());
  made.row = loop.getInductionVar();
  writeRow(made, count, dimensions);
  gpu::BarrierOp::create(in, loc); // before the next row's sums take the place of this one's
}

void FusedRows::writeRow(RowThreads made, Value count, ArrayRef<Value> dimensions) {
  threads = made;
  // Where no row is left for a subgroup it looks at the last one, goes through nothing, and leaves nothing.
  Value last = arith::SubIOp::create(in, loc, count, index(in, 1));
  row = placeOfRow(in, loc, arith::MinUIOp::create(in, loc, made.row, last), dimensions);
  until = arith::SelectOp::create(in, loc, made.exists, sizes.back(), zero);
  leaving.clear();
  read.clear();
  kept.clear();
  for (const RowStep &each : rows.steps)
    add(each);
  goThrough();
  leave();
}

void FusedRows::add(const RowStep &next) {
  auto waits = [&](const RowAccess &access) {
    return llvm::any_of(
        pending, [&](const Pending &made) { return made.step->sums && writes(*made.step, access.buffer); });
  };
  if (llvm::any_of(next.inputs, waits) || llvm::any_of(next.outputs, waits))
    goThrough();
  Pending made{&next, {}, {}};
  for (const RowAccess &input : next.inputs)
    made.inputs.push_back(input.isAlongRow() ? Value() : numberOf(input));
  bool writesRows = !next.isOfElements || next.sums;
  for (auto [i, output] : llvm::enumerate(next.outputs))
    made.before.push_back(writesRows && isRead(next, unsigned(i)) ? numberOf(output) : Value());
  if (next.isOfElements) {
    pending.push_back(std::move(made));
    return;
  }
  for (auto [output, value] : llvm::zip_equal(next.outputs, resultsOfRow(made)))
    leaving[output.buffer] = {value, &output};
}

/// Of a step that is one number for each row. A subgroup without a row has the sums of nothing, which may be
/// no divisor and no place in memory.
SmallVector<Value> FusedRows::resultsOfRow(const Pending &made) {
  auto ofRow = [&](OpBuilder &b) { return results(b, made, zero, made.inputs, made.before); };
  if (threads.together == 1 || isSpeculatableStep(*made.step))
    return ofRow(in);
  auto either = scf::IfOp::create(
      in, loc, threads.exists, [&](OpBuilder &b, Location) { scf::YieldOp::create(b, loc, ofRow(b)); },
      [&](OpBuilder &b, Location) {
        SmallVector<Value> nothing;
        for (const RowAccess &output : made.step->outputs)
          nothing.push_back(zeroOf(b, loc, getElementTypeOrSelf(output.buffer.getType())));
        scf::YieldOp::create(b, loc, nothing);
      });
  return either.getResults();
}

bool FusedRows::isRead(const RowStep &each, unsigned output) {
  auto op = dyn_cast<linalg::LinalgOp>(each.op);
  return op && !op.getRegionOutputArgs()[output].use_empty();
}

Value FusedRows::numberOf(const RowAccess &access) {
  if (!access.memory)
    return access.number;
  if (auto left = leaving.find(access.buffer); left != leaving.end())
    return left->second.value;
  auto [known, isNew] = read.try_emplace(access.buffer);
  // Memory that no step writes may be found in several ways.
  if (isNew || !isWritten(access.buffer))
    known->second = memref::LoadOp::create(in, loc, access.memory, at(access.place, zero));
  return known->second;
}

bool FusedRows::writes(const RowStep &each, Value buffer) {
  return llvm::any_of(each.outputs, [&](const RowAccess &output) { return output.buffer == buffer; });
}

bool FusedRows::isWritten(Value buffer) const {
  return llvm::any_of(rows.steps, [&](const RowStep &each) { return writes(each, buffer); });
}

SmallVector<Value> FusedRows::at(ArrayRef<int> roles, Value number) const {
  SmallVector<Value> found;
  for (int role : roles)
    found.push_back(role == kAlongRow ? number : role == kUnit ? zero : row[size_t(role)]);
  return found;
}

SmallVector<Value> FusedRows::results(OpBuilder &builder, const Pending &made, Value number,
                                      ValueRange inputs, ValueRange before) const {
  auto op = dyn_cast<linalg::LinalgOp>(made.step->op);
  if (!op)
    return {inputs[0]}; // a copy
  return yieldedOf(builder, op, at(made.step->loops, number), inputs, before);
}

void FusedRows::goThrough() {
  if (pending.empty())
    return;
  SmallVector<Value> sums;
  for (const Pending &made : pending)
    if (made.step->sums)
      for (unsigned i = 0; i < made.step->outputs.size(); ++i)
        sums.push_back(made.step->sums->neutral(in, i));
  if (!wide)
    sums = doElements(sums);
  else if (wide->pieces)
    sums = doKnownPieces(sums);
  else
    sums = doPieces(sums);
  auto sum = sums.begin();
  for (const Pending &made : pending) {
    if (!made.step->sums)
      continue;
    for (auto [i, output] : llvm::enumerate(made.step->outputs)) {
      auto join = [&, i = i](Value one, Value other) {
        return made.step->sums->joined(in, unsigned(i), one, other);
      };
      leaving[output.buffer] = {join(made.before[i], threads.joined(in, loc, *sum++, join)), &output};
    }
  }
  pending.clear();
}

SmallVector<Value> FusedRows::doElements(ValueRange sums) {
  auto loop = scf::ForOp::create(in, loc, threads.lane, until, index(in, threads.lanes), sums,
                                 [&](OpBuilder &body, Location, Value number, ValueRange sofar) {
                                   scf::YieldOp::create(body, loc, doElement(body, number, sofar));
                                 });
  loop->setAttr(kIndependentSteps, in.getI64IntegerAttr(0));
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> FusedRows::doElement(OpBuilder &body, Value number, ValueRange sofar) {
  llvm::SmallMapVector<Value, Value, 8> here; // elements by their buffer
  auto elementOf = [&](const RowAccess &access) -> Value {
    if (auto known = here.find(access.buffer); known != here.end() && isWritten(access.buffer))
      return known->second;
    return here[access.buffer] = memref::LoadOp::create(body, loc, access.memory, at(access.place, number));
  };
  SmallVector<Value> sums;
  for (const Pending &made : pending) {
    SmallVector<Value> inputs;
    for (auto [input, value] : llvm::zip_equal(made.step->inputs, made.inputs))
      inputs.push_back(value ? value : elementOf(input));
    if (const std::optional<LinalgSteps> &steps = made.step->sums) {
      SmallVector<Value> values = steps->valuesOf(body, at(made.step->loops, number), inputs);
      for (auto [i, value] : llvm::enumerate(values))
        sums.push_back(steps->joined(body, unsigned(i), sofar[sums.size()], value));
      continue;
    }
    SmallVector<Value> before;
    for (auto [i, output] : llvm::enumerate(made.step->outputs))
      before.push_back(isRead(*made.step, unsigned(i)) ? elementOf(output) : Value());
    for (auto [output, value] :
         llvm::zip_equal(made.step->outputs, results(body, made, number, inputs, before))) {
      memref::StoreOp::create(body, loc, value, output.memory, at(output.place, number));
      here.remove_if([buffer = output.buffer](const auto &each) { return mayOverlap(each.first, buffer); });
      here[output.buffer] = value;
    }
  }
  return sums;
}

void FusedRows::leave() {
  if (leaving.empty())
    return;
  auto wasRead = [&](const auto &left) {
    return llvm::any_of(read, [&](const auto &known) { return mayOverlap(known.first, left.first); });
  };
  if (llvm::any_of(leaving, wasRead))
    gpu::BarrierOp::create(in, loc);
  Value isFirst = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, threads.lane, zero);
  Value leaves = arith::AndIOp::create(in, loc, isFirst, threads.exists);
  scf::IfOp::create(in, loc, leaves, [&](OpBuilder &then, Location) {
    for (const auto &[buffer, left] : leaving)
      memref::StoreOp::create(then, loc, left.value, left.to->memory, at(left.to->place, zero));
    scf::YieldOp::create(then, loc);
  });
}

void FusedRows::eraseUnread() {
  llvm::SmallSetVector<Operation *, 8> allocations;
  for (const RowStep &each : rows.steps)
    for (const RowAccess &output : each.outputs)
      if (auto allocation = output.memory.getDefiningOp<memref::AllocOp>())
        allocations.insert(allocation);
  allocations.insert_range(unused);
  for (Operation *allocation : allocations) {
    SmallVector<Operation *> users(allocation->getUsers());
    if (!llvm::all_of(users, [&](Operation *user) {
          auto store = dyn_cast<memref::StoreOp>(user);
          return isa<memref::DeallocOp>(user) || (store && store.getMemRef() == allocation->getResult(0));
        }))
      continue;
    for (Operation *user : users)
      user->erase();
    allocation->erase();
  }
}

Value FusedRows::index(OpBuilder &at, int64_t value) const {
  return arith::ConstantIndexOp::create(at, loc, value);
}

namespace {

struct FuseRows : public PassWrapper<FuseRows, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseRows)

  StringRef getArgument() const final { return "offload-fuse-rows"; }
  StringRef getDescription() const final { return "Make one kernel of what is done row by row"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, complex::ComplexDialect, gpu::GPUDialect,
                    memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    llvm::SmallSetVector<Block *, 8> blocks;
    for (linalg::LinalgOp op : launchableLinalg(getOperation()))
      blocks.insert(op->getBlock());
    for (Block *block : blocks)
      for (RowSteps &rows : rowStepsOf(*block))
        if (isWorthIt(rows))
          FusedRows(rows).replace();
  }
};

} // namespace

void registerFuseRowsPass() { PassRegistration<FuseRows>(); }

} // namespace offload
