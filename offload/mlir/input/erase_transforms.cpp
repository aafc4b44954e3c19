//===- erase_transforms.cpp - offload-erase-transforms --------------------===//
//
// A program may carry its own schedule: sequences of the transform dialect in a module that is marked
// transform.with_named_sequence. transform-interpreter has run them when this pass removes them; code has no
// part in them.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

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

void registerEraseTransformsPass() { PassRegistration<EraseTransforms>(); }

} // namespace offload
