//===- tensors.cpp - offload-constant-arguments, offload-free-buffers -----===//
//
// MLIR's one-shot-bufferize gives tensors memory. Before it: a function that takes a tensor leaves it as it
// is, where bufferization would write results into it. After it: part of a tensor that a function returns or
// hands on is copied, where bufferization takes its memory for that of a whole one; a loop that makes a new
// tensor in each iteration does not copy it as well; what a function has allocated for its tensors, it frees;
// functions without tensors free what they allocate themselves, as their authors wrote them.
//
//===----------------------------------------------------------------------===//

#include "tensors/tensors.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace offload {
namespace {

enum class Tensors { none, dense, other };

Tensors kindOf(TypeRange types) {
  Tensors kind = Tensors::none;
  for (Type type : types)
    if (isa<TensorType>(type)) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (ranked && ranked.getEncoding())
        return Tensors::other;
      kind = Tensors::dense;
    }
  return kind;
}

Tensors kindOf(Operation *op) {
  Tensors kind = std::max(kindOf(op->getOperandTypes()), kindOf(op->getResultTypes()));
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    kind = std::max({kind, kindOf(function.getArgumentTypes()), kindOf(function.getResultTypes())});
  return kind;
}

/// Of all operations in it, but for those of kernels.
Tensors kindWithin(Operation *root) {
  Tensors kind = Tensors::none;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<gpu::GPUModuleOp>(op))
      return WalkResult::skip();
    kind = std::max(kind, kindOf(op));
    return kind == Tensors::other ? WalkResult::interrupt() : WalkResult::advance();
  });
  return kind;
}

/// The tensor that one shows part of.
Value wholeOf(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (!isa<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
             tensor::ReshapeOp>(op))
      break;
    tensor = op->getOperand(0);
  }
  return tensor;
}

bool isArgument(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

/// Whether the memory of a tensor will be a caller's or a constant's, which nobody here may free.
bool isForeign(Value tensor) {
  Value whole = wholeOf(tensor);
  return isArgument(whole) ||
         isa_and_nonnull<arith::ConstantOp, bufferization::ToTensorOp>(whole.getDefiningOp());
}

/// Whether it is a caller's or a constant that stays as it is.
bool isReadOnly(Value tensor) {
  Value whole = wholeOf(tensor);
  if (!isArgument(whole))
    return isa_and_nonnull<arith::ConstantOp>(whole.getDefiningOp());
  auto argument = cast<BlockArgument>(whole);
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto writable = function.getArgAttrOfType<BoolAttr>(argument.getArgNumber(),
                                                      bufferization::BufferizationDialect::kWritableAttrName);
  return writable && !writable.getValue();
}

/// Where one tensor or another goes on, the memory of either must be freed in the same way: a branch, a loop
/// that begins with an argument.
bool isJunction(Operation *op) {
  return isa<scf::IfOp, scf::ForOp, scf::WhileOp, scf::IndexSwitchOp, scf::ExecuteRegionOp, scf::YieldOp,
             scf::ConditionOp, arith::SelectOp>(op);
}

/// Does a cast promise that a view has no gaps between its rows, of which only the run knows how far they are
/// apart, or how long? MLIR makes such casts where functions begin and end, of slices, too: strides that are
/// not known are to it as good as any, and so are those that follow from sizes that are not known.
bool hidesGaps(memref::CastOp op) {
  auto from = dyn_cast<MemRefType>(op.getSource().getType()), to = dyn_cast<MemRefType>(op.getType());
  if (!from || !to || from.getLayout().isIdentity() || !to.getLayout().isIdentity())
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(from.getStridesAndOffset(strides, offset)) || llvm::is_contained(strides, ShapedType::kDynamic))
    return true;
  int64_t whole = 1; // the stride of a row without gaps
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(from.getShape(), strides))) {
    if (stride != whole && size != 1)
      return true;
    whole = ShapedType::isDynamic(whole) || ShapedType::isDynamic(size) ? ShapedType::kDynamic : whole * size;
  }
  return false;
}

void copyPart(memref::CastOp op) {
  OpBuilder b(op);
  auto type = cast<MemRefType>(op.getType());
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(unsigned(i)))
      sizes.push_back(memref::DimOp::create(b, op.getLoc(), op.getSource(), i));
  Value whole = memref::AllocOp::create(b, op.getLoc(), type, sizes);
  memref::CopyOp::create(b, op.getLoc(), op.getSource(), whole);
  op.replaceAllUsesWith(whole);
  op.erase();
}

/// Does each iteration leave memory to the next that nothing else has: its own, or what it began with?
bool yieldsNewMemory(scf::WhileOp loop) {
  SmallVector<Value> seen;
  for (Value value : loop.getYieldOp().getResults()) {
    if (!isa<BaseMemRefType>(value.getType()))
      continue;
    auto made = value.getDefiningOp<memref::AllocOp>();
    bool isOwn =
        made ? made->getBlock() == loop.getAfterBody() : llvm::is_contained(loop.getAfterArguments(), value);
    if (!isOwn || llvm::is_contained(seen, value))
      return false;
    seen.push_back(value);
  }
  return true;
}

