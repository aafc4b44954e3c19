//===- prepare_atomics.cpp - Atomic operations that a target lacks --------===//
//
// LLVM has no atomic multiplication: it becomes a loop that compares and exchanges.
//
// A generic_atomic_rmw whose new value does not depend on the old one is an exchange. MLIR looks for that
// value in the operation's body, from which canonicalization moves constants.
//
// Its scopes have other names for each vendor: AMD's agent is NVIDIA's device, a workgroup is a block. Each
// target gets its own, so that one module serves for all. Where a target has none, the next wider one does.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace offload {
namespace {

struct Scope {
  StringRef name, amd, nvidia;
};

/// The whole system's has no name. What orders accesses of one space alone ("agent-one-as") orders all.
constexpr Scope kScopes[] = {
    {"agent", "agent", "device"},        {"device", "agent", "device"},   {"workgroup", "workgroup", "block"},
    {"block", "workgroup", "block"},     {"cluster", "agent", "cluster"}, {"system", "", ""},
    {"wavefront", "wavefront", "block"},
};

/// The target's name of a scope; nothing where it is one of the target's, or of nobody's.
std::optional<StringRef> scopeFor(StringRef given, StringRef target) {
  StringRef name = given;
  bool oneSpace = name.consume_back("-one-as");
  if (oneSpace && target == "rocdl")
    return std::nullopt;
  if (name == "one-as")
    return target == "rocdl" ? std::nullopt : std::optional<StringRef>("");
  for (const Scope &scope : kScopes)
    if (scope.name == name) {
      StringRef own = target == "rocdl" ? scope.amd : scope.nvidia;
      return own == given ? std::nullopt : std::optional(own);
    }
  return std::nullopt;
}

bool isAtomic(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return load.getOrdering() != LLVM::AtomicOrdering::not_atomic;
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return store.getOrdering() != LLVM::AtomicOrdering::not_atomic;
  return isa<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(op);
}

void settleScope(Operation *op, StringRef target) {
  constexpr StringRef kName = "syncscope";
  bool marks = isAtomic(op); // memref's operations become LLVM's without a scope, which are not the author's
  if (!marks && !isa<LLVM::FenceOp>(op))
    return;
  StringAttr whole = StringAttr::get(op->getContext(), kWholeSystem);
  auto scope = op->getAttrOfType<StringAttr>(kName);
  if (!scope || scope.empty()) {
    if (marks)
      op->setAttr(kName, whole);
    return;
  }
  // Nobody else sees what a thread orders for itself.
  if (isa<LLVM::FenceOp>(op) && scope == "singlethread" && target == "nvvm")
    return op->erase();
  std::optional<StringRef> own = scopeFor(scope, target);
  if (own && own->empty() && marks)
    op->setAttr(kName, whole);
  else if (own && own->empty())
    op->removeAttr(kName);
  else if (own)
    op->setAttr(kName, StringAttr::get(op->getContext(), *own));
}

void exchangeWhatIsKnown(memref::GenericAtomicRMWOp op) {
  Value value = cast<memref::AtomicYieldOp>(op.getBody()->getTerminator()).getResult();
  if (value.getParentBlock() == op.getBody()) {
    if (!matchPattern(value, m_Constant()))
      return;
    value.getDefiningOp()->moveBefore(op);
  }
  OpBuilder b(op);
  auto exchange = memref::AtomicRMWOp::create(b, op.getLoc(), arith::AtomicRMWKind::assign, value,
                                              op.getMemref(), op.getIndices());
  op.getResult().replaceAllUsesWith(exchange.getResult());
  op.erase();
}

} // namespace

LogicalResult lowerAtomics(gpu::GPUModuleOp module, StringRef target) {
  if (target == "nvvm" || target == "rocdl")
    module.walk([&](Operation *op) { settleScope(op, target); });
  module.walk([](memref::AtomicRMWOp op) {
    arith::AtomicRMWKind kind = op.getKind();
    if (kind != arith::AtomicRMWKind::mulf && kind != arith::AtomicRMWKind::muli)
      return;
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto loop = memref::GenericAtomicRMWOp::create(b, loc, op.getMemref(), op.getIndices());
    OpBuilder in = OpBuilder::atBlockEnd(loop.getBody());
    Value old = loop.getCurrentValue(), product;
    if (kind == arith::AtomicRMWKind::mulf)
      product = arith::MulFOp::create(in, loc, old, op.getValue());
    else
      product = arith::MulIOp::create(in, loc, old, op.getValue());
    memref::AtomicYieldOp::create(in, loc, product);
    op.getResult().replaceAllUsesWith(loop.getResult());
    op.erase();
  });
  module.walk(exchangeWhatIsKnown);
  return success();
}

} // namespace offload
