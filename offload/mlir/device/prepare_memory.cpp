//===- prepare_memory.cpp - offload-prepare-memory ------------------------===//
//
// memref operations in kernels. Copies become loops, because the usual lowering calls a library function that
// exists on the host only. What a scope of allocas gives goes through memory, in host code too: its lowering
// takes values of types that LLVM has, and no index. An allocation of known size that ends where it was made
// is a thread's own memory; refused are others, which need an allocator, elements narrower than a byte, which
// NumPy, LLVM and each vector lowering place differently, and, in host code too, vectors of elements that
// have gaps between them in memory.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Elements that take part of a byte. i1 takes a whole one, as in NumPy.
bool isPartOfAByte(Type type) {
  auto memory = dyn_cast<BaseMemRefType>(type);
  if (!memory)
    return false;
  Type element = getElementTypeOrSelf(memory.getElementType());
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 != 0 && !element.isInteger(1);
}

/// Elements with gaps behind them, such as i24 in four bytes: LLVM's vectors have none, and took others.
/// Those of i1 are bytes.
bool hasGaps(Type type) {
  auto memory = dyn_cast<BaseMemRefType>(type);
  Type element = memory ? memory.getElementType() : Type();
  if (!element || !element.isIntOrFloat() || element.isInteger(1))
    return false;
  unsigned bits = element.getIntOrFloatBitWidth();
  return bits < 8 || !llvm::isPowerOf2_32(bits);
}

/// As one vector of memory. Gathers take elements one by one.
bool takesNeighbours(Operation *op) {
  return isa_and_nonnull<vector::VectorDialect>(op->getDialect()) &&
         !isa<vector::GatherOp, vector::ScatterOp>(op);
}

constexpr char kNoAllocator[] =
    "' in a kernel: threads have no allocator; use memref.alloca, a workgroup or private attribution, or an "
    "argument that the host allocates. A tensor whose size only a thread knows is such memory, too: make one "
    "as large as it may become, of a size that is known before the loop of threads, and use parts of it";

LogicalResult refuseGaps(Operation *op, Type type) {
  Type element = cast<BaseMemRefType>(type).getElementType();
  InFlightDiagnostic error = op->emitError("memory of ");
  error << element << " has gaps that no vector has: load and store its elements one by one";
  if (isa<IntegerType>(element))
    error << ", or keep i" << std::max<uint64_t>(8, llvm::PowerOf2Ceil(element.getIntOrFloatBitWidth()))
          << " in memory and convert after loading";
  return error;
}

/// All that is checked in host code, too, where elements of every type are loaded and stored one by one.
LogicalResult checkVectors(Operation *op) {
  if (takesNeighbours(op))
    for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      if (auto found = llvm::find_if(types, hasGaps); found != types.end())
        return refuseGaps(op, *found);
  return success();
}

LogicalResult check(Operation *op) {
  if (isa<memref::AllocOp, memref::DeallocOp, memref::ReallocOp>(op))
    return op->emitError("'") << op->getName() << kNoAllocator;
  if (isa<memref::CopyOp>(op) && llvm::any_of(op->getOperandTypes(), llvm::IsaPred<UnrankedMemRefType>))
    return op->emitError("a copy of a memref without a rank: cast it to one with a rank first");
  if (!isa<memref::LoadOp, memref::StoreOp, memref::AtomicRMWOp, memref::GenericAtomicRMWOp, memref::CopyOp,
           memref::AllocaOp>(op) &&
      !isa_and_nonnull<vector::VectorDialect>(op->getDialect()))
    return success();
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isPartOfAByte(type)) {
        Type element = getElementTypeOrSelf(cast<BaseMemRefType>(type).getElementType());
        return op->emitError("memory of ")
               << element << " has no layout that the host and the devices share: keep i"
               << std::max<uint64_t>(8, llvm::PowerOf2Ceil(element.getIntOrFloatBitWidth()))
               << " in memory and convert after loading";
      }
  return checkVectors(op);
}