/// What the condition of a loop hands on as it came, bufferization copies unless the next iteration has the
/// same memory: it does not see that this one is the loop's alone.
void handOnUncopied(scf::WhileOp loop) {
  if (!yieldsNewMemory(loop))
    return;
  scf::ConditionOp end = loop.getConditionOp();
  // Copies stand right before the end, so that nothing changes what they were made of.
  for (Operation *op = end->getPrevNode(), *before; op; op = before) {
    before = op->getPrevNode();
    if (isa<memref::AllocOp>(op))
      continue;
    auto copy = dyn_cast<memref::CopyOp>(op);
    auto made = copy ? copy.getTarget().getDefiningOp<memref::AllocOp>() : memref::AllocOp();
    if (!made)
      return;
    MutableOperandRange handed = end.getArgsMutable();
    auto place = llvm::find_if(handed, [&](OpOperand &each) { return each.get() == made; });
    if (place == handed.end() || made->hasAttr(kWritten) || made->getBlock() != op->getBlock() ||
        llvm::range_size(made->getUses()) != 2)
      continue;
    auto came = dyn_cast<BlockArgument>(copy.getSource());
    if (!came || came.getOwner() != op->getBlock() || came.getType() != made.getType() ||
        came.getArgNumber() != unsigned(place - handed.begin()))
      continue;
    if (before == made)
      before = made->getPrevNode();
    made.replaceAllUsesWith(came);
    copy.erase();
    made.erase();
  }
}

/// What MLIR's deallocation does not know is something else for a while. Operations that neither allocate nor
/// free, and do not say so, as launches, waits of tokens, and barriers of one vendor, it refuses: it takes
/// calls, though. A gpu.launch is one as a whole: its threads free nothing, and to memory of blocks that they
/// hand on, as loops do that swap two pieces, it would add who owns it, and copies.
class Disguised {
public:
  explicit Disguised(func::FuncOp function) : function(function) {
    SmallVector<Operation *> unknown;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isUnknown(op))
        return WalkResult::advance();
      unknown.push_back(op);
      return WalkResult::skip(); // a reduction's body is its own
    });
    llvm::for_each(unknown, [&](Operation *op) { hide(op); });
  }

  ~Disguised() {
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) {
      if (call->hasAttr(kStandsFor))
        calls.push_back(call);
    });
    llvm::for_each(calls, [&](func::CallOp call) { showAgain(call); });
  }

  Disguised(const Disguised &) = delete;
  Disguised &operator=(const Disguised &) = delete;

private:
  /// An operation, and what is in its regions in the place of each value of the function.
  struct Hidden {
    Operation *op;
    SmallVector<UnrealizedConversionCastOp> values;
  };

  /// On the call, which of `hidden`.
  static constexpr char kStandsFor[] = "offload.stands_for";

  static bool isUnknown(Operation *op) {
    if (isa<gpu::LaunchOp>(op))
      return true;
    bool ofGpu = isa_and_nonnull<gpu::GPUDialect>(op->getDialect());
    if ((op->getNumRegions() != 0 && !ofGpu) || op->hasTrait<OpTrait::IsTerminator>() ||
        isa<MemoryEffectOpInterface, CallOpInterface>(op) ||
        op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<BaseMemRefType>)) // whose it is, it has to say
      return false;
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    return captured.empty();
  }

  void hide(Operation *op) {
    OpBuilder b(op);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    SmallVector<Value> operands(op->getOperands());
    operands.append(captured.begin(), captured.end());
    auto call = func::CallOp::create(b, op->getLoc(), kStandsFor, op->getResultTypes(), operands);
    call->setAttr(kStandsFor, b.getIndexAttr(int64_t(hidden.size())));
    op->replaceAllUsesWith(call);
    op->remove();
    op->setOperands(ValueRange());
    Hidden made = {op, {}};
    b.clearInsertionPoint();
    for (Value value : captured) {
      auto inside = UnrealizedConversionCastOp::create(b, op->getLoc(), value.getType(), ValueRange());
      value.replaceUsesWithIf(inside.getResult(0),
                              [&](OpOperand &use) { return op->isAncestor(use.getOwner()); });
      made.values.push_back(inside);
    }
    hidden.push_back(std::move(made));
  }

  void showAgain(func::CallOp call) {
    Hidden &was = hidden[size_t(call->getAttrOfType<IntegerAttr>(kStandsFor).getInt())];
    OpBuilder(call).insert(was.op);
    OperandRange operands = call->getOperands();
    was.op->setOperands(operands.drop_back(was.values.size()));
    for (auto [inside, value] : llvm::zip_equal(was.values, operands.take_back(was.values.size()))) {
      inside.getResult(0).replaceAllUsesWith(value);
      inside.erase();
    }
    call->replaceAllUsesWith(was.op);
    call->erase();
  }

  func::FuncOp function;
  SmallVector<Hidden> hidden;
};

