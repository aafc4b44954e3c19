//===- changed_values.cpp - offload-name-changed --------------------------===//
//
// Inline PTX changes operands (rw), and MLIR's values do not change: what follows an nvvm.inline_ptx means by
// the same value what the text has made of it. Everything else takes the value for what it was: a loop that
// hands it on as it came lost what was changed, and an equal computation became the changed one. So, before
// anything is simplified, what is changed gets a name of its own that only what follows uses: the result of a
// text that is empty, which nothing folds, moves or takes for another, and which a parallel loop may have as
// it may have others; offload-inline-constants makes it an assembly, and offload-repair-lowered removes that.
//
// Where a text may have run or not, or runs again with what it has not changed, there is no such value. A
// constant is refused: equal ones are one value.
//
// PTX has no registers of f16, bf16 or index for a text: they have 16 bits and 64, as in CUDA C++.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// The type of the register that a text gets for such a value.
Type registerOf(Type type) {
  if (type.isF16() || type.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (type.isIndex())
    return IntegerType::get(type.getContext(), 64);
  return type;
}

Value as(OpBuilder &b, Location loc, Type type, Value value) {
  if (value.getType() == type)
    return value;
  if (type.isIndex() || value.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  return arith::BitcastOp::create(b, loc, type, value);
}

/// A use of `value` that what `op` has changed may reach, or not: `op` itself where it may run again. Null
/// where there is none.
Operation *findUncertain(NVVM::InlinePtxOp op, Value value, DominanceInfo &dominance) {
  for (Operation *at = op;; at = at->getParentOp()) {
    Region *region = at->getParentRegion();
    Block *block = at->getBlock();
    SmallPtrSet<Block *, 16> before;
    if (region == value.getParentRegion())
      before.insert(value.getParentBlock());
    for (Operation *user : value.getUsers()) {
      Operation *there = region->findAncestorOpInRegion(*user);
      if (!there || there == at || dominance.properlyDominates(op, user))
        continue;
      bool follows = block == there->getBlock() && at->isBeforeInBlock(there);
      bool again = !before.contains(there->getBlock()) &&
                   block->isReachable(there->getBlock(), SmallPtrSet<Block *, 16>(before));
      if (follows || again)
        return user;
    }
    if (block != value.getParentBlock() && block->isReachable(block, SmallPtrSet<Block *, 16>(before)))
      return op; // a loop of blocks
    if (region == value.getParentRegion() || isa<gpu::LaunchOp>(region->getParentOp()))
      return nullptr;
    if (isa<scf::ForOp, scf::WhileOp, affine::AffineForOp>(region->getParentOp()))
      return op;
  }
}

LogicalResult checkChanged(NVVM::InlinePtxOp op, DominanceInfo &dominance) {
  for (Value value : op.getReadWriteArgs()) {
    if (matchPattern(value, m_Constant()))
      return op.emitError("'nvvm.inline_ptx' changes a constant (rw), and all that are equal are one value: "
                          "load or compute what it changes, or let it have a result");
    Operation *user = findUncertain(op, value, dominance);
    if (user == op)
      return op.emitError("'nvvm.inline_ptx' changes a value (rw) from outside of its loop, which each step "
                          "would begin with: carry it through the loop, or let it have a result");
    if (user) {
      auto error = op.emitError("'nvvm.inline_ptx' changes a value (rw) that is used where it may not have "
                                "run: let it have a result, and the branches hand one value on");
      error.attachNote(user->getLoc()) << "it is used here";
      return error;
    }
  }
  return success();
}

void nameChanged(NVVM::InlinePtxOp op, OpOperand &operand, DominanceInfo &dominance) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value value = operand.get();
  Value given = as(b, loc, registerOf(value.getType()), value);
  auto named = NVVM::InlinePtxOp::create(b, loc, given.getType(), /*readOnlyArgs=*/given,
                                         /*readWriteArgs=*/ValueRange(),
                                         /*ptxCode=*/"", /*predicate=*/Value());
  named->setAttr(kChanged, b.getUnitAttr());
  operand.set(named.getResult(0));
  b.setInsertionPointAfter(op);
  Value changed = as(b, loc, value.getType(), named.getResult(0));
  value.replaceUsesWithIf(changed, [&](OpOperand &use) {
    return use.getOwner() != changed.getDefiningOp() && dominance.properlyDominates(op, use.getOwner());
  });
}

/// The same with registers' types. Instructions of f16 take no number in their text: where one is constant,
/// that is hidden.
void giveRegisters(NVVM::InlinePtxOp op) {
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    operand.set(as(b, op.getLoc(), registerOf(value.getType()), value));
    if (isa<FloatType>(value.getType()) && operand.get() != value)
      operand.set(LLVM::FreezeOp::create(b, op.getLoc(), operand.get()));
  }
  b.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Type type = result.getType();
    if (registerOf(type) == type)
      continue;
    result.setType(registerOf(type));
    Value back = as(b, op.getLoc(), type, result);
    result.replaceAllUsesExcept(back, back.getDefiningOp());
  }
}

struct NameChanged : public PassWrapper<NameChanged, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NameChanged)

  StringRef getArgument() const final { return "offload-name-changed"; }
  StringRef getDescription() const final { return "Give names of their own to what inline PTX changes"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect>();
  }

  void runOnOperation() final {
    auto &dominance = getAnalysis<DominanceInfo>();
    auto named = getOperation()->walk([&](NVVM::InlinePtxOp op) {
      if (failed(checkChanged(op, dominance)))
        return WalkResult::interrupt();
      for (OpOperand &operand : op.getReadWriteArgsMutable())
        nameChanged(op, operand, dominance);
      giveRegisters(op);
      return WalkResult::advance();
    });
    if (named.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void registerNameChangedPass() { PassRegistration<NameChanged>(); }

} // namespace offload
