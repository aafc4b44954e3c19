//===- equal_sizes.cpp - offload-equal-sizes ------------------------------===//
//
// Finds which sizes of a public function's arguments have to be the same, or a known number, though their
// types leave them open: the linalg operations that it always does go through several of them with one loop.
// Nothing in the compiled code asks for that; a shorter array than the others would be read and written
// behind its end. Calls are checked, from Python (offload/runtime/function.py) and from C++
// (offload/hooks/header.py). What no signature can say, of sizes that are computed or of what may not run, is
// asserted where it runs.
//
//===----------------------------------------------------------------------===//

#include "input/assert_sizes.h"
#include "input/loop_assertions.h"
#include "loops/parallel_loops.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {
namespace {

/// A size: an argument and its dimension, or kNumber and a number.
using Size = std::pair<int64_t, int64_t>;
constexpr int64_t kNumber = -1;

class EqualSizes {
public:
  /// A kernel that is written by hand is left as it is, and what is in threads' loops of a function that a
  /// schedule has made.
  EqualSizes(func::FuncOp function, bool isOfThreads, bool isCalled, bool isScheduled)
      : function(function), isOfThreads(isOfThreads), isCalled(isCalled), asserted(isOfThreads) {
    if (auto before = function->getAttrOfType<ArrayAttr>(kEqualSizes))
      addSets(before);
    // What nobody needs asks for nothing; an assertion of a thread's would keep the branch that it is in. A
    // launch that does nothing stays, to be refused where others are.
    function.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op) && !isa<gpu::LaunchOp>(op) && isRunByThreads(op) && !isInKernel(op))
        op->erase();
    });
    SmallVector<Operation *> found; // assertions come between them
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      found.push_back(op);
      // MLIR 22 has no bounds of the indices of a padding's body, nor of a linalg operation's, but asks for
      // them.
      bool isApart =
          isa<gpu::LaunchOp, linalg::LinalgOp, tensor::PadOp>(op) || (isScheduled && hasThreads(op));
      return isApart ? WalkResult::skip() : WalkResult::advance();
    });
    for (Operation *op : found)
      add(op);
    for (cf::AssertOp op : asserted.ofThreads)
      asserted.isWrong |= failed(assertInFront(op));
  }

  /// Errors have been told.
  bool isWrong() const { return asserted.isWrong; }

  /// For each set of equal sizes the number that they have, or -1, then the arguments with the dimensions.
  SmallVector<Attribute> sets(Builder &b) {
    SmallVector<Attribute> found;
    for (const auto *set : equal) {
      if (!set->isLeader())
        continue;
      SmallVector<Size> sizes(equal.members(*set));
      llvm::sort(sizes); // a number is the first
      SmallVector<int64_t> numbers = {-1};
      for (auto [argument, value] : sizes)
        if (argument == kNumber)
          numbers[0] = value;
        else
          numbers.append({argument, value});
      if (numbers.size() > (numbers[0] < 0 ? 3u : 1u))
        found.push_back(b.getDenseI64ArrayAttr(numbers));
    }
    return found;
  }

