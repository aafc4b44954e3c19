//===- separate_tensors.cpp - offload-separate-tensors --------------------===//
//
// Writes out what MLIR's eliminate-empty-tensors and one-shot-bufferize, which follow, take for other things:
//
//  * To the bufferization, each result of an scf.for and of a call has memory of its own. Where a loop yields
//    or a function returns one tensor twice, or a tensor and a part of it, a store into one result changed
//    the other: the later one is a copy.
//  * It does not see that the results of scf.index_switch are what its regions yield, and stored into tensors
//    that were still used: the operation becomes scf.if.
//  * eliminate-empty-tensors makes what is inserted into a tensor in its place there, wherever it is made:
//    also in a region of the operation of which that tensor, or the place, is a result. Such a one is copied.
//  * Of what the threads of an scf.forall insert at its end, it does not see that one insertion changes what
//    another one has still to read, where that is part of the tensor that is inserted into: the later one
//    reads a copy.
//  * What the body of an scf.while hands on is changed in its place by the region of the condition, also
//    where it is a tensor from outside of the loop, or two times the same one: it is a copy.
//  * What a reduction's body does not read of what it begins with nobody reads, to the bufferization: of no
//    elements, it is the result. It is copied.
//  * What a loop hands on is made in an empty tensor of the iteration: one from outside of the loop, as is
//  left
//    where equal ones have been joined, has memory that the next iteration writes to, and is copied each
//    time.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SubsetOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace offload {
namespace {

using Values = llvm::SmallPtrSet<Value, 8>;
using Operations = llvm::SmallPtrSet<Operation *, 4>;

/// What an operation's regions yield for one of its results, and what a loop without iterations has for it.
SmallVector<Value> yieldedFor(OpResult result) {
  Operation *op = result.getOwner();
  unsigned i = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getInitArgs()[i], loop.getYieldedValues()[i]};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getArgs()[i]};
  SmallVector<Value> yielded;
  if (isa<scf::IfOp, scf::ExecuteRegionOp>(op))
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (auto yield = dyn_cast<scf::YieldOp>(block.getTerminator()))
          yielded.push_back(yield.getOperand(i));
  return yielded;
}

/// Adds a tensor and those whose memory it may be, as views, calls and regions hand it on. Where operations
/// compute their results, the bufferization knows.
void addSources(Value tensor, Values &sources) {
  if (!isa<TensorType>(tensor.getType()) || !sources.insert(tensor).second)
    return;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return;
  if (isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
          tensor::ReshapeOp>(op))
    return addSources(op->getOperand(0), sources);
  if (isa<func::CallOp, arith::SelectOp>(op))
    for (Value operand : op->getOperands())
      addSources(operand, sources);
  for (Value yielded : yieldedFor(cast<OpResult>(tensor)))
    addSources(yielded, sources);
}

/// Of what is handed on at once, the later one of two tensors that share memory becomes a copy.
void separate(MutableArrayRef<OpOperand> operands) {
  Values before;
  for (OpOperand &operand : operands) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    Values sources;
    addSources(operand.get(), sources);
    if (llvm::any_of(sources, [&](Value source) { return before.contains(source); }))
      copyTensor(operand);
    else
      before.insert(sources.begin(), sources.end());
  }
}

/// What the next iteration changes is not what stands outside of the loop.
void separateFromOutside(scf::WhileOp loop) {
  for (OpOperand &operand : loop.getYieldOp()->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    Values sources;
    addSources(operand.get(), sources);
    if (llvm::any_of(sources, [&](Value v) { return !loop->isAncestor(v.getParentBlock()->getParentOp()); }))
      copyTensor(operand);
  }
}

/// Gives what a loop hands on an empty tensor of its own to be made in, where it has one from outside.
void makeInside(Operation *loop, Value tensor) {
  while (auto computed = tensor.getDefiningOp<DestinationStyleOpInterface>()) {
    if (!loop->isProperAncestor(computed))
      return;
    OpOperand *place = computed.getTiedOpOperand(cast<OpResult>(tensor));
    if (auto empty = place->get().getDefiningOp<tensor::EmptyOp>(); empty && !loop->isAncestor(empty)) {
      OpBuilder b(computed);
      place->set(b.clone(*empty)->getResult(0));
    }
    tensor = place->get();
  }
}

/// Is the memory of a tensor made inside of one of these operations, as far as destinations tell?
bool isMadeIn(Value tensor, const Operations &makers, Values &seen) {
  if (!isa<TensorType>(tensor.getType()) || !seen.insert(tensor).second)
    return false;
  auto result = dyn_cast<OpResult>(tensor);
  if (!result)
    return false;
  Operation *op = result.getOwner();
  if (makers.contains(op))
    return true;
  auto goesOn = [&](Value operand) { return isMadeIn(operand, makers, seen); };
  if (auto computed = dyn_cast<DestinationStyleOpInterface>(op))
    return goesOn(computed.getTiedOpOperand(result)->get());
  if (op->getNumRegions())
    return llvm::any_of(yieldedFor(result), goesOn);
  return !isa<tensor::ExtractSliceOp, bufferization::AllocTensorOp>(op) &&
         llvm::any_of(op->getOperands(), goesOn);
}

