//===- find_places.cpp - offload-find-places ------------------------------===//
//
// A linalg operation that finds the largest (or smallest) element of each row and its place, as argmax does,
// keeps two values from step to step, of which one decides about the other. No order of the steps but the
// author's gives the same, so one thread would do them all: the logits of one token, say, would be read by
// one thread of a device. Where there are many steps this becomes what other passes share out among threads,
// and one kernel of rows:
//
//  * the largest element of each row;
//  * the first place that has it;
//  * both where the author's comparison prefers them to what the outputs held before.
//
// The comparison has to be strict: then the first of equal elements stays, and so does what was there before.
// A NaN is passed over, or the first one wins, as the author's operations say. Where the value is a maximumf
// and the place goes by `ogt`, a NaN has no place: in such rows the place stays what it was before.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "loops/row_threads.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// Rows of more are left to the author's loop: 32 bits hold a place, which every processor compares many of
/// at once, unlike 64 bits.
constexpr int64_t kMostSteps = std::numeric_limits<int32_t>::max();

/// What is looked for, as operations say it.
enum class Wanted { largest, smallest, largestUnsigned, smallestUnsigned };

/// What an operation on buffers finds.
struct Search {
  linalg::GenericOp op;
  unsigned loop;         // that reduces
  unsigned value, place; // numbers of the outputs
  Value element, number; // of a step: values of the body
  Wanted wanted;
  bool firstNaN; // wins
};

/// A comparison that prefers one value to another one, and to an equal one not.
struct Preference {
  Value preferred, to;
  Wanted wanted;
  bool isUnordered = false; // a NaN is preferred too
};

std::optional<Preference> preferenceOf(Value condition) {
  if (auto integers = condition.getDefiningOp<arith::CmpIOp>()) {
    Value a = integers.getLhs(), b = integers.getRhs();
    switch (integers.getPredicate()) {
    case arith::CmpIPredicate::sgt:
      return Preference{a, b, Wanted::largest};
    case arith::CmpIPredicate::slt:
      return Preference{a, b, Wanted::smallest};
    case arith::CmpIPredicate::ugt:
      return Preference{a, b, Wanted::largestUnsigned};
    case arith::CmpIPredicate::ult:
      return Preference{a, b, Wanted::smallestUnsigned};
    default:
      return std::nullopt;
    }
  }
  if (auto floats = condition.getDefiningOp<arith::CmpFOp>()) {
    Value a = floats.getLhs(), b = floats.getRhs();
    switch (floats.getPredicate()) {
    case arith::CmpFPredicate::OGT:
      return Preference{a, b, Wanted::largest};
    case arith::CmpFPredicate::OLT:
      return Preference{a, b, Wanted::smallest};
    case arith::CmpFPredicate::UGT:
      return Preference{a, b, Wanted::largest, true};
    case arith::CmpFPredicate::ULT:
      return Preference{a, b, Wanted::smallest, true};
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Wanted opposite(Wanted wanted) {
  switch (wanted) {
  case Wanted::largest:
    return Wanted::smallest;
  case Wanted::smallest:
    return Wanted::largest;
  case Wanted::largestUnsigned:
    return Wanted::smallestUnsigned;
  case Wanted::smallestUnsigned:
    return Wanted::largestUnsigned;
  }
  llvm_unreachable("one of these");
}

/// The same said of the other one: "b < a" is "a > b".
std::optional<Preference> preferenceTo(Value condition, Value before) {
  std::optional<Preference> found = preferenceOf(condition);
  if (!found || found->preferred == found->to)
    return std::nullopt;
  if (found->preferred == before) {
    std::swap(found->preferred, found->to);
    found->wanted = opposite(found->wanted);
  }
  return found->to == before ? found : std::nullopt;
}

bool isOrdered(Value condition, Value value) {
  auto floats = condition.getDefiningOp<arith::CmpFOp>();
  return floats && floats.getPredicate() == arith::CmpFPredicate::ORD && floats.getLhs() == value &&
         floats.getRhs() == value;
}

/// Whether an element is preferred to the value before. A NaN that is preferred has to stay: the value before
/// it is asked whether it is one.
std::optional<Preference> replacing(Value condition, Value before) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    for (auto [compares, orders] :
         {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())})
      if (isOrdered(orders, before))
        if (auto found = preferenceTo(compares, before); found && found->isUnordered)
          return found;
    return std::nullopt;
  }
  std::optional<Preference> found = preferenceTo(condition, before);
  return found && !found->isUnordered ? found : std::nullopt;
}

