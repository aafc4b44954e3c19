//===- linalg_steps.cpp - The steps of a linalg operation that reduces ----===//

#include "loops/linalg_steps.h"
#include "loops/parallel_loops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

bool isAssociative(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(op);
}

/// The operand that is a step's value.
Value stepsOf(Operation *combiner, Value output) {
  return combiner->getOperand(combiner->getOperand(0) == output);
}

} // namespace

SmallVector<linalg::LinalgOp> hostLinalg(Operation *root) {
  SmallVector<linalg::LinalgOp> found;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp, gpu::LaunchOp, scf::ParallelOp, scf::ForallOp, affine::AffineParallelOp>(op))
      return WalkResult::skip();
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp)
      return WalkResult::advance();
    found.push_back(linalgOp);
    return WalkResult::skip();
  });
  return found;
}

SmallVector<linalg::LinalgOp> launchableLinalg(ModuleOp module) {
  SmallPtrSet<Operation *, 4> inKernels = calledFromKernels(module);
  SmallVector<linalg::LinalgOp> found = hostLinalg(module);
  llvm::erase_if(
      found, [&](linalg::LinalgOp op) { return inKernels.contains(op->getParentOfType<func::FuncOp>()); });
  return found;
}

std::optional<unsigned> loopAlong(OpOperand &operand) {
  AffineMap map = cast<linalg::LinalgOp>(operand.getOwner()).getMatchingIndexingMap(&operand);
  auto memref = dyn_cast<MemRefType>(operand.get().getType());
  if (!memref || !memref.isStrided() || !map.isProjectedPermutation())
    return std::nullopt;
  SmallVector<int64_t> strides = memref.getStridesAndOffset().first;
  for (unsigned i = map.getNumResults(); i-- > 0;)
    if (strides[i] == 1)
      return map.getDimPosition(i);
  return std::nullopt;
}

linalg::GenericOp generalized(linalg::LinalgOp op, RewriterBase &rewriter) {
  rewriter.setInsertionPoint(op);
  auto general = dyn_cast<linalg::GenericOp>(*op);
  if (!general)
    if (FailureOr<linalg::GenericOp> made = linalg::generalizeNamedOp(rewriter, op); succeeded(made))
      general = *made;
  if (general)
    rewriter.setInsertionPoint(general);
  return general;
}

bool mayBeRepeated(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &each) {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(&each);
    return effects && llvm::all_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
             return isa<MemoryEffects::Read>(effect.getEffect());
           });
  });
}

void launchWhereLong(OpBuilder &b, linalg::LinalgOp op, ValueRange sizes,
                     ArrayRef<std::pair<unsigned, int64_t>> least, function_ref<void()> launch, Value also) {
  Location loc = op.getLoc();
  Value enough;
  for (auto [loop, steps] : least)
    if (ShapedType::isDynamic(op.getStaticLoopRanges()[loop])) {
      Value isLong = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, sizes[loop],
                                           arith::ConstantIndexOp::create(b, loc, steps));
      enough = enough ? arith::AndIOp::create(b, loc, enough, isLong).getResult() : isLong;
    }
  if (!enough) {
    launch();
    op.erase();
    return;
  }
  if (also)
    enough = arith::AndIOp::create(b, loc, enough, also);
  auto either = scf::IfOp::create(b, loc, enough, /*withElseRegion=*/true);
  b.setInsertionPointToStart(either.thenBlock());
  launch();
  op->moveBefore(either.elseBlock(), either.elseBlock()->begin());
}

std::optional<LinalgSteps> LinalgSteps::of(linalg::LinalgOp op) {
  // A loop that reduces may also go along an output, whose elements then have a step each, or some of them.
  SmallVector<unsigned> reduction;
  op.getReductionDims(reduction);
  for (OpOperand &output : op.getDpsInitsMutable())
    for (unsigned loop : reduction)
      if (op.getMatchingIndexingMap(&output).isFunctionOfDim(loop))
        return std::nullopt;
  SmallVector<Operation *> found;
  for (unsigned i = 0; i < op.getNumDpsInits(); ++i) {
    SmallVector<Operation *> used;
    // What an output is on the way may go nowhere else: to another output's value, say.
    if (!matchReduction(op.getRegionOutputArgs(), i, used) || used.size() != 1 || !isAssociative(used[0]) ||
        !used[0]->hasOneUse() || !op.getRegionOutputArgs()[i].hasOneUse())
      return std::nullopt;
    found.push_back(used[0]);
  }
  return LinalgSteps(op, std::move(found));
}