void separate(SubsetInsertionOpInterface insertion) {
  OpOperand &source = insertion.getSourceOperand();
  if (!isa<RankedTensorType>(source.get().getType()))
    return;
  Operations makers;
  for (Value needed : insertion.getValuesNeededToBuildSubsetExtraction())
    if (Operation *op = needed.getDefiningOp(); op && op->getNumRegions())
      makers.insert(op);
  Values seen;
  if (!makers.empty() && isMadeIn(source.get(), makers, seen))
    copyTensor(source);
}

/// May it be part of one of these tensors, in another place than the one that it is inserted into?
bool isElsewhereIn(Value tensor, tensor::ParallelInsertSliceOp insertion, ArrayRef<Value> written,
                   Values &seen) {
  if (!isa<TensorType>(tensor.getType()) || !seen.insert(tensor).second)
    return false;
  if (llvm::is_contained(written, tensor))
    return true;
  auto result = dyn_cast<OpResult>(tensor);
  if (!result)
    return false;
  Operation *op = result.getOwner();
  auto goesOn = [&](Value operand) { return isElsewhereIn(operand, insertion, written, seen); };
  if (auto part = dyn_cast<tensor::ExtractSliceOp>(op)) {
    bool isItsPlace = part.getSource() == insertion.getDest() &&
                      cast<OffsetSizeAndStrideOpInterface>(op).isSameAs(
                          insertion, [](OpFoldResult a, OpFoldResult b) { return a == b; });
    return !isItsPlace && goesOn(part.getSource());
  }
  if (auto computed = dyn_cast<DestinationStyleOpInterface>(op))
    return goesOn(computed.getTiedOpOperand(result)->get());
  if (op->getNumRegions())
    return llvm::any_of(yieldedFor(result), goesOn);
  return !isa<bufferization::AllocTensorOp>(op) && llvm::any_of(op->getOperands(), goesOn);
}

void separate(scf::InParallelOp end) {
  SmallVector<Value> written;
  for (Operation &op : end.getYieldingOps())
    if (auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(op)) {
      Values seen;
      if (isElsewhereIn(insertion.getSource(), insertion, written, seen))
        copyTensor(insertion.getSourceMutable());
      written.push_back(insertion.getDest());
    }
}

void writeAsIfs(scf::IndexSwitchOp op, IRRewriter &rewriter) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Region *last = &op.getDefaultRegion();
  SmallVector<Value> results;
  for (auto [value, region] : llvm::zip_equal(op.getCases(), op.getCaseRegions())) {
    Value number = arith::ConstantIndexOp::create(rewriter, loc, value);
    Value is = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, op.getArg(), number);
    auto choice = scf::IfOp::create(rewriter, loc, op.getResultTypes(), is, /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    choice.getThenRegion().takeBody(region);
    if (results.empty())
      llvm::append_range(results, choice.getResults());
    else
      scf::YieldOp::create(rewriter, loc, choice.getResults());
    rewriter.setInsertionPointToStart(choice.elseBlock());
  }
  auto yield = cast<scf::YieldOp>(last->front().getTerminator());
  if (results.empty()) { // no cases
    llvm::append_range(results, yield.getOperands());
    rewriter.inlineBlockBefore(&last->front(), op);
    rewriter.eraseOp(yield);
  } else {
    rewriter.inlineBlockBefore(&last->front(), rewriter.getInsertionBlock(), rewriter.getInsertionPoint());
  }
  rewriter.replaceOp(op, results);
}

/// A reduction of no elements is what it begins with, also where its body leaves that out.
void keepBegin(linalg::LinalgOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  if (llvm::all_of(reduced, [&](unsigned loop) { return sizes[loop] > 0; })) // dynamic ones are below zero
    return;
  for (OpOperand &begin : op.getDpsInitsMutable())
    if (isa<RankedTensorType>(begin.get().getType()) && !begin.get().getDefiningOp<tensor::EmptyOp>() &&
        op.getMatchingBlockArgument(&begin).use_empty())
      copyTensor(begin);
}

struct SeparateTensors : public PassWrapper<SeparateTensors, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SeparateTensors)

  StringRef getArgument() const final { return "offload-separate-tensors"; }
  StringRef getDescription() const final { return "Copy tensors that bufferization takes for two"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, bufferization::BufferizationDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(kOnTensors))
        continue;
      SmallVector<scf::IndexSwitchOp> switches;
      function.walk([&](scf::IndexSwitchOp op) {
        if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
          switches.push_back(op);
      });
      for (scf::IndexSwitchOp op : switches)
        writeAsIfs(op, rewriter);
      function.walk([&](Operation *op) {
        // What the condition of an scf.while hands on MLIR itself copies, unless it is what came there.
        if (auto loop = dyn_cast<scf::WhileOp>(op))
          separateFromOutside(loop);
        bool endsLoop = isa<scf::YieldOp>(op) && isa<scf::ForOp, scf::WhileOp>(op->getParentOp());
        if (endsLoop && !isInParallel(op))
          for (Value handed : op->getOperands())
            makeInside(op->getParentOp(), handed);
        if (isa<func::ReturnOp>(op) || endsLoop)
          separate(op->getOpOperands());
        else if (auto insertion = dyn_cast<SubsetInsertionOpInterface>(op))
          separate(insertion);
        if (auto loops = dyn_cast<linalg::LinalgOp>(op))
          keepBegin(loops);
        if (auto end = dyn_cast<scf::InParallelOp>(op))
          separate(end);
      });
    }
  }
};

} // namespace

void registerSeparateTensorsPass() { PassRegistration<SeparateTensors>(); }

} // namespace offload
