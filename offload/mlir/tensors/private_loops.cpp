//===- private_loops.cpp - offload-private-loops --------------------------===//
//
// What a loop in the body of a parallel loop hands on to its next iteration is stored where this one's came
// from. Bufferization would give it memory of its own where the old value is read once more, as that of a
// running maximum is: a loop with two buffers at a time, for which a thread has no allocator. What is stored
// there anyhow becomes a copy to itself, which canonicalization removes.
//
// What an inner loop makes of the place is left to bufferization, and to offload-carried-memory after it: to
// the former's first look, the inner loop's result is in the place before it is stored there, and the program
// is refused.
//
// A branch that keeps what the iteration began with, or takes another tensor, is to bufferization one memory
// with both: whoever writes to the other one would change what is kept, and the program is refused. The other
// one is copied where the branch takes it.
//
//===----------------------------------------------------------------------===//

#include "input/size_origin.h"
#include "names.h"
#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

using Values = llvm::SmallPtrSet<Value, 8>;

/// Adds the tensors that one may be, or be part of.
void addWholes(Value tensor, Values &wholes) {
  Operation *op = tensor.getDefiningOp();
  if (!wholes.insert(tensor).second || !op)
    return;
  if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    addWholes(op->getOperand(0), wholes);
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    addWholes(choice.getTrueValue(), wholes);
    addWholes(choice.getFalseValue(), wholes);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (Region &region : branch->getRegions())
      addWholes(region.front().getTerminator()->getOperand(cast<OpResult>(tensor).getResultNumber()), wholes);
}

/// Adds the tensors that one is made of in their place, by stores and branches, to one set or, where a loop
/// comes between, the other. Those that loops around `end` begin with are none of its iteration's.
void addBegins(Value tensor, Operation *end, bool isInLoop, Values &begins, Values &inLoops) {
  if (!isa<RankedTensorType>(tensor.getType()) || !(isInLoop ? inLoops : begins).insert(tensor).second)
    return;
  auto goOn = [&](Value before, bool isLoop) { addBegins(before, end, isInLoop || isLoop, begins, inLoops); };
  auto argument = dyn_cast<BlockArgument>(tensor);
  Operation *op = argument ? argument.getOwner()->getParentOp() : tensor.getDefiningOp();
  unsigned number = argument ? argument.getArgNumber() : cast<OpResult>(tensor).getResultNumber();
  if (op && op->isProperAncestor(end))
    return;
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
    return goOn(loop.getInitArgs()[argument ? number - 1 : number], true);
  if (auto loop = dyn_cast_or_null<scf::WhileOp>(op)) {
    bool isFirst = argument && argument.getOwner() == loop.getBeforeBody();
    return goOn(isFirst ? loop.getInits()[number] : loop.getConditionOp().getArgs()[number], true);
  }
  if (auto loop = dyn_cast_or_null<scf::ForallOp>(op))
    return goOn(loop.getOutputs()[argument ? number - loop.getRank() : number], true);
  if (argument || !op)
    return;
  if (auto computed = dyn_cast<DestinationStyleOpInterface>(op))
    return goOn(computed.getTiedOpOperand(cast<OpResult>(tensor))->get(), false);
  if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    return goOn(op->getOperand(0), false);
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    goOn(choice.getTrueValue(), false);
    goOn(choice.getFalseValue(), false);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (Region &region : branch->getRegions())
      goOn(region.front().getTerminator()->getOperand(number), false);
}

/// Where what an iteration hands on was when it began, and what the first one began with.
struct Place {
  Value here, first;
};

/// Has what is handed on the size of its place? Places have the size of what they begin with, as long as
/// that is so for each.
bool fits(Value handed, const Place &place, ArrayRef<Place> places) {
  const Place *other = llvm::find_if(places, [&](const Place &each) { return each.here == handed; });
  return haveOneSize(other == places.end() ? handed : other->first, place.first) ||
         haveOneSize(handed, place.here);
}

/// Stores the tensors that a terminator hands on in their places, unless one does not fit there.
void storeInPlace(Operation *terminator, ArrayRef<Place> places) {
  struct Stored {
    OpOperand *operand;
    Value place;
    Values wholes; // what is handed on may have the memory of these
  };
  SmallVector<Stored> stored;
  for (auto [operand, place] : llvm::zip_equal(terminator->getOpOperands(), places)) {
    if (!place.here || !isa<RankedTensorType>(place.here.getType()) || operand.get() == place.here)
      continue;
    Values begins, wholes;
    addBegins(operand.get(), terminator, /*isInLoop=*/false, begins, wholes);
    // An empty tensor would become the place.
    if (wholes.contains(place.here) ||
        llvm::any_of(wholes, [](Value v) { return v.getDefiningOp<tensor::EmptyOp>(); }))
      continue;
    if (!fits(operand.get(), place, places))
      return;
    addWholes(operand.get(), wholes);
    stored.push_back({&operand, place.here, std::move(wholes)});
  }
  // What comes from another one's place is read before anything is stored there.
  for (Stored &each : stored)
    if (llvm::any_of(places, [&](const Place &other) {
          return other.here != each.place && each.wholes.contains(other.here);
        }))
      copyTensor(*each.operand);
  OpBuilder b(terminator);
  for (auto &[operand, place, wholes] : stored) {
    auto copy = bufferization::MaterializeInDestinationOp::create(b, terminator->getLoc(), place.getType(),
                                                                  operand->get(), place);
    operand->set(copy.getResult());
  }
}

