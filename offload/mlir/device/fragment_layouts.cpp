//===- fragment_layouts.cpp - Were matrices loaded by rows or by columns? -===//
//
// A load's `transpose` says that memory has the matrix column by column; what is loaded is the same matrix.
// Where the elements that a thread has depend on it, a product has to be told, by `a_transpose` and
// `b_transpose`; elsewhere these change nothing.
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"

#include "mlir/Analysis/SliceWalk.h"

using namespace mlir;

namespace offload {
namespace {

/// How the loads were that a matrix is made of; none where only constants are, which have any layout.
struct Loads {
  explicit Loads(Value fragment) {
    walkSlice(fragment, [&](Value part) {
      if (auto load = part.getDefiningOp<gpu::SubgroupMmaLoadMatrixOp>()) {
        (load.getTranspose().value_or(false) ? byColumns : byRows) = true;
        return WalkContinuation::skip();
      }
      if (auto each = part.getDefiningOp<gpu::SubgroupMmaElementwiseOp>())
        return WalkContinuation::advanceTo(each.getArgs());
      auto before = getControlFlowPredecessors(part);
      return before ? WalkContinuation::advanceTo(*before) : WalkContinuation::skip();
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
              " is made of some that are loaded with `transpose` and some that are not, of which threads "
              "hold "
              "other elements: load all of them in one way")
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
