//===- equal_sizes.cpp - offload-equal-sizes ------------------------------===//
//
// Finds which sizes of a public function's arguments have to be the same, or a known number, though their
// types leave them open: the linalg operations that it always does go through several of them with one loop.
// Nothing in the compiled code asks for that; a shorter array than the others would be read and written
// behind its end. Calls are checked, from Python (offload/runtime/function.py) and from C++
// (offload/hooks/header.py).
//
//===----------------------------------------------------------------------===//

#include "input/size_origin.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace offload {
namespace {

/// A size: an argument and its dimension, or kNumber and a number.
using Size = std::pair<int64_t, int64_t>;
constexpr int64_t kNumber = -1;

class EqualSizes {
public:
  explicit EqualSizes(func::FuncOp function) : function(function) {
    for (Operation &op : function.getBody().front()) // what stands in regions and other blocks may never run
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        add(linalgOp);
      else if (OpTrait::hasElementwiseMappableTraits(&op))
        addElementwise(&op);
  }

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
  void add(linalg::LinalgOp op) {
    SmallVector<std::optional<Size>> loops(op.getNumLoops());
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<ShapedType>(operand.get().getType()))
        continue;
      for (auto [i, result] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(result))
          same(loops[loop.getPosition()], sizeOf(operand.get(), int64_t(i)));
    }
  }

  void addElementwise(Operation *op) {
    for (int64_t i = 0; i < rankOf(op); ++i) {
      std::optional<Size> first;
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          same(first, sizeOf(operand, i));
    }
  }

  static int64_t rankOf(Operation *op) {
    auto type =
        op->getNumResults() ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
    return type ? type.getRank() : 0;
  }

  void same(std::optional<Size> &one, std::optional<Size> other) {
    if (one && other)
      equal.unionSets(*one, *other);
    else if (other)
      one = other;
  }

  /// The argument's size that a value's is, or the number; none where it may be another one.
  std::optional<Size> sizeOf(Value value, int64_t dimension) {
    SizeOrigin origin = originOf(value, dimension);
    if (origin.known)
      return Size{kNumber, *origin.known};
    auto argument = dyn_cast<BlockArgument>(origin.value);
    if (!argument || origin.dimension < 0 || argument.getOwner() != &function.getBody().front())
      return std::nullopt;
    return Size{argument.getArgNumber(), origin.dimension};
  }

  func::FuncOp function;
  llvm::EquivalenceClasses<Size> equal;
};

struct FindEqualSizes : public PassWrapper<FindEqualSizes, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FindEqualSizes)

  StringRef getArgument() const final { return "offload-equal-sizes"; }
  StringRef getDescription() const final { return "Note which sizes of arguments have to be the same"; }

  void runOnOperation() final {
    Builder b(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      if (SmallVector<Attribute> sets = EqualSizes(function).sets(b); !sets.empty())
        function->setAttr(kEqualSizes, b.getArrayAttr(sets));
    }
  }
};

} // namespace

void registerEqualSizesPass() { PassRegistration<FindEqualSizes>(); }

} // namespace offload