/// Is a tensor, or what it is part of, from outside of an operation?
bool isFromOutside(Value tensor, Operation *op) {
  Values wholes;
  addWholes(tensor, wholes);
  return llvm::any_of(wholes, [&](Value v) { return !op->isAncestor(v.getParentBlock()->getParentOp()); });
}

/// Copies what a branch takes in the place of `kept`, which a loop's iteration began with. What the loop's
/// only tensor is replaced by may stay where it was computed.
void copyTaken(scf::IfOp branch, Value kept, OpOperand &taken) {
  auto argument = dyn_cast<BlockArgument>(kept);
  Operation *loop = argument ? argument.getOwner()->getParentOp() : nullptr;
  auto type = dyn_cast<RankedTensorType>(kept.getType());
  if (!isa_and_nonnull<scf::ForOp, scf::WhileOp>(loop) || !type || taken.get() == kept ||
      !isFromOutside(taken.get(), branch))
    return;
  bool isOnlyTensor = llvm::count_if(loop->getOperandTypes(), llvm::IsaPred<TensorType>) == 1;
  if (!isOnlyTensor || isFromOutside(taken.get(), loop))
    copyTensor(taken);
}

/// An inner loop that hands on what the iteration around it began with, by a branch, writes to it as to its
/// own: that is what the bufferization sees, and it is copied there, too.
void copyOuter(scf::IfOp branch, unsigned i) {
  Operation *loop = branch->getParentOp();
  if (!isa<scf::ForOp, scf::WhileOp>(loop) ||
      !llvm::is_contained(branch->getBlock()->getTerminator()->getOperands(), branch.getResult(i)))
    return;
  for (OpOperand *taken : {&branch.thenYield()->getOpOperand(i), &branch.elseYield()->getOpOperand(i)}) {
    Values wholes;
    addWholes(taken->get(), wholes);
    if (isa<RankedTensorType>(taken->get().getType()) && llvm::any_of(wholes, [&](Value v) {
          auto argument = dyn_cast<BlockArgument>(v);
          Operation *around = argument ? argument.getOwner()->getParentOp() : nullptr;
          return isa_and_nonnull<scf::ForOp, scf::WhileOp>(around) && around->isProperAncestor(loop);
        }))
      copyTensor(*taken);
  }
}

void copyTaken(scf::IfOp branch) {
  for (unsigned i = 0; i < branch.getNumResults(); ++i) {
    OpOperand &one = branch.thenYield()->getOpOperand(i), &other = branch.elseYield()->getOpOperand(i);
    copyTaken(branch, one.get(), other);
    copyTaken(branch, other.get(), one);
    copyOuter(branch, i);
  }
}

SmallVector<Place> placesOf(scf::ForOp loop) {
  return llvm::map_to_vector(llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()),
                             [](auto pair) { return Place{std::get<0>(pair), std::get<1>(pair)}; });
}

/// The second region's arguments, where they are those of the first.
SmallVector<Place> placesOf(scf::WhileOp loop) {
  SmallVector<Place> places(loop.getYieldOp().getNumOperands());
  auto handed = loop.getConditionOp().getArgs();
  for (size_t i = 0; i < std::min(places.size(), handed.size()); ++i)
    if (handed[i] == loop.getBeforeArguments()[i])
      places[i] = {loop.getAfterArguments()[i], loop.getInits()[i]};
  return places;
}

struct PrivateLoops : public PassWrapper<PrivateLoops, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrivateLoops)

  StringRef getArgument() const final { return "offload-private-loops"; }
  StringRef getDescription() const final { return "Loops of a thread hand tensors on in one place"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<bufferization::BufferizationDialect>();
  }

  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(kOnTensors))
        continue;
      function.walk([](Operation *op) {
        if (!isInParallel(op))
          return;
        if (auto loop = dyn_cast<scf::ForOp>(op))
          storeInPlace(loop.getBody()->getTerminator(), placesOf(loop));
        else if (auto loop = dyn_cast<scf::WhileOp>(op))
          storeInPlace(loop.getYieldOp(), placesOf(loop));
        else if (auto branch = dyn_cast<scf::IfOp>(op))
          copyTaken(branch);
      });
    }
  }
};

} // namespace

void registerPrivateLoopsPass() { PassRegistration<PrivateLoops>(); }

} // namespace offload