private:
  /// What has been found before a schedule made something else of the operations that tell it.
  void addSets(ArrayAttr sets) {
    for (auto set : sets.getAsRange<DenseI64ArrayAttr>()) {
      ArrayRef<int64_t> numbers = set.asArrayRef();
      Size first = {numbers[1], numbers[2]};
      if (numbers[0] >= 0)
        equal.unionSets({kNumber, numbers[0]}, first);
      for (size_t i = 3; i < numbers.size(); i += 2)
        equal.unionSets(first, {numbers[i], numbers[i + 1]});
    }
  }

  void add(Operation *op) {
    if (isa<memref::ViewOp, memref::SubViewOp, memref::CastOp>(op) && mayBeOfLaunch(op->getOperand(0)))
      return;
    if (auto loops = dyn_cast<linalg::LinalgOp>(op))
      addLoops(loops);
    else if (OpTrait::hasElementwiseMappableTraits(op))
      addElementwise(op);
    else if (auto part = dyn_cast<tensor::ExtractSliceOp>(op))
      asserted.part(part, part.getSource());
    else if (auto place = dyn_cast<tensor::InsertSliceOp>(op))
      addInserted(place);
    else if (auto place = dyn_cast<tensor::ParallelInsertSliceOp>(op))
      addInserted(place);
    else if (auto padded = dyn_cast<tensor::PadOp>(op))
      asserted.padded(padded);
    else if (auto joined = dyn_cast<tensor::ConcatOp>(op))
      addJoined(joined);
    else if (auto view = dyn_cast<memref::ViewOp>(op))
      asserted.viewed(view);
    else if (isa<memref::ReshapeOp, tensor::ReshapeOp>(op))
      asserted.reshaped(op, op->getOperand(0), op->getOperand(1));
    else if (isa<memref::CopyOp>(op) ? isOfThreads || isRunByThreads(op)
                                     : isa<bufferization::MaterializeInDestinationOp>(op))
      addSame(op, 0, 1);
    else if (auto view = dyn_cast<memref::SubViewOp>(op))
      asserted.part(view, view.getSource());
    else if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      asserted.launched(launch);
    else if (isa<linalg::SoftmaxOp>(op))
      addSame(op, 0, 1);
    else if (auto pack = dyn_cast<linalg::PackOp>(op))
      addTiles(pack, pack->getOpOperand(0), pack->getOpOperand(1), !pack.getPaddingValue());
    else if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
      addTiles(unpack, unpack->getOpOperand(1), unpack->getOpOperand(0), false);
    else if (auto scatter = dyn_cast<tensor::ScatterOp>(op))
      addScattered(scatter);
    else if (isa<tensor::CastOp, memref::CastOp>(op))
      addCast(op);
    else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      addExpanded(expand);
    else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op))
      addExpanded(expand);
  }

  /// Where threads do not insert it, a copy compares the sizes.
  template <typename Op> void addInserted(Op op) {
    asserted.part(op, op.getDest());
    if (isRunByThreads(op))
      asserted.inserted(op, op.getSourceMutable(), op.getDroppedDims());
  }

  /// What is not known is what the cast says.
  void addCast(Operation *op) {
    auto from = cast<ShapedType>(op->getOperand(0).getType()),
         to = cast<ShapedType>(op->getResult(0).getType());
    bool isOfHost = !isOfThreads && !isRunByThreads(op);
    if (!to.hasRank() || (!from.hasRank() && !isOfHost))
      return;
    if (!from.hasRank())
      asserted.ranked(op);
    Builder b(op->getContext());
    for (int64_t i = 0; i < to.getRank(); ++i)
      if ((!from.hasRank() || from.isDynamicDim(i)) && !to.isDynamicDim(i))
        asserted.said(op,
                      from.hasRank() ? sizeOf(op->getOpOperand(0), i)
                                     : OperandSize{0, i, {std::nullopt, op->getOperand(0), i}},
                      {b.getIndexAttr(to.getDimSize(i))}, Twine(to.getDimSize(i)) + ", as it is cast to");
    if (auto view = dyn_cast<memref::CastOp>(op); view && from.hasRank() && isOfHost)
      asserted.laidOut(view);
  }

  template <typename Op> void addExpanded(Op op) {
    SmallVector<OpFoldResult> sizes =
        getMixedValues(op.getStaticOutputShape(), op.getOutputShape(), op.getContext());
    for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
      SmallVector<OpFoldResult> factors =
          llvm::map_to_vector(group, [&](int64_t at) -> OpFoldResult { return sizes[at]; });
      OperandSize whole = sizeOf(op->getOpOperand(0), int64_t(i));
      if (!whole.origin.known || !llvm::all_of(factors, llvm::IsaPred<Attribute>)) // else MLIR has compared
        asserted.said(op, whole, factors, "the product of the sizes that it is expanded to");
    }
  }

  void sameOf(Operation *op, unsigned one, int64_t ofOne, unsigned other, int64_t ofOther) {
    std::optional<OperandSize> first;
    same(op, first, sizeOf(op->getOpOperand(one), ofOne));
    same(op, first, sizeOf(op->getOpOperand(other), ofOther));
  }

  /// May it be a block's memory whose size a launch tells (gpu.dynamic_shared_memory)? Its type says bytes,
  /// and itself that there are none.
  bool mayBeOfLaunch(Value memory) {
    auto type = dyn_cast<MemRefType>(memory.getType());
    if (!isOfThreads || !type || type.getRank() != 1 || !type.isDynamicDim(0) ||
        !type.getElementType().isInteger(8))
      return false;
    if (type.getMemorySpace())
      return true;
    auto isCast = [](gpu::DynamicSharedMemoryOp op) {
      bool found = llvm::any_of(op->getUsers(), llvm::IsaPred<memref::MemorySpaceCastOp>);
      return found ? WalkResult::interrupt() : WalkResult::advance();
    };
    if (!castsLaunched)
      castsLaunched = function->getParentOfType<ModuleOp>().walk(isCast).wasInterrupted();
    return *castsLaunched;
  }

  /// The sizes of the other dimensions are the same.
  void addJoined(tensor::ConcatOp op) {
    for (int64_t i = 0; i < op.getResultType().getRank(); ++i) {
      if (i == int64_t(op.getDim()))
        continue;
      std::optional<OperandSize> first;
      for (OpOperand &operand : op->getOpOperands())
        same(op, first, sizeOf(operand, i));
      int64_t size = op.getResultType().getDimSize(unsigned(i));
      if (!ShapedType::isDynamic(size) && !first->origin.known)
        asserted.said(op, *first, {Builder(op.getContext()).getIndexAttr(size)}, "that of the result's type");
    }
    asserted.joined(op);
  }

  /// All sizes of two operands are the same.
  void addSame(Operation *op, unsigned one, unsigned other) {
    for (int64_t i = 0; i < cast<ShapedType>(op->getOperand(one).getType()).getRank(); ++i)
      sameOf(op, one, i, other, i);
  }

  /// `whole` is cut into the tiles of `packed`: exactly, or with room that is left.
  template <typename Op> void addTiles(Op op, OpOperand &whole, OpOperand &packed, bool exactly) {
    SmallVector<int64_t> outer(op.getOuterDimsPerm());
    int64_t rank = cast<ShapedType>(whole.get().getType()).getRank();
    if (outer.empty())
      outer = llvm::to_vector(llvm::seq<int64_t>(rank));
    SmallVector<OpFoldResult> sizes = op.getMixedTiles();
    for (auto [i, size] : llvm::enumerate(sizes))
      asserted.said(op, sizeOf(packed, rank + int64_t(i)), {size}, "the size of the tiles");
    for (auto [i, dimension] : llvm::enumerate(outer)) {
      const int64_t *tile = llvm::find(op.getInnerDimsPos(), dimension);
      if (tile == op.getInnerDimsPos().end())
        sameOf(op, whole.getOperandNumber(), dimension, packed.getOperandNumber(), int64_t(i));
      else
        asserted.tiled(op, sizeOf(whole, dimension), sizeOf(packed, int64_t(i)),
                       sizes[tile - op.getInnerDimsPos().begin()], exactly);
    }
  }

  /// The first sizes of what is scattered are those of the places, the others those of the target.
  void addScattered(tensor::ScatterOp op) {
    enum { Source, Target, Places };
    int64_t batch = op.getIndicesType().getRank() - 1, at = batch, rank = op.getDestType().getRank();
    for (int64_t i = 0; i < batch; ++i)
      sameOf(op, Places, i, Source, i);
    bool keepsOnes = op.getSourceType().getRank() == batch + rank;
    for (int64_t i = 0; i < rank; ++i) {
      bool counted = llvm::is_contained(op.getScatterDims(), i);
      if (!counted)
        sameOf(op, Target, i, Source, at);
      at += !counted || keepsOnes;
    }
  }

  void addLoops(linalg::LinalgOp op) {
    SmallVector<std::optional<OperandSize>> loops(op.getNumLoops());
    SmallVector<std::pair<OperandSize, AffineExpr>> windows;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<ShapedType>(operand.get().getType()))
        continue;
      for (auto [i, result] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
        OperandSize size = sizeOf(operand, int64_t(i));
        if (auto loop = dyn_cast<AffineDimExpr>(result))
          same(op, loops[loop.getPosition()], size);
        else
          windows.push_back({size, result});
      }
    }
    for (auto &[size, index] : windows)
      asserted.within(op, size, index, loops);
  }

  void addElementwise(Operation *op) {
    if (choosesWhole(op))
      return;
    for (int64_t i = 0; i < rankOf(op); ++i) {
      std::optional<OperandSize> first;
      for (OpOperand &operand : op->getOpOperands())
        if (isa<RankedTensorType>(operand.get().getType()))
          same(op, first, sizeOf(operand, i));
    }
  }

  static int64_t rankOf(Operation *op) {
    auto type =
        op->getNumResults() ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
    return type ? type.getRank() : 0;
  }

  static OperandSize sizeOf(OpOperand &operand, int64_t dimension) {
    return {operand.getOperandNumber(), dimension, originOf(operand.get(), dimension)};
  }

  void same(Operation *op, std::optional<OperandSize> &one, const OperandSize &other) {
    if (!one) {
      one = other;
      return;
    }
    std::optional<Size> first = toldSize(op, one->origin), second = toldSize(op, other.origin);
    bool isTold = first && second && fit(*first, *second);
    if (isTold)
      equal.unionSets(*first, *second);
    if (!isTold || isCalled) // the program's own calls are not checked
      asserted.same(op, *one, other);
    if (second && !first)
      one = other;
  }

  /// Are they no two different numbers, nor to be the same as such?
  bool fit(const Size &one, const Size &other) {
    std::optional<int64_t> first = numberOf(one), second = numberOf(other);
    return !first || !second || first == second;
  }

  std::optional<int64_t> numberOf(const Size &size) {
    if (size.first == kNumber)
      return size.second;
    for (auto member = equal.findLeader(size); member != equal.member_end(); ++member)
      if (member->first == kNumber)
        return member->second;
    return std::nullopt;
  }

  /// The argument's size that one is, or the number; none of what a signature does not tell, or of operations
  /// that may not run.
  std::optional<Size> toldSize(Operation *op, const SizeOrigin &origin) {
    Block *always = &function.getBody().front();
    if (!function.isPublic() || op->getBlock() != always)
      return std::nullopt;
    if (origin.known)
      return Size{kNumber, *origin.known};
    auto argument = dyn_cast<BlockArgument>(origin.value);
    if (!argument || origin.dimension < 0 || argument.getOwner() != always)
      return std::nullopt;
    return Size{argument.getArgNumber(), origin.dimension};
  }

  func::FuncOp function;
  bool isOfThreads;                  // that call it
  bool isCalled;                     // by the program
  std::optional<bool> castsLaunched; // does the program, to plain memory, what mayBeOfLaunch asks for?
  llvm::EquivalenceClasses<Size> equal;
  AssertSizes asserted;
};

