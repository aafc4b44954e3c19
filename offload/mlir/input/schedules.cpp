//===- schedules.cpp - offload-join-transforms, offload-erase-transforms --===//
//
// A program may carry its own schedule: sequences of the transform dialect in a module that is marked
// transform.with_named_sequence. What the module with @__transform_main declares may be in another one of
// the program's, a library: transform-interpreter looks for it in that module alone, and gets it put there
// before. When it has run the sequences, they are removed; code has no part in them.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// The module whose sequence is run.
ModuleOp scheduleOf(ModuleOp program) {
  ModuleOp found;
  program.walk([&](transform::NamedSequenceOp op) {
    if (op.getSymName() == transform::TransformDialect::kTransformEntryPointSymbolName && !op.isExternal())
      found = op->getParentOfType<ModuleOp>();
  });
  return found;
}

struct JoinTransforms : public PassWrapper<JoinTransforms, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinTransforms)

  StringRef getArgument() const final { return "offload-join-transforms"; }
  StringRef getDescription() const final { return "Put the libraries of a schedule into its module"; }

  void runOnOperation() final {
    ModuleOp schedule = scheduleOf(getOperation());
    if (!schedule)
      return;
    SmallVector<transform::NamedSequenceOp> others;
    getOperation()->walk([&](transform::NamedSequenceOp op) {
      if (op->getParentOp() != schedule && !op.isExternal())
        others.push_back(op);
    });
    SymbolTable symbols(schedule);
    for (transform::NamedSequenceOp op : others) {
      if (Operation *there = symbols.lookup(op.getSymName())) {
        auto declared = dyn_cast<transform::NamedSequenceOp>(there);
        if (!declared || !declared.isExternal())
          continue; // its own counts
        symbols.erase(there);
      }
      symbols.insert(op->clone());
    }
  }
};

struct EraseTransforms : public PassWrapper<EraseTransforms, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EraseTransforms)

  StringRef getArgument() const final { return "offload-erase-transforms"; }
  StringRef getDescription() const final { return "Remove the sequences of the transform dialect"; }

  void runOnOperation() final {
    SmallVector<transform::NamedSequenceOp> sequences;
    SmallVector<ModuleOp> modules;
    getOperation()->walk([&](transform::NamedSequenceOp op) { sequences.push_back(op); });
    getOperation()->walk([&](ModuleOp op) {
      if (op->removeAttr(transform::TransformDialect::kWithNamedSequenceAttrName) && op != getOperation())
        modules.push_back(op);
    });
    if (!sequences.empty())
      getOperation()->setAttr(kScheduled, UnitAttr::get(&getContext()));
    for (transform::NamedSequenceOp sequence : sequences)
      sequence->erase();
    for (ModuleOp module : modules) // the inner ones come first
      if (module.getBody()->empty())
        module->erase();
  }
};

} // namespace

void registerTransformPasses() {
  PassRegistration<JoinTransforms>();
  PassRegistration<EraseTransforms>();
}

} // namespace offload
