//===- settle_positions.cpp - offload-settle-positions --------------------===//
//
// ensure-debug-info-scope-on-llvm-func of MLIR 22 crashes on positions of inlined code in two cases: outside
// of functions (the text of an assertion that becomes a global has the assertion's position), and where a
// part of the position is unknown. Such an operation gets the one place that a message about it would show.
//
//===----------------------------------------------------------------------===//

#include "codegen/positions.h"
#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {

static bool isKnown(Location loc) {
  return !loc->walk([](Location inner) {
               return isa<UnknownLoc, OpaqueLoc>(inner) ? WalkResult::interrupt() : WalkResult::advance();
             })
              .wasInterrupted();
}

static Location shown(Location loc) {
  Diagnostic position = resolveLocation(loc);
  if (position.file.empty())
    return UnknownLoc::get(loc->getContext());
  return FileLineColLoc::get(loc->getContext(), position.file, position.line, position.column);
}

static LLVM::DISubprogramAttr subprogram(Operation *op) {
  auto fused = op->getLoc()->findInstanceOf<FusedLocWith<LLVM::DISubprogramAttr>>();
  return fused ? fused.getMetadata() : nullptr;
}

static bool isWrong(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  if (isa<CallSiteLoc>(op->getLoc()) && (!function || !isKnown(op->getLoc())))
    return true;
  LLVM::DISubprogramAttr named = subprogram(op);
  if (auto declared = dyn_cast<LLVM::LLVMFuncOp>(op))
    return named && declared.isExternal() &&
           bitEnumContainsAny(named.getSubprogramFlags(), LLVM::DISubprogramFlags::Definition);
  return named && (!function || !subprogram(function));
}

void settlePositions(Operation *root) {
  root->walk([](Operation *op) {
    if (isWrong(op))
      op->setLoc(shown(op->getLoc()));
  });
}

namespace {

struct SettlePositions : public PassWrapper<SettlePositions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SettlePositions)

  StringRef getArgument() const final { return "offload-settle-positions"; }
  StringRef getDescription() const final {
    return "Give inlined operations positions that debug information can have";
  }
  void runOnOperation() final { settlePositions(getOperation()); }
};

} // namespace

void registerSettlePositionsPass() { PassRegistration<SettlePositions>(); }

} // namespace offload
