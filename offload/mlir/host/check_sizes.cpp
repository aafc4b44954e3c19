//===- check_sizes.cpp - Allocations whose size is known when they run ----===//
//
// LLVM multiplies sizes modulo 2^64: an allocation of 2^62 floats would be one of no bytes, and host code
// would write past it. Every allocation of host code with dynamic sizes asks the runtime first
// (runtime_c/sizes.c), and what malloc gave is looked at. Sizes that are known here are looked at by
// offload-check-memory.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kLarge = int64_t(1) << 20; // elements; malloc has room for less, or nothing runs any more

Value asI64(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

Value sizeOfElement(OpBuilder &b, Location loc, Type converted) {
  Type pointer = pointerType(b.getContext());
  Value one = LLVM::GEPOp::create(b, loc, pointer, converted, null(b, loc), ArrayRef<LLVM::GEPArg>{1});
  return LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), one);
}

void checkSizes(Operation *op, MemRefType type, ValueRange dynamic, bool onStack, Type element) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type i64 = b.getI64Type(), pointer = pointerType(b.getContext());
  Value sizes = entryAlloca(b, op, i64, type.getRank());
  auto next = dynamic.begin();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value size = type.isDynamicDim(i) ? asI64(b, loc, *next++) : constant(b, loc, i64, type.getDimSize(i));
    Value place = LLVM::GEPOp::create(b, loc, pointer, i64, sizes, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, size, place);
  }
  callRuntime(b, op, kCheckSizes, {},
              {constant(b, loc, i64, type.getRank()), sizes, sizeOfElement(b, loc, element),
               constant(b, loc, b.getI1Type(), onStack), textAddress(b, op, placeOf(loc))});
}

/// Whether malloc gave nothing is all that is asked of the address: an allocation that nobody uses can still
/// go.
void checkMemory(memref::AllocOp op) {
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getMemref());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value missing = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, address, zero);
  callRuntime(b, op, kCheckMemory, {}, {missing, textAddress(b, op, placeOf(loc))});
}

} // namespace

void addSizeChecks(ModuleOp module, const LLVMTypeConverter &converter) {
  SmallVector<Operation *> allocations;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op))
      return WalkResult::skip();
    if (!isa<gpu::AllocOp, memref::AllocOp, memref::AllocaOp>(op))
      return WalkResult::advance();
    auto type = cast<MemRefType>(op->getResult(0).getType());
    if (!type.hasStaticShape() || (isa<memref::AllocOp>(op) && type.getNumElements() >= kLarge))
      allocations.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : allocations) {
    auto type = cast<MemRefType>(op->getResult(0).getType());
    Type element = converter.convertType(type.getElementType());
    if (!element)
      continue; // refused by the conversion
    if (auto alloc = dyn_cast<gpu::AllocOp>(op))
      checkSizes(op, type, alloc.getDynamicSizes(), false, element);
    if (auto alloc = dyn_cast<memref::AllocaOp>(op))
      checkSizes(op, type, alloc.getDynamicSizes(), true, element);
    if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
      checkSizes(op, type, alloc.getDynamicSizes(), false, element);
      checkMemory(alloc);
    }
  }
}

} // namespace offload
