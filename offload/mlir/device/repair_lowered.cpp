//===- repair_lowered.cpp - offload-repair-lowered ------------------------===//
//
// What lowerings of MLIR 22 leave in the LLVM dialect that LLVM does not take, or leaves undefined:
//
// memref.generic_atomic_rmw becomes a loop around llvm.cmpxchg of the element's type. LLVM's takes integers
// and pointers only: floats are compared and exchanged as bits. And what the loop starts from is read as if
// no other thread wrote there: the read becomes atomic.
//
// Dynamic workgroup memory becomes an array without elements of the module's own. NVIDIA's assembler gives it
// a byte, and puts the module's other arrays behind that, where the dynamic memory lies. One that is from
// outside comes last, and may have any size.
//
// Where indices have 32 bits, the size of a block is made of a call that gives 64; and passes that have no
// such option, as convert-vector-to-llvm, leave indices and descriptors of 64 bits next to those of 32.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Of LLVM, on every GPU.
constexpr unsigned kWorkgroupSpace = 3;

void exchangeBits(LLVM::AtomicCmpXchgOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getVal().getType(), bits = b.getIntegerType(type.getIntOrFloatBitWidth());
  Value expected = LLVM::BitcastOp::create(b, loc, bits, op.getCmp());
  Value desired = LLVM::BitcastOp::create(b, loc, bits, op.getVal());
  auto exchange =
      LLVM::AtomicCmpXchgOp::create(b, loc, op.getPtr(), expected, desired, op.getSuccessOrdering(),
                                    op.getFailureOrdering(), op.getSyncscope().value_or(StringRef()),
                                    op.getAlignment().value_or(0), op.getWeak(), op.getVolatile_());
  Value found = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{0});
  Value done = LLVM::ExtractValueOp::create(b, loc, exchange.getRes(), ArrayRef<int64_t>{1});
  Value result = LLVM::PoisonOp::create(b, loc, op.getRes().getType());
  result = LLVM::InsertValueOp::create(b, loc, result, LLVM::BitcastOp::create(b, loc, type, found),
                                       ArrayRef<int64_t>{0});
  result = LLVM::InsertValueOp::create(b, loc, result, done, ArrayRef<int64_t>{1});
  op.replaceAllUsesWith(result);
  op.erase();
}

/// The value that the loop begins with is a plain load just before it.
void readAtomically(LLVM::AtomicCmpXchgOp op) {
  auto expected = dyn_cast<BlockArgument>(op.getCmp());
  if (!expected)
    return;
  for (Block *before : expected.getOwner()->getPredecessors()) {
    auto branch = dyn_cast<LLVM::BrOp>(before->getTerminator());
    auto load = branch ? branch.getOperand(expected.getArgNumber()).getDefiningOp<LLVM::LoadOp>() : nullptr;
    if (!load || load.getAddr() != op.getPtr() || load.getOrdering() != LLVM::AtomicOrdering::not_atomic)
      continue;
    unsigned bytes = load.getType().isIntOrFloat() ? load.getType().getIntOrFloatBitWidth() / 8 : 0;
    if (!bytes) // a pointer's size is the target's
      continue;
    load.setOrdering(LLVM::AtomicOrdering::monotonic);
    load.setAlignment(bytes);
  }
}

void takeFromOutside(LLVM::GlobalOp global) {
  auto array = dyn_cast<LLVM::LLVMArrayType>(global.getType());
  if (array && array.getNumElements() == 0 && global.getAddrSpace() == kWorkgroupSpace)
    global.setLinkage(LLVM::Linkage::External);
}

/// AMD's block and grid sizes.
void widenSize(Operation *op) {
  StringRef name = op->getName().stripDialect();
  if (!(name.starts_with("workgroup.dim.") || name.starts_with("grid.dim.")) || op->getNumResults() != 1 ||
      !op->getResult(0).getType().isInteger(32))
    return;
  OpBuilder b(op);
  Operation *wide = b.clone(*op);
  wide->removeAttr("range");
  wide->getResult(0).setType(b.getI64Type());
  op->replaceAllUsesWith(
      ValueRange(LLVM::TruncOp::create(b, op->getLoc(), b.getI32Type(), wide->getResult(0)).getResult()));
  op->erase();
}

/// A value, or a structure of values, with other widths of its integers; nothing where its shape is another.
Value withWidths(OpBuilder &b, Location loc, Value value, Type wanted) {
  Type type = value.getType();
  if (type == wanted)
    return value;
  auto from = dyn_cast<IntegerType>(getElementTypeOrSelf(type)),
       to = dyn_cast<IntegerType>(getElementTypeOrSelf(wanted));
  if (from && to)
    return from.getWidth() < to.getWidth() ? LLVM::SExtOp::create(b, loc, wanted, value).getResult()
                                           : LLVM::TruncOp::create(b, loc, wanted, value).getResult();
  auto partsOf = [](Type whole) {
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(whole))
      return SmallVector<Type>(array.getNumElements(), array.getElementType());
    auto structure = dyn_cast<LLVM::LLVMStructType>(whole);
    return structure ? SmallVector<Type>(structure.getBody()) : SmallVector<Type>();
  };
  SmallVector<Type> before = partsOf(type), after = partsOf(wanted);
  if (before.empty() || before.size() != after.size())
    return {};
  Value result = LLVM::PoisonOp::create(b, loc, wanted);
  for (auto [i, part] : llvm::enumerate(after)) {
    Value narrow = LLVM::ExtractValueOp::create(b, loc, value, ArrayRef<int64_t>{int64_t(i)});
    Value wide = withWidths(b, loc, narrow, part);
    if (!wide)
      return {};
    result = LLVM::InsertValueOp::create(b, loc, result, wide, ArrayRef<int64_t>{int64_t(i)});
  }
  return result;
}

/// From an index or a memref of one pass to that of another.
void settleWidths(UnrealizedConversionCastOp cast) {
  if (cast->getNumOperands() != 1 || cast->getNumResults() != 1)
    return;
  auto before = cast.getOperand(0).getDefiningOp<UnrealizedConversionCastOp>();
  if (!before || before->getNumOperands() != 1 || before->getNumResults() != 1)
    return;
  Value value = before.getOperand(0);
  Type type = cast->getResult(0).getType(), common = cast.getOperand(0).getType();
  bool lowered = LLVM::isCompatibleType(value.getType()) && LLVM::isCompatibleType(type);
  if (!lowered || value.getType() == type ||
      !(isa<BaseMemRefType>(common) || getElementTypeOrSelf(common).isIndex()))
    return;
  OpBuilder b(cast);
  if (Value settled = withWidths(b, cast.getLoc(), value, type))
    cast->getResult(0).replaceAllUsesWith(settled);
}

struct RepairLowered : public PassWrapper<RepairLowered, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairLowered)

  StringRef getArgument() const final { return "offload-repair-lowered"; }
  StringRef getDescription() const final { return "Mend what lowerings of MLIR leave wrong"; }

  void runOnOperation() final {
    getOperation()->walk([](LLVM::AtomicCmpXchgOp op) {
      readAtomically(op);
      if (isa<FloatType>(op.getVal().getType()))
        exchangeBits(op);
    });
    getOperation()->walk(takeFromOutside);
    getOperation()->walk(widenSize);
    getOperation()->walk(settleWidths);
  }
};

} // namespace

void registerRepairLoweredPass() { PassRegistration<RepairLowered>(); }

} // namespace offload