/// Memory that a function has allocated, and frees itself, is freed with its tensors'.
void dropOwnFrees(func::FuncOp function) {
  auto isOwn = [](Value memory) {
    while (auto view = memory.getDefiningOp<memref::CastOp>())
      memory = view.getSource();
    return isa_and_nonnull<memref::AllocOp, gpu::AllocOp>(memory.getDefiningOp());
  };
  function.walk([&](memref::DeallocOp op) {
    if (isOwn(op.getMemref()))
      op.erase();
  });
  function.walk([&](gpu::DeallocOp op) {
    if (!isOwn(op.getMemref()))
      return;
    OpBuilder b(op);
    if (op.getAsyncToken() || !op.getAsyncDependencies().empty()) {
      auto wait =
          gpu::WaitOp::create(b, op.getLoc(), op->getResultTypes(), ValueRange(op.getAsyncDependencies()));
      op->replaceAllUsesWith(wait);
    }
    op.erase();
  });
}

struct ConstantArguments : public PassWrapper<ConstantArguments, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConstantArguments)

  StringRef getArgument() const final { return "offload-constant-arguments"; }
  StringRef getDescription() const final {
    return "Let functions leave the tensors that they take as they are";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<bufferization::BufferizationDialect>();
  }

  void runOnOperation() final {
    StringRef writable = bufferization::BufferizationDialect::kWritableAttrName;
    Builder b(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || !hasTensors(function))
        continue;
      function->setAttr(kOnTensors, b.getUnitAttr());
      function.walk([&](memref::CastOp op) { op->setAttr(kHidesNoGaps, b.getUnitAttr()); });
      function.walk([&](memref::AllocOp op) { op->setAttr(kWritten, b.getUnitAttr()); });
      for (unsigned i = 0; function.isPublic() && i < function.getNumArguments(); ++i) {
        if (!isa<TensorType>(function.getArgument(i).getType()))
          continue;
        auto given = function.getArgAttrOfType<BoolAttr>(i, writable);
        if (given && given.getValue())
          continue;
        function.setArgAttr(i, writable, b.getBoolAttr(false));
        function.setArgAttr(i, kReadOnly, b.getUnitAttr());
      }
      SmallVector<OpOperand *> copied;
      function.walk([&](Operation *op) {
        for (OpOperand &operand : op->getOpOperands())
          if (isJunction(op) && isa<RankedTensorType>(operand.get().getType()) && isForeign(operand.get()))
            copied.push_back(&operand);
        // What has to be in the memory of an argument is in that of its copy.
        if (auto placed = dyn_cast<bufferization::MaterializeInDestinationOp>(op);
            placed && isa<RankedTensorType>(placed.getDest().getType()) && isReadOnly(placed.getDest()))
          copied.push_back(&placed.getDestMutable());
        // So is what is written under a mask: MLIR makes no copy inside of it.
        if (auto write = dyn_cast<vector::TransferWriteOp>(op);
            write && isa<vector::MaskOp>(op->getParentOp()) &&
            isa<RankedTensorType>(write.getBase().getType()) && isReadOnly(write.getBase()))
          copied.push_back(&write.getBaseMutable());
      });
      llvm::for_each(copied, [](OpOperand *operand) { copyTensor(*operand); });
    }
  }
};

struct FreeBuffers : public PassWrapper<FreeBuffers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FreeBuffers)

  StringRef getArgument() const final { return "offload-free-buffers"; }
  StringRef getDescription() const final { return "Free what functions have allocated for their tensors"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, bufferization::BufferizationDialect, memref::MemRefDialect,
                    scf::SCFDialect>();
  }

  void runOnOperation() final {
    OpPassManager frees(func::FuncOp::getOperationName());
    frees.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
    StringRef writable = bufferization::BufferizationDialect::kWritableAttrName;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(kOnTensors))
        continue;
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.removeArgAttr(i, writable);
      SmallVector<memref::CastOp> parts;
      function.walk([&](memref::CastOp op) {
        if (!op->removeAttr(kHidesNoGaps) && hidesGaps(op))
          parts.push_back(op);
      });
      llvm::for_each(parts, copyPart);
      function.walk(handOnUncopied);
      function.walk([](memref::AllocOp op) { op->removeAttr(kWritten); });
      dropOwnFrees(function);
      Disguised disguised(function);
      if (failed(runPipeline(frees, function)))
        return signalPassFailure();
      dropOwnership(function);
    }
  }
};

} // namespace

bool hasTensors(Operation *root) { return kindWithin(root) == Tensors::dense; }

void copyTensor(OpOperand &operand) {
  Operation *before = operand.getOwner();
  if (isa<scf::InParallelOp, vector::MaskOp>(before->getParentOp()))
    before = before->getParentOp(); // they hold nothing but insertions, or one operation
  OpBuilder b(before);
  auto type = cast<RankedTensorType>(operand.get().getType());
  operand.set(bufferization::AllocTensorOp::create(b, operand.getOwner()->getLoc(), type, ValueRange(),
                                                   /*copy=*/operand.get()));
}

void registerTensorPasses() {
  PassRegistration<ConstantArguments>();
  PassRegistration<FreeBuffers>();
}

} // namespace offload
