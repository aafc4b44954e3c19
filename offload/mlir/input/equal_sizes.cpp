//===- equal_sizes.cpp - offload-equal-sizes ------------------------------===//
//
// Finds which sizes of a public function's arguments have to be the same, or a known number, though their
// types leave them open: the linalg operations that it always does go through several of them with one loop.
// Nothing in the compiled code asks for that; a shorter array than the others would be read and written
// behind its end. Calls from Python are checked (offload/runtime/function.py).
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

#include <map>
#include <set>

using namespace mlir;

namespace offload {
namespace {

/// A size: a dimension of an argument, or a number.
struct Size {
  std::optional<unsigned> argument;
  int64_t value; // of the dimension, or the number

  bool operator<(const Size &other) const {
    return std::tie(argument, value) < std::tie(other.argument, other.value);
  }
};

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
    std::map<size_t, std::set<Size>> members;
    for (auto [size, set] : setOf)
      members[find(set)].insert(size);
    SmallVector<Attribute> found;
    for (const auto &[set, sizes] : members) {
      SmallVector<int64_t> numbers = {-1};
      for (const Size &size : sizes)
        if (size.argument)
          numbers.append({int64_t(*size.argument), size.value});
        else
          numbers[0] = size.value;
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
      parents[find(numberOf(*other))] = find(numberOf(*one));
    else if (other)
      one = other;
  }

  /// The argument's size that a value's is, or the number; none where it may be another one.
  std::optional<Size> sizeOf(Value value, int64_t dimension) {
    for (;;) {
      auto type = dyn_cast<ShapedType>(value.getType());
      if (!type || !type.hasRank())
        return std::nullopt;
      if (!type.isDynamicDim(unsigned(dimension)))
        return Size{std::nullopt, type.getDimSize(unsigned(dimension))};
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        bool isGiven = argument.getOwner() == &function.getBody().front() &&
                       !function.getArgAttr(argument.getArgNumber(), kOptional);
        return isGiven ? std::optional(Size{argument.getArgNumber(), dimension}) : std::nullopt;
      }
      Operation *op = value.getDefiningOp();
      if (isa<tensor::EmptyOp, bufferization::AllocTensorOp, memref::AllocOp, memref::AllocaOp>(op)) {
        unsigned index = 0;
        for (int64_t i = 0; i < dimension; ++i)
          index += type.isDynamicDim(unsigned(i));
        if (index >= op->getNumOperands() || !op->getOperand(index).getType().isIndex())
          return std::nullopt;
        Value number = op->getOperand(index);
        if (std::optional<int64_t> known = getConstantIntValue(number))
          return Size{std::nullopt, *known};
        Operation *asked = number.getDefiningOp();
        std::optional<int64_t> other = isa_and_nonnull<tensor::DimOp, memref::DimOp>(asked)
                                           ? getConstantIntValue(asked->getOperand(1))
                                           : std::nullopt;
        if (!other)
          return std::nullopt;
        value = asked->getOperand(0);
        dimension = *other;
      } else if (auto made = dyn_cast<DestinationStyleOpInterface>(op)) {
        value = made.getTiedOpOperand(cast<OpResult>(value))->get();
      } else if (isa<tensor::CastOp, memref::CastOp, bufferization::ToTensorOp, bufferization::ToBufferOp>(
                     op)) {
        value = op->getOperand(0);
      } else if (OpTrait::hasElementwiseMappableTraits(op)) {
        auto *operand = llvm::find_if(
            op->getOpOperands(), [](OpOperand &each) { return isa<RankedTensorType>(each.get().getType()); });
        if (operand == op->getOpOperands().end())
          return std::nullopt;
        value = operand->get();
      } else {
        return std::nullopt;
      }
    }
  }

  size_t numberOf(const Size &size) {
    auto [known, isNew] = setOf.try_emplace(size, parents.size());
    if (isNew)
      parents.push_back(known->second);
    return known->second;
  }

  size_t find(size_t set) const {
    while (parents[set] != set)
      set = parents[set];
    return set;
  }

  func::FuncOp function;
  std::map<Size, size_t> setOf;
  SmallVector<size_t> parents; // of sets; one that stands for others is its own
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
