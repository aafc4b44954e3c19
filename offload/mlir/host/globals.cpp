//===- globals.cpp - Globals of host code that kernels use ----------------===//
//
// A memref.global that offload-place-buffers marked stays the initial value; memref.get_global asks the
// runtime for memory that host code and kernels both reach, made and filled at first use and the same ever
// after.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "names.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kStaticMemory = 0xdeadbeef; // as MLIR marks descriptors of globals: not to be freed

/// The mgpuGlobalSlot of a global: initial value, size in bytes, state.
LLVM::GlobalOp slotOf(OpBuilder &b, Operation *user, StringRef global, Type element, int64_t count) {
  auto module = user->getParentOfType<ModuleOp>();
  std::string name = ("offload_global." + global).str();
  if (auto slot = module.lookupSymbol<LLVM::GlobalOp>(name))
    return slot;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  Location loc = user->getLoc();
  Type pointer = pointerType(b.getContext());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, b.getI64Type(), pointer});
  auto slot =
      LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute());
  b.createBlock(&slot.getInitializerRegion());
  // As a value: the number of an index has 29 bits.
  Value number = constant(b, loc, b.getI64Type(), count), zero = null(b, loc);
  Value end = LLVM::GEPOp::create(b, loc, pointer, element, zero, ArrayRef<LLVM::GEPArg>{number});
  Value size = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), end);
  Value initial = LLVM::AddressOfOp::create(b, loc, pointer, global);
  Value value = LLVM::ZeroOp::create(b, loc, type);
  value = LLVM::InsertValueOp::create(b, loc, value, initial, ArrayRef<int64_t>{0});
  value = LLVM::InsertValueOp::create(b, loc, value, size, ArrayRef<int64_t>{1});
  LLVM::ReturnOp::create(b, loc, value);
  return slot;
}

struct SharedGlobalPattern : public ConvertOpToLLVMPattern<memref::GetGlobalOp> {
  SharedGlobalPattern(const LLVMTypeConverter &converter, const llvm::StringSet<> &shared)
      : ConvertOpToLLVMPattern(converter, /*benefit=*/2), shared(shared) {}

  LogicalResult matchAndRewrite(memref::GetGlobalOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!shared.contains(op.getName()))
      return failure();
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    Type element = getTypeConverter()->convertType(type.getElementType()),
         pointer = pointerType(getContext());
    LLVM::GlobalOp slot = slotOf(rewriter, op, op.getName(), element, type.getNumElements());
    Value memory = callRuntime(rewriter, op, "mgpuSharedGlobal", pointer,
                               {LLVM::AddressOfOp::create(rewriter, loc, pointer, slot.getSymName())});
    Value mark = constant(rewriter, loc, rewriter.getI64Type(), kStaticMemory);
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, {}, rewriter, sizes, strides, bytes);
    Value allocated = LLVM::IntToPtrOp::create(rewriter, loc, pointer, mark);
    Value descriptor = createMemRefDescriptor(loc, type, allocated, memory, sizes, strides, rewriter);
    rewriter.replaceOp(op, descriptor);
    return success();
  }

  const llvm::StringSet<> &shared;
};

} // namespace

void populateGlobalPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns,
                            const llvm::StringSet<> &shared) {
  patterns.add<SharedGlobalPattern>(converter, shared);
}

} // namespace offload
