//===- check_memory.cpp - offload-check-memory ----------------------------===//
//
// Once kernels are known and memory is placed: allocations that no machine can make are errors at their
// lines. Those whose sizes are known only when they run are looked at then (check_sizes.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kMostOnStack = int64_t(1) << 30; // a thread's stack is 8 MiB by default

/// At least one byte; exact for numbers and vectors of them.
int64_t bytesOf(Type element) {
  if (auto vector = dyn_cast<VectorType>(element))
    return vector.getNumElements() * bytesOf(vector.getElementType());
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * bytesOf(complex.getElementType());
  if (element.isIndex())
    return 8;
  return element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 1;
}

/// The bytes of a static array, of what is static of another; -1 where 63 bits do not hold them.
int64_t bytesOf(MemRefType type) {
  int64_t bytes = bytesOf(type.getElementType());
  bool fits = true;
  for (int64_t size : type.getShape()) {
    if (size == 0)
      return 0;
    if (!ShapedType::isDynamic(size))
      fits = fits && !llvm::MulOverflow(bytes, size, bytes);
  }
  return fits ? bytes : -1;
}

LogicalResult checkSize(Operation *op, MemRefType type) {
  int64_t bytes = bytesOf(type);
  if (bytes < 0)
    return op->emitError("memory of type ")
           << type << " takes more bytes than 63 bits count: make it smaller";
  if (isa<memref::AllocaOp>(op) && bytes > kMostOnStack) {
    bool inKernel = op->getParentOfType<gpu::GPUModuleOp>() != nullptr;
    return op->emitError("'memref.alloca' of ")
           << bytes << " bytes is more than a thread's stack holds: use "
           << (inKernel ? "an argument that the host allocates" : "memref.alloc");
  }
  return success();
}

/// Memory of a block or a thread is there while its kernel runs.
LogicalResult checkSpace(gpu::AllocOp op) {
  Attribute space = op.getType().getMemorySpace();
  bool workgroup = isWorkgroup(space), own = isPrivate(space);
  if (!workgroup && !own)
    return success();
  return op.emitError("memory of a ")
         << (workgroup ? "block" : "thread") << " cannot be allocated by host code: give the kernel a "
         << (workgroup ? "`workgroup` attribution" : "`private` attribution, or use memref.alloca in it");
}

struct CheckMemory : public PassWrapper<CheckMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckMemory)

  StringRef getArgument() const final { return "offload-check-memory"; }
  StringRef getDescription() const final { return "Refuse allocations that no machine can make"; }

  void runOnOperation() final {
    bool refused = false;
    getOperation()->walk([&](Operation *op) {
      if (isa<memref::AllocOp, memref::AllocaOp, gpu::AllocOp>(op))
        refused |= failed(checkSize(op, cast<MemRefType>(op->getResult(0).getType())));
      if (auto global = dyn_cast<memref::GlobalOp>(op))
        refused |= failed(checkSize(op, global.getType()));
      if (auto function = dyn_cast<gpu::GPUFuncOp>(op))
        for (auto memory : {function.getWorkgroupAttributions(), function.getPrivateAttributions()})
          for (BlockArgument argument : memory)
            refused |= failed(checkSize(op, cast<MemRefType>(argument.getType())));
      if (auto alloc = dyn_cast<gpu::AllocOp>(op); alloc && !op->getParentOfType<gpu::GPUModuleOp>())
        refused |= failed(checkSpace(alloc));
    });
    if (refused)
      signalPassFailure();
  }
};

} // namespace

void registerCheckMemoryPass() { PassRegistration<CheckMemory>(); }

} // namespace offload