/// The larger of two numbers, as an operation that linalg's reductions have.
Value joined(OpBuilder &b, Location loc, Wanted wanted, bool firstNaN, Value one, Value other) {
  bool floats = isa<FloatType>(one.getType());
  switch (wanted) {
  case Wanted::largest:
    if (!floats)
      return arith::MaxSIOp::create(b, loc, one, other);
    if (firstNaN)
      return arith::MaximumFOp::create(b, loc, one, other);
    return arith::MaxNumFOp::create(b, loc, one, other);
  case Wanted::smallest:
    if (!floats)
      return arith::MinSIOp::create(b, loc, one, other);
    if (firstNaN)
      return arith::MinimumFOp::create(b, loc, one, other);
    return arith::MinNumFOp::create(b, loc, one, other);
  case Wanted::largestUnsigned:
    return arith::MaxUIOp::create(b, loc, one, other);
  case Wanted::smallestUnsigned:
    return arith::MinUIOp::create(b, loc, one, other);
  }
  llvm_unreachable("one of these");
}

/// What every element is joined with.
TypedAttr neutral(Type type, Wanted wanted, bool firstNaN) {
  if (auto floats = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &kind = floats.getFloatSemantics();
    if (!firstNaN)
      return FloatAttr::get(type, APFloat::getQNaN(kind));
    bool negative = wanted == Wanted::largest;
    return FloatAttr::get(type, APFloat::semanticsHasInf(kind) ? APFloat::getInf(kind, negative)
                                                               : APFloat::getLargest(kind, negative));
  }
  unsigned width = type.getIntOrFloatBitWidth();
  switch (wanted) {
  case Wanted::largest:
    return IntegerAttr::get(type, APInt::getSignedMinValue(width));
  case Wanted::smallest:
    return IntegerAttr::get(type, APInt::getSignedMaxValue(width));
  case Wanted::largestUnsigned:
    return IntegerAttr::get(type, APInt::getMinValue(width));
  case Wanted::smallestUnsigned:
    return IntegerAttr::get(type, APInt::getMaxValue(width));
  }
  llvm_unreachable("one of these");
}

/// Whether the value is the number of the loop's step, in whatever type that holds it.
bool isNumberOf(Value value, unsigned loop) {
  if (!value.getType().isInteger(32) && !value.getType().isInteger(64))
    return false;
  while (Operation *cast = value.getDefiningOp()) {
    if (auto number = dyn_cast<linalg::IndexOp>(cast))
      return number.getDim() == loop;
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(cast) ||
        (value.getType().isInteger() && value.getType().getIntOrFloatBitWidth() < 32))
      return false;
    value = cast->getOperand(0);
  }
  return false;
}

/// Whether all that uses a value are these operations.
bool isUsedBy(Value value, ArrayRef<Operation *> users) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return llvm::is_contained(users, user); });
}

std::optional<Search> searchWith(linalg::GenericOp op, unsigned loop, unsigned value) {
  unsigned place = 1 - value;
  Operation *end = op.getBody()->getTerminator();
  Value before = op.getRegionOutputArgs()[value], placeBefore = op.getRegionOutputArgs()[place];
  auto chosen = end->getOperand(place).getDefiningOp<arith::SelectOp>();
  if (!chosen || chosen.getFalseValue() != placeBefore || !placeBefore.hasOneUse() || !chosen->hasOneUse() ||
      !isNumberOf(chosen.getTrueValue(), loop))
    return std::nullopt;
  Value condition = chosen.getCondition();
  std::optional<Preference> found = replacing(condition, before);
  Operation *last = end->getOperand(value).getDefiningOp();
  if (!found || !last || !last->hasOneUse())
    return std::nullopt;
  bool firstNaN = found->isUnordered;
  if (auto select = dyn_cast<arith::SelectOp>(last)) {
    if (select.getCondition() != condition || select.getTrueValue() != found->preferred ||
        select.getFalseValue() != before)
      return std::nullopt;
  } else {
    bool isJoined = false;
    switch (found->wanted) {
    case Wanted::largest:
      isJoined = isa<arith::MaxSIOp>(last) || (isa<arith::MaximumFOp>(last) && !firstNaN);
      break;
    case Wanted::smallest:
      isJoined = isa<arith::MinSIOp>(last) || (isa<arith::MinimumFOp>(last) && !firstNaN);
      break;
    case Wanted::largestUnsigned:
      isJoined = isa<arith::MaxUIOp>(last);
      break;
    case Wanted::smallestUnsigned:
      isJoined = isa<arith::MinUIOp>(last);
      break;
    }
    Value a = last->getOperand(0), b = isJoined ? last->getOperand(1) : Value();
    if (!isJoined || !((a == found->preferred && b == before) || (b == found->preferred && a == before)))
      return std::nullopt;
    firstNaN = isa<FloatType>(before.getType());
  }
  SmallVector<Operation *> compares = {condition.getDefiningOp(), last};
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    compares.push_back(both.getLhs().getDefiningOp());
    compares.push_back(both.getRhs().getDefiningOp());
  }
  // An element that asks for what was found before is another's search.
  if (!isUsedBy(before, compares) || !isUsedBy(condition, {chosen, last}))
    return std::nullopt;
  return Search{op, loop, value, place, found->preferred, chosen.getTrueValue(), found->wanted, firstNaN};
}