/// The dynamic sizes of results that are those of arguments: the result, its dimension, the argument, its
/// dimension.
SmallVector<int64_t> sizesOfResults(func::FuncOp function) {
  SmallVector<int64_t> found;
  if (!function.getBody().hasOneBlock())
    return found;
  Block &body = function.getBody().front();
  for (auto [i, result] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto type = dyn_cast<ShapedType>(result.getType());
    for (int64_t dimension = 0; type && type.hasRank() && dimension < type.getRank(); ++dimension) {
      SizeOrigin origin = originOf(result, dimension);
      auto argument = dyn_cast_or_null<BlockArgument>(origin.value);
      if (argument && argument.getOwner() == &body && origin.dimension >= 0 &&
          !function.getArgAttr(argument.getArgNumber(), kOptional))
        found.append({int64_t(i), dimension, argument.getArgNumber(), origin.dimension});
    }
  }
  return found;
}

/// Sizes at which MLIR 22 ends the process: it folds them, and lowers them, as if they were there.
LogicalResult checkDimension(Operation *op) {
  auto dim = dyn_cast<ShapedDimOpInterface>(op);
  auto type = dim ? dyn_cast<ShapedType>(dim.getShapedValue().getType()) : ShapedType();
  std::optional<int64_t> index = type ? getConstantIntValue(dim.getDimension()) : std::nullopt;
  if (!index || !type.hasRank() || (*index >= 0 && *index < type.getRank()))
    return success();
  return op->emitError() << "'" << op->getName() << "' asks for size " << *index << " of a "
                         << (isa<TensorType>(type) ? "tensor" : "memref") << " of rank " << type.getRank()
                         << "; sizes count from 0";
}

