//===- fragment_layouts.cpp - Were matrices loaded by rows or by columns? -===//
//
// A load's `transpose` says that memory has the matrix column by column; what is loaded is the same matrix.
// Where the elements that a thread has depend on it, a product has to be told, by `a_transpose` and
// `b_transpose`; elsewhere these change nothing.
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"

#include "mlir/Analysis/SliceWalk.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// What a function is called with for one of its arguments.
SmallVector<Value> givenFor(BlockArgument argument, FunctionOpInterface function) {
  SmallVector<Value> given;
  if (auto uses = SymbolTable::getSymbolUses(function, function->getParentOp()))
    for (SymbolTable::SymbolUse use : *uses)
      if (auto call = dyn_cast<CallOpInterface>(use.getUser()))
        given.push_back(call.getArgOperands()[argument.getArgNumber()]);
  return given;
}

/// What a function returns for one result of a call.
SmallVector<Value> returnedFor(OpResult result, CallOpInterface call) {
  SmallVector<Value> returned;
  if (auto function = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable()))
    for (Block &block : function.getFunctionBody())
      if (Operation *end = block.getTerminator(); end->getNumSuccessors() == 0)
        returned.push_back(end->getOperand(result.getResultNumber()));
  return returned;
}

/// Which values a fragment may be, or is made of; none where nobody has made it so far.
SmallVector<Value> before(Value fragment) {
  Operation *op = fragment.getDefiningOp();
  if (auto each = dyn_cast_or_null<gpu::SubgroupMmaElementwiseOp>(op))
    return each.getArgs();
  if (auto call = dyn_cast_or_null<CallOpInterface>(op))
    return returnedFor(cast<OpResult>(fragment), call);
  if (auto argument = dyn_cast<BlockArgument>(fragment)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto function = dyn_cast<FunctionOpInterface>(parent);
        function && argument.getOwner()->isEntryBlock())
      return givenFor(argument, function);
    // MLIR 22 counts a loop's index among what the loop hands on, and finds the next value, or none.
    if (auto loop = dyn_cast<LoopLikeOpInterface>(parent))
      if (OpOperand *init = loop.getTiedLoopInit(argument))
        return {init->get(), loop.getTiedLoopYieldedValue(argument)->get()};
  }
  return getControlFlowPredecessors(fragment).value_or(SmallVector<Value>());
}

/// How the loads were that a matrix is made of; none where only constants are, which have any layout.
struct Loads {
  explicit Loads(Value fragment) {
    walkSlice(fragment, [&](Value part) {
      if (auto load = part.getDefiningOp<gpu::SubgroupMmaLoadMatrixOp>()) {
        (load.getTranspose().value_or(false) ? byColumns : byRows) = true;
        return WalkContinuation::skip();
      }
      return WalkContinuation::advanceTo(before(part));
    });
  }

  bool byRows = false, byColumns = false;
};

} // namespace

std::optional<std::string> whyNotLayouts(gpu::SubgroupMmaComputeOp op, bool loadsMayDiffer) {
  const std::tuple<StringRef, Value, bool> operands[] = {
      {"a", op.getOpA(), op.getATranspose().value_or(false)},
      {"b", op.getOpB(), op.getBTranspose().value_or(false)}};
  for (auto [name, fragment, says] : operands) {
    Loads loads(fragment);
    if (loads.byRows && loads.byColumns && !loadsMayDiffer)
      return ("the matrix " + name +
              " is made of some that are loaded with `transpose` and some that are not: threads have other "
              "elements of each, so load all of them in one way")
          .str();
    if (says && loads.byRows)
      return ("the matrix " + name + " is loaded without `transpose`, and its product is with `" + name +
              "_transpose`, which says that memory has it by columns: give both or none")
          .str();
  }
  return std::nullopt;
}

void settleLayouts(gpu::GPUModuleOp module) {
  module.walk([](gpu::SubgroupMmaComputeOp op) {
    if (Loads(op.getOpA()).byColumns)
      op.setATranspose(true);
    if (Loads(op.getOpB()).byColumns)
      op.setBTranspose(true);
  });
}

} // namespace offload
