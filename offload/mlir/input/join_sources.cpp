//===- join_sources.cpp - One program from several sources ----------------===//
//
// Sources meet by the names that they give to others, in any order: a declaration of one stands for the
// definition of another, and both must say the same type. What a source keeps to itself is renamed where the
// name is taken.
//
//===----------------------------------------------------------------------===//

#include "program.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace offload {
namespace {

/// What a symbol is to the other sources.
enum class Role { Own, Declared, Defined };

bool isOwn(LLVM::Linkage linkage) {
  return linkage == LLVM::Linkage::Internal || linkage == LLVM::Linkage::Private;
}

Role roleOf(Operation *op) {
  if (isa<gpu::GPUModuleOp, gpu::BinaryOp>(op)) // what they hold is found by the names of kernels
    return Role::Own;
  bool own = cast<SymbolOpInterface>(op).isPrivate(), declared = false;
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    declared = function.isExternal();
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
    own |= isOwn(function.getLinkage());
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    declared = global.isExternal();
  if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
    own |= isOwn(global.getLinkage());
    declared = !global.getValueOrNull() && global.getInitializerRegion().empty();
  }
  return declared ? Role::Declared : own ? Role::Own : Role::Defined;
}

/// The type that a symbol promises; null where it is neither a function nor memory.
Type typeOf(Operation *op) {
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return function.getFunctionType();
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    return global.getType();
  if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    return global.getGlobalType();
  return Type();
}

void refuse(Operation *op, StringRef name, Operation *same) {
  Type here = typeOf(op), there = typeOf(same);
  bool bothDefined = roleOf(op) == Role::Defined && roleOf(same) == Role::Defined;
  InFlightDiagnostic error = op->emitError("'") << name;
  if (bothDefined) {
    error << "' is defined in two sources: rename one, or make it private";
    error.attachNote(same->getLoc()) << "the other definition";
  } else if (op->getName() != same->getName()) {
    error << "' is the operation " << op->getName() << " here and " << same->getName()
          << " in another source: make both the same";
    error.attachNote(same->getLoc()) << "the other source has it here";
  } else {
    error << "' has the type " << here << " here and " << there
          << " in another source: make them the same, or rename one";
    error.attachNote(same->getLoc()) << "the other source has it here, with the type " << there;
  }
}

/// May one symbol stand for both?
bool agree(Operation *op, Operation *same) {
  return (roleOf(op) == Role::Declared || roleOf(same) == Role::Declared) &&
         op->getName() == same->getName() && typeOf(op) && typeOf(op) == typeOf(same);
}

} // namespace

void append(IRModule &module, IRModule &other) {
  SymbolTable mine(module.get()), theirs(other.get());
  for (Operation &op : llvm::make_early_inc_range(*other.get().getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (Operation *same = symbol ? mine.lookup(symbol.getName()) : nullptr) {
      LogicalResult renamed = success();
      if (roleOf(&op) == Role::Own) {
        renamed = theirs.renameToUnique(&op, {&mine});
      } else if (roleOf(same) == Role::Own) {
        renamed = mine.renameToUnique(same, {&theirs});
      } else if (!agree(&op, same)) {
        refuse(&op, symbol.getName(), same);
        module.session->fail("two sources do not agree");
      } else if (roleOf(&op) == Role::Declared) {
        continue;
      } else {
        mine.erase(same); // declared there, defined here
      }
      if (failed(renamed))
        module.session->fail("a symbol cannot be renamed");
    }
    op.moveBefore(module.get().getBody(), module.get().getBody()->end());
    if (symbol)
      mine.insert(&op);
  }
  for (NamedAttribute attribute : other.get()->getAttrs())
    if (!module.get()->hasAttr(attribute.getName()))
      module.get()->setAttr(attribute.getName(), attribute.getValue());
}

} // namespace offload