void copyInLoops(memref::CopyOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getSource().getType());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> indices;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value size = memref::DimOp::create(b, loc, op.getSource(), i);
    auto loop = scf::ForOp::create(b, loc, zero, size, one);
    indices.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  Value element = memref::LoadOp::create(b, loc, op.getSource(), indices);
  memref::StoreOp::create(b, loc, element, op.getTarget(), indices);
  op.erase();
}

/// Results of types that LLVM lacks are stored to allocas of the function's, which optimizers make values
/// again.
void giveThroughMemory(memref::AllocaScopeOp op) {
  auto lacks = [](Type type) {
    return !LLVM::isCompatibleType(type) && BaseMemRefType::isValidElementType(type) &&
           !isa<BaseMemRefType>(type);
  };
  if (llvm::none_of(op->getResultTypes(), lacks))
    return;
  Location loc = op.getLoc();
  Block &entry = op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  OpBuilder first = OpBuilder::atBlockBegin(&entry), b(op);
  Operation *end = op.getBodyRegion().front().getTerminator();
  SmallVector<Type> types;
  SmallVector<Value> given;
  for (auto [type, value] : llvm::zip_equal(op->getResultTypes(), end->getOperands()))
    if (!lacks(type)) {
      types.push_back(type);
      given.push_back(value);
    }
  auto scope = memref::AllocaScopeOp::create(b, loc, types);
  scope.getBodyRegion().takeBody(op.getBodyRegion());
  OpBuilder in(end);
  size_t kept = 0;
  for (auto [result, value] : llvm::zip_equal(op->getResults(), end->getOperands())) {
    if (!lacks(result.getType())) {
      result.replaceAllUsesWith(scope->getResult(kept++));
      continue;
    }
    Value place = memref::AllocaOp::create(first, loc, MemRefType::get({}, result.getType()));
    memref::StoreOp::create(in, loc, value, place);
    result.replaceAllUsesWith(memref::LoadOp::create(b, loc, place));
  }
  end->setOperands(given);
  op.erase();
}

/// What compilers of functions for a thread leave, which take its memory from an allocator. It is the
/// function's, used again where a loop makes it again: loops of blocks have no scopes that it could end with.
void keepPrivate(memref::AllocOp op) {
  MemRefType type = op.getType();
  if (type.getMemorySpace() || !type.hasStaticShape() || !type.getLayout().isIdentity() || isPassedOn(op))
    return;
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    if (isa<memref::DeallocOp>(user))
      user->erase();
  Region &body = op->getParentOfType<FunctionOpInterface>().getFunctionBody();
  OpBuilder b = OpBuilder::atBlockBegin(&body.front());
  op.replaceAllUsesWith(memref::AllocaOp::create(b, op.getLoc(), type, op.getAlignmentAttr()).getResult());
  op.erase();
}

struct PrepareMemory : public PassWrapper<PrepareMemory, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrepareMemory)

  StringRef getArgument() const final { return "offload-prepare-memory"; }
  StringRef getDescription() const final { return "Check memory operations of kernels, write out copies"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    bool isHost = !isa<gpu::GPUModuleOp>(getOperation());
    if (failed(isHost ? checkAll(checkVectors) : prepareKernels()))
      return signalPassFailure();
    SmallVector<memref::AllocaScopeOp> scopes; // of host code, too
    getOperation()->walk([&](memref::AllocaScopeOp scope) { scopes.push_back(scope); });
    llvm::for_each(scopes, giveThroughMemory);
  }

  LogicalResult checkAll(LogicalResult (*one)(Operation *)) {
    WalkResult checked = getOperation()->walk(
        [&](Operation *op) { return failed(one(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
    return failure(checked.wasInterrupted());
  }

  LogicalResult prepareKernels() {
    getOperation()->walk(keepPrivate);
    if (failed(checkAll(check)))
      return failure();
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) { copies.push_back(copy); });
    llvm::for_each(copies, copyInLoops);
    return success();
  }
};

} // namespace

void registerPrepareMemoryPass() { PassRegistration<PrepareMemory>(); }

} // namespace offload