std::optional<Search> searchOf(linalg::LinalgOp operation) {
  auto op = dyn_cast<linalg::GenericOp>(*operation);
  if (!op || !op.hasPureBufferSemantics() || op.getNumDpsInits() != 2 || op.getNumReductionLoops() != 1 ||
      !mayBeRepeated(operation))
    return std::nullopt;
  SmallVector<unsigned> reduction;
  operation.getReductionDims(reduction);
  unsigned loop = reduction.front();
  AffineMap map = operation.getMatchingIndexingMap(&op.getDpsInitsMutable()[0]);
  if (map != operation.getMatchingIndexingMap(&op.getDpsInitsMutable()[1]) || !map.isProjectedPermutation() ||
      map.isFunctionOfDim(loop) || map.getNumResults() != op.getNumParallelLoops())
    return std::nullopt;
  for (Value output : op.getRegionOutputArgs())
    if (!output.getType().isIntOrFloat() || output.getType().isInteger(1))
      return std::nullopt;
  for (unsigned value : {0u, 1u})
    if (std::optional<Search> found = searchWith(op, loop, value))
      return found;
  return std::nullopt;
}

/// Rows, whose threads are few, are worth sharing out sooner than columns.
int64_t leastStepsOf(Search search) {
  auto op = cast<linalg::LinalgOp>(search.op.getOperation());
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.getMatchingIndexingMap(input).isPermutation() && loopAlong(*input) == search.loop)
      return kRowSteps;
  return kFewSteps;
}

class Steps {
public:
  explicit Steps(const Search &search) : search(search), op(search.op), b(op), loc(op.getLoc()) {}

  void write() {
    SmallVector<Value> sizes;
    for (const Range &range : cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    Value few = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, sizes[search.loop],
                                      arith::ConstantIndexOp::create(b, loc, kMostSteps));
    launchWhereLong(
        b, op, sizes, {{search.loop, leastStepsOf(search)}},
        [&] {
          Value values = allocate(neutral(elementType(search.value), search.wanted, search.firstNaN));
          reduce(values, {}, [&](OpBuilder &in, IRMapping &map, Value before) {
            return joined(in, loc, search.wanted, search.firstNaN, before, element(in, map));
          });
          Value places = allocate(b.getI32IntegerAttr(int32_t(kMostSteps)));
          reduce(places, values, [&](OpBuilder &in, IRMapping &map, Value before) -> Value {
            Value found = map.lookup(op.getRegionOutputArgs()[search.value]);
            Value has = isElement(in, element(in, map), found);
            Value place = arith::IndexCastOp::create(in, loc, in.getI32Type(),
                                                     linalg::IndexOp::create(in, loc, search.loop));
            Value none = arith::ConstantOp::create(in, loc, in.getI32IntegerAttr(int32_t(kMostSteps)));
            return arith::MinSIOp::create(in, loc, before,
                                          arith::SelectOp::create(in, loc, has, place, none));
          });
          choose(values, places);
          memref::DeallocOp::create(b, loc, values);
          memref::DeallocOp::create(b, loc, places);
        },
        few);
  }

private:
  Value output(unsigned i) { return op.getDpsInits()[i]; }
  Type elementType(unsigned i) { return op.getRegionOutputArgs()[i].getType(); }
  AffineMap outputMap() { return op.getMatchingIndexingMap(op.getDpsInitOperand(0)); }

