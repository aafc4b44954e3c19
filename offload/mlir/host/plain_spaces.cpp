//===- plain_spaces.cpp - offload-plain-spaces ----------------------------===//
//
// Host code has one space of plain pointers; the memory spaces of its types are those of kernels. MLIR's
// lowerings of single dialects know numbers alone, so they go first. A global of a block or a thread would be
// some other memory there.
//
//===----------------------------------------------------------------------===//

#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct PlainSpaces : public PassWrapper<PlainSpaces, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlainSpaces)

  StringRef getArgument() const final { return "offload-plain-spaces"; }
  StringRef getDescription() const final { return "Take the memory spaces of kernels out of host code"; }

  /// Kernels have taken theirs along by now.
  static bool refused(memref::GetGlobalOp op) {
    Attribute space = op.getType().getMemorySpace();
    bool workgroup = isWorkgroup(space), own = isPrivate(space);
    if (workgroup || own)
      op.emitError("'")
          << op.getName() << "' is memory of a " << (workgroup ? "block" : "thread")
          << ", and this is host code: use it in a kernel, or in a private function that kernels "
             "alone call";
    return workgroup || own;
  }

  void runOnOperation() final {
    bool any = false;
    getOperation()->walk([&](memref::GetGlobalOp op) { any |= refused(op); });
    if (any)
      return signalPassFailure();
    AttrTypeReplacer replacer;
    replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
      return MemRefType::get(type.getShape(), type.getElementType(), type.getLayout());
    });
    replacer.addReplacement([](UnrankedMemRefType type) -> std::optional<Type> {
      return UnrankedMemRefType::get(type.getElementType(), Attribute());
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    getOperation()->walk([](memref::MemorySpaceCastOp op) {
      op.replaceAllUsesWith(op.getSource());
      op.erase();
    });
  }
};

} // namespace

void registerPlainSpacesPass() { PassRegistration<PlainSpaces>(); }

} // namespace offload