struct FindEqualSizes : public PassWrapper<FindEqualSizes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FindEqualSizes)

  StringRef getArgument() const final { return "offload-equal-sizes"; }
  StringRef getDescription() const final {
    return "Note which sizes of arguments have to be the same, and assert it of others";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry
        .insert<arith::ArithDialect, cf::ControlFlowDialect, memref::MemRefDialect, tensor::TensorDialect>();
  }

  void runOnOperation() final {
    auto checked = [](Operation *op) {
      return failed(checkDimension(op)) ? WalkResult::interrupt() : WalkResult::advance();
    };
    if (getOperation()->walk(checked).wasInterrupted())
      return signalPassFailure();
    Builder b(&getContext());
    bool isScheduled = bool(getOperation()->removeAttr(kScheduled));
    SmallPtrSet<Operation *, 4> ofThreads = calledFromKernels(getOperation());
    llvm::StringSet<> used; // asking for each function would read the program so many times
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(&getOperation().getBodyRegion());
    if (uses)
      for (const SymbolTable::SymbolUse &use : *uses)
        used.insert(use.getSymbolRef().getRootReference().getValue());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      EqualSizes equal(function, ofThreads.contains(function), !uses || used.contains(function.getSymName()),
                       isScheduled);
      if (equal.isWrong())
        signalPassFailure();
      if (SmallVector<Attribute> sets = equal.sets(b); !sets.empty())
        function->setAttr(kEqualSizes, b.getArrayAttr(sets));
      if (SmallVector<int64_t> sizes = sizesOfResults(function);
          function.isPublic() && !sizes.empty() && !function->hasAttr(kResultSizes))
        function->setAttr(kResultSizes, b.getDenseI64ArrayAttr(sizes));
    }
  }
};

} // namespace

void registerEqualSizesPass() { PassRegistration<FindEqualSizes>(); }

} // namespace offload