  /// Memory with the shape of the outputs, filled.
  Value allocate(TypedAttr value) {
    auto like = cast<MemRefType>(output(0).getType());
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < like.getRank(); ++dim)
      if (like.isDynamicDim(unsigned(dim)))
        sizes.push_back(memref::DimOp::create(b, loc, output(0), dim));
    Value made = memref::AllocOp::create(b, loc, MemRefType::get(like.getShape(), value.getType()), sizes);
    linalg::FillOp::create(b, loc, ValueRange(arith::ConstantOp::create(b, loc, value)), ValueRange(made));
    return made;
  }

  /// A loop over all steps; `before`, what the output holds, is one of the body's values.
  void reduce(Value to, Value found, function_ref<Value(OpBuilder &, IRMapping &, Value)> body) {
    SmallVector<Value> inputs = op.getDpsInputs();
    SmallVector<AffineMap> maps(op.getIndexingMapsArray());
    maps.truncate(inputs.size());
    if (found) {
      inputs.push_back(found);
      maps.push_back(outputMap());
    }
    maps.push_back(outputMap());
    linalg::GenericOp::create(b, loc, TypeRange(), inputs, ValueRange(to), maps, op.getIteratorTypesArray(),
                              [&](OpBuilder &in, Location, ValueRange arguments) {
                                IRMapping map;
                                map.map(op.getRegionInputArgs(), arguments.take_front(op.getNumDpsInputs()));
                                if (found)
                                  map.map(op.getRegionOutputArgs()[search.value],
                                          arguments[unsigned(op.getNumDpsInputs())]);
                                linalg::YieldOp::create(in, loc, body(in, map, arguments.back()));
                              });
  }

  /// The author's choice between what was found and what the outputs hold.
  void choose(Value values, Value places) {
    int64_t rank = cast<MemRefType>(values.getType()).getRank();
    SmallVector<AffineMap> maps(4, b.getMultiDimIdentityMap(unsigned(rank)));
    SmallVector<utils::IteratorType> kinds(size_t(rank), utils::IteratorType::parallel);
    linalg::GenericOp::create(b, loc, TypeRange(), ValueRange{values, places}, op.getDpsInits(), maps, kinds,
                              [&](OpBuilder &in, Location, ValueRange arguments) {
                                IRMapping map;
                                map.map(search.element, arguments[0]);
                                Value number = arguments[1];
                                if (search.number.getType() != number.getType())
                                  number = arith::ExtSIOp::create(in, loc, search.number.getType(), number);
                                map.map(search.number, number);
                                map.map(op.getRegionOutputArgs(), arguments.drop_front(2));
                                SmallVector<Value> chosen;
                                for (Value value : op.getBody()->getTerminator()->getOperands())
                                  chosen.push_back(copied(in, value, map));
                                linalg::YieldOp::create(in, loc, chosen);
                              });
  }

  Value element(OpBuilder &in, IRMapping &map) { return copied(in, search.element, map); }

  Value isElement(OpBuilder &in, Value element, Value found) {
    if (!isa<FloatType>(element.getType()))
      return arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, element, found);
    Value equal = arith::CmpFOp::create(in, loc, arith::CmpFPredicate::OEQ, element, found);
    if (!search.firstNaN)
      return equal;
    // Where there is one, it is what was found.
    Value isNaN = arith::CmpFOp::create(in, loc, arith::CmpFPredicate::UNO, element, element);
    return arith::OrIOp::create(in, loc, equal, isNaN);
  }

  /// A value of the body, of copies of the operations that it needs and `map` does not have.
  Value copied(OpBuilder &in, Value value, IRMapping &map) {
    Operation *made = value.getDefiningOp();
    if (map.contains(value) || !made || made->getBlock() != op.getBody())
      return map.lookupOrDefault(value);
    made->walk([&](Operation *each) {
      for (Value operand : each->getOperands())
        (void)copied(in, operand, map);
    });
    in.clone(*made, map);
    return map.lookup(value);
  }

  Search search;
  linalg::GenericOp op;
  OpBuilder b;
  Location loc;
};

struct FindPlaces : public PassWrapper<FindPlaces, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FindPlaces)

  StringRef getArgument() const final { return "offload-find-places"; }
  StringRef getDescription() const final { return "Find the largest elements before their places"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, linalg::LinalgDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : launchableLinalg(getOperation())) {
      std::optional<Search> found = searchOf(op);
      if (!found)
        continue;
      int64_t steps = op.getStaticLoopRanges()[found->loop];
      if (ShapedType::isDynamic(steps) || (steps >= leastStepsOf(*found) && steps < kMostSteps))
        Steps(*found).write();
    }
  }
};

} // namespace

void registerFindPlacesPass() { PassRegistration<FindPlaces>(); }

} // namespace offload