SmallVector<Value> placeOf(OpBuilder &in, OpOperand &operand, ValueRange iteration) {
  auto op = cast<linalg::LinalgOp>(operand.getOwner());
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<Value> place;
  for (AffineExpr expression : map.getResults()) {
    AffineMap one = AffineMap::get(map.getNumDims(), map.getNumSymbols(), expression);
    place.push_back(affine::makeComposedAffineApply(in, op.getLoc(), one, getAsOpFoldResult(iteration)));
  }
  return place;
}

SmallVector<Value> yieldedOf(OpBuilder &in, linalg::LinalgOp op, ValueRange iteration, ValueRange inputs,
                             ValueRange outputs) {
  IRMapping map;
  map.map(op.getRegionInputArgs(), inputs);
  map.map(op.getRegionOutputArgs(), outputs);
  Block *body = op.getBlock();
  for (Operation &each : body->without_terminator())
    if (auto number = dyn_cast<linalg::IndexOp>(each))
      map.map(number.getResult(), iteration[number.getDim()]);
    else
      in.clone(each, map);
  SmallVector<Value> yielded;
  for (Value value : body->getTerminator()->getOperands())
    yielded.push_back(map.lookupOrDefault(value));
  return yielded;
}

SmallVector<Value> LinalgSteps::values(OpBuilder &in, ValueRange iteration) const {
  SmallVector<Value> inputs;
  for (OpOperand *input : op.getDpsInputOperands()) {
    inputs.push_back(input->get());
    if (isa<MemRefType>(inputs.back().getType()))
      inputs.back() = memref::LoadOp::create(in, op.getLoc(), input->get(), placeOf(in, *input, iteration));
  }
  return valuesOf(in, iteration, inputs);
}

SmallVector<Value> LinalgSteps::valuesOf(OpBuilder &in, ValueRange iteration, ValueRange inputs) const {
  IRMapping map;
  Block *body = op.getBlock();
  map.map(op.getRegionInputArgs(), inputs);
  for (Operation &each : body->without_terminator())
    if (auto number = dyn_cast<linalg::IndexOp>(each))
      map.map(number.getResult(), iteration[number.getDim()]);
    else if (auto extended = dyn_cast<arith::ExtFOp>(each);
             extended && map.lookupOrDefault(extended.getIn()).getType() == extended.getType())
      map.map(extended.getOut(), map.lookupOrDefault(extended.getIn()));
    else if (!llvm::is_contained(combiners, &each))
      in.clone(each, map);
  SmallVector<Value> values;
  for (auto [combiner, output] : llvm::zip_equal(combiners, op.getRegionOutputArgs()))
    values.push_back(map.lookupOrDefault(stepsOf(combiner, output)));
  return values;
}

Value LinalgSteps::neutral(OpBuilder &in, unsigned output) const {
  Operation *combiner = combiners[output];
  Type type = combiner->getResult(0).getType();
  auto floats = dyn_cast<FloatType>(type);
  auto math = dyn_cast<arith::ArithFastMathInterface>(combiner);
  auto has = [&](arith::FastMathFlags flag) {
    return math && arith::bitEnumContainsAll(math.getFastMathFlagsAttr().getValue(), flag);
  };
  TypedAttr value;
  if (isa<arith::AddFOp>(combiner)) // the sum of this and of zero is zero, whatever its sign
    value = FloatAttr::get(floats, APFloat::getZero(floats.getFloatSemantics(), /*Negative=*/true));
  else if (isa<arith::MaxNumFOp, arith::MinNumFOp>(combiner) && !has(arith::FastMathFlags::nnan))
    value = FloatAttr::get(floats, APFloat::getQNaN(floats.getFloatSemantics()));
  else
    value = *arith::getNeutralElement(combiner);
  return arith::ConstantOp::create(in, op.getLoc(), value);
}

Value LinalgSteps::joined(OpBuilder &in, unsigned output, Value one, Value other) const {
  Operation *combiner = combiners[output];
  Value before = op.getRegionOutputArgs()[output];
  IRMapping both;
  both.map(before, one);
  both.map(stepsOf(combiner, before), other);
  Operation *made = in.clone(*combiner, both);
  // Where no sum of the author's order runs over, one of another order may.
  if (auto sum = dyn_cast<arith::AddIOp>(made))
    sum.setOverflowFlags(arith::IntegerOverflowFlags::none);
  else if (auto product = dyn_cast<arith::MulIOp>(made))
    product.setOverflowFlags(arith::IntegerOverflowFlags::none);
  else if (auto floats = dyn_cast<arith::AddFOp>(made))
    if (auto factors = other.getDefiningOp<arith::MulFOp>(); // not rounded in between, where the chip can
        factors && factors->getBlock() == made->getBlock()) {
      auto contract = [](auto each) {
        each.setFastmath(arith::bitEnumSet(each.getFastmath(), arith::FastMathFlags::contract));
      };
      contract(floats);
      contract(factors);
    }
  return made->getResult(0);
}

} // namespace offload
