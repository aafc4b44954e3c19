//===- row_steps.cpp - Operations one after another on the same rows ------===//
//
// Finds, in a block of host code, operations of linalg on buffers that could as well be done row by row: each
// has a loop for every dimension of the rows and maybe one along them, and what one of them writes, others
// read and write in the same row alone.
//
//===----------------------------------------------------------------------===//

#include "loops/row_steps.h"
#include "input/size_origin.h"
#include "loops/row_threads.h"
#include "names.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace offload {
namespace {

/// A number of elements: known, or one that has names.
struct Size {
  int64_t known = ShapedType::kDynamic;
  SmallVector<std::pair<Value, int64_t>> names; // a memref and its dimension, or a number and -1

  void merge(const Size &other) {
    if (ShapedType::isDynamic(known))
      known = other.known;
    names.append(other.names);
  }

  /// Whether both are known to be the same.
  bool is(const Size &other) const {
    if (!ShapedType::isDynamic(known) && !ShapedType::isDynamic(other.known))
      return known == other.known;
    return llvm::any_of(names, [&](const auto &name) { return llvm::is_contained(other.names, name); });
  }
};

Size sizeOf(Value memory, int64_t dimension) {
  SizeOrigin origin = originOf(memory, dimension);
  if (origin.known)
    return {*origin.known, {}};
  return {ShapedType::kDynamic, {{origin.value, origin.dimension}}};
}

/// Of each loop of an operation, or of each dimension of what is copied.
SmallVector<Size> sizesOf(Operation *op) {
  SmallVector<Size> sizes;
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    for (int64_t i = 0; i < cast<MemRefType>(copy.getSource().getType()).getRank(); ++i) {
      sizes.push_back(sizeOf(copy.getSource(), i));
      sizes.back().merge(sizeOf(copy.getTarget(), i));
    }
    return sizes;
  }
  auto linalgOp = cast<linalg::LinalgOp>(op);
  sizes.resize(linalgOp.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    for (auto [i, result] : llvm::enumerate(linalgOp.getMatchingIndexingMap(&operand).getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(result))
        sizes[loop.getPosition()].merge(sizeOf(operand.get(), int64_t(i)));
  }
  return sizes;
}

/// What the loops of these sizes are, given the sizes of the rows' dimensions and, last, along them.
std::optional<SmallVector<int>> rolesOf(ArrayRef<Size> loops, ArrayRef<Size> rows) {
  SmallVector<int> roles;
  size_t found = 0;
  for (const Size &loop : loops) {
    if (loop.known == 1) {
      roles.push_back(kUnit);
      continue;
    }
    if (found == rows.size() || !loop.is(rows[found]))
      return std::nullopt;
    roles.push_back(found + 1 == rows.size() ? kAlongRow : int(found));
    ++found;
  }
  if (found + 1 < rows.size())
    return std::nullopt;
  return roles;
}

/// Views that only add dimensions of size one, or leave them out.
Value withoutUnits(Value memory) {
  auto isUnitsAlone = [](MemRefType type, ArrayRef<ReassociationIndices> groups) {
    return llvm::all_of(groups, [&](const ReassociationIndices &group) {
      return llvm::count_if(group, [&](int64_t i) { return type.getDimSize(unsigned(i)) != 1; }) <= 1;
    });
  };
  for (;;) {
    if (auto expand = memory.getDefiningOp<memref::ExpandShapeOp>();
        expand && isUnitsAlone(expand.getResultType(), expand.getReassociationIndices()))
      memory = expand.getSrc();
    else if (auto collapse = memory.getDefiningOp<memref::CollapseShapeOp>();
             collapse && isUnitsAlone(collapse.getSrcType(), collapse.getReassociationIndices()))
      memory = collapse.getSrc();
    else
      return memory;
  }
}

/// None where dimensions are found in other ways, and where neighbours in a row are none in memory.
std::optional<RowAccess> accessOf(Value memory, SmallVector<int> place) {
  auto type = dyn_cast<MemRefType>(memory.getType());
  if (!type || !type.isStrided())
    return std::nullopt;
  auto along = llvm::count(place, kAlongRow);
  if (along > 1 ||
      (along == 1 && (place.back() != kAlongRow || type.getStridesAndOffset().first.back() != 1)))
    return std::nullopt;
  return RowAccess{Value(), memory, withoutUnits(memory), std::move(place)};
}

std::optional<RowAccess> accessOf(OpOperand &operand, ArrayRef<int> loops) {
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  if (!type)
    return RowAccess{operand.get(), Value(), Value(), {}};
  SmallVector<int> place;
  AffineMap map = cast<linalg::LinalgOp>(operand.getOwner()).getMatchingIndexingMap(&operand);
  for (auto [i, result] : llvm::enumerate(map.getResults())) {
    if (auto loop = dyn_cast<AffineDimExpr>(result))
      place.push_back(loops[loop.getPosition()]);
    else if (result == getAffineConstantExpr(0, map.getContext()) && type.getDimSize(unsigned(i)) == 1)
      place.push_back(kUnit);
    else
      return std::nullopt;
  }
  return accessOf(operand.get(), std::move(place));
}

/// Whether each row, or each element of each row, is accessed once.
bool isOnce(const RowAccess &access, size_t dimensions) {
  int next = 0;
  for (int role : access.place)
    if (role >= 0 && role != next++)
      return false;
  return next == int(dimensions);
}

/// Whether it is a product of matrices, which is for tiles: rows of one input meet several of another's, and
/// the other way round. A step would take all of both inputs for each of its rows.
bool isProduct(ArrayRef<RowAccess> inputs, size_t dimensions) {
  auto lacks = [](const RowAccess &one, const RowAccess &other) {
    return llvm::any_of(other.place,
                        [&](int role) { return role >= 0 && !llvm::is_contained(one.place, role); });
  };
  SmallVector<const RowAccess *> rows;
  for (const RowAccess &input : inputs)
    if (input.memory && input.isAlongRow()) {
      if (isOnce(input, dimensions)) // it has a row for each of the step's, which are not too many then
        return false;
      rows.push_back(&input);
    }
  return llvm::any_of(rows, [&](const RowAccess *one) {
    return llvm::any_of(rows,
                        [&](const RowAccess *other) { return lacks(*one, *other) && lacks(*other, *one); });
  });
}

/// The operation as a step on rows of these sizes, the last one of which is along them.
std::optional<RowStep> stepOf(Operation *op, ArrayRef<Size> rows) {
  std::optional<SmallVector<int>> loops = rolesOf(sizesOf(op), rows);
  if (!loops)
    return std::nullopt;
  RowStep step{op, std::nullopt, *loops, {}, {}, {}, llvm::is_contained(*loops, kAlongRow)};
  auto add = [](SmallVectorImpl<RowAccess> &to, std::optional<RowAccess> access) {
    if (access)
      to.push_back(std::move(*access));
    return access.has_value();
  };
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    step.loops.clear();
    if (!add(step.inputs, accessOf(copy.getSource(), *loops)) ||
        !add(step.outputs, accessOf(copy.getTarget(), *loops)))
      return std::nullopt;
  } else {
    auto linalgOp = cast<linalg::LinalgOp>(op);
    for (OpOperand *input : linalgOp.getDpsInputOperands())
      if (!add(step.inputs, accessOf(*input, *loops)))
        return std::nullopt;
    for (OpOperand &output : linalgOp.getDpsInitsMutable())
      if (!add(step.outputs, accessOf(output, *loops)))
        return std::nullopt;
    linalgOp.getBlock()->walk([&](Operation *each) {
      for (Value operand : each->getOperands())
        if (isa<BaseMemRefType>(operand.getType()))
          step.elsewhere.push_back(operand);
    });
    SmallVector<unsigned> reduction;
    linalgOp.getReductionDims(reduction);
    if (!reduction.empty()) {
      bool areHandedOn = llvm::all_of(linalgOp.getRegionOutputArgs(),
                                      [](BlockArgument output) { return canBeHandedOn(output.getType()); });
      if (reduction.size() != 1 || (*loops)[reduction[0]] != kAlongRow || !areHandedOn ||
          isProduct(step.inputs, rows.size() - 1))
        return std::nullopt;
      step.sums = LinalgSteps::of(linalgOp);
      if (!step.sums)
        return std::nullopt;
    }
  }
  bool writesElements = step.isOfElements && !step.sums;
  for (const RowAccess &output : step.outputs)
    if (!isOnce(output, rows.size() - 1) || output.isAlongRow() != writesElements)
      return std::nullopt;
  return step;
}

Value rootOf(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  return memory;
}

} // namespace

bool mayBeOne(Value argument, Value other) {
  auto one = dyn_cast<MemRefType>(rootOf(argument).getType()),
       two = dyn_cast<MemRefType>(rootOf(other).getType());
  return !one || !two ||
         (one.getElementType() == two.getElementType() && one.getRank() == two.getRank() &&
          succeeded(verifyCompatibleShape(one.getShape(), two.getShape())));
}

bool mayOverlap(Value one, Value other) {
  Value first = rootOf(one), second = rootOf(other);
  if (first == second)
    return true;
  auto isNew = [](Value root) {
    return isa_and_nonnull<memref::AllocOp, memref::AllocaOp>(root.getDefiningOp());
  };
  auto isOlder = [](Value root) { // than what the function allocates
    auto argument = dyn_cast<BlockArgument>(root);
    return root.getDefiningOp<memref::GetGlobalOp>() ||
           (argument && argument.getOwner()->isEntryBlock() &&
            isa<FunctionOpInterface>(argument.getOwner()->getParentOp()));
  };
  return !(isNew(first) && (isNew(second) || isOlder(second))) && !(isNew(second) && isOlder(first));
}

namespace {

/// Whether a function takes the memory as a tensor, which it leaves as it is: what it writes may be all of
/// that memory, where each element is read before it is written, but is no part of it.
bool isTensor(Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  if (!argument || !argument.getOwner()->isEntryBlock())
    return false;
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function && function.getArgAttr(argument.getArgNumber(), kReadOnly);
}

/// Whether what a step writes is of the same row, and of the same element of it, wherever else it is
/// accessed. What a body reads by itself, as one that gathers does, may be of any row.
bool areApart(ArrayRef<RowStep> steps, size_t dimensions) {
  SmallVector<const RowAccess *> all, written;
  for (const RowStep &step : steps)
    for (const auto *accesses : {&step.inputs, &step.outputs})
      for (const RowAccess &access : *accesses)
        if (access.memory) {
          all.push_back(&access);
          if (accesses == &step.outputs)
            written.push_back(&access);
        }
  auto isOneOperation = [&](const RowAccess &output, const RowAccess &other) {
    // Memory of an operation may not overlap in parts with what it writes.
    return llvm::any_of(steps, [&](const RowStep &step) {
      auto has = [](ArrayRef<RowAccess> accesses, Value buffer) {
        return llvm::any_of(accesses, [&](const RowAccess &access) { return access.buffer == buffer; });
      };
      return has(step.outputs, output.buffer) &&
             (has(step.inputs, other.buffer) || has(step.outputs, other.buffer));
    });
  };
  auto isSameElement = [&](const RowAccess &one, const RowAccess &other) {
    return isOnce(one, dimensions) && one.isAlongRow() == other.isAlongRow();
  };
  // What one operation has is the same memory or other memory. The same has as many dimensions; numbers of
  // rows are written at the end, under whatever name another step has read them.
  auto mayBeTheSame = [&](const RowAccess &output, const RowAccess &other) {
    return isOneOperation(output, other) &&
           (output.isAlongRow() != other.isAlongRow() || (other.isAlongRow() && isOnce(other, dimensions)));
  };
  for (const RowAccess *output : written) {
    for (const RowStep &step : steps)
      if (llvm::any_of(step.elsewhere, [&](Value memory) { return mayOverlap(memory, output->buffer); }))
        return false;
    for (const RowAccess *other : all) {
      if (other->buffer == output->buffer) {
        if (!isSameElement(*other, *output))
          return false;
      } else if (mayOverlap(other->buffer, output->buffer) &&
                 (rootOf(other->buffer) == rootOf(output->buffer) ||
                  !(mayBeTheSame(*output, *other) ||
                    (isTensor(rootOf(other->buffer)) &&
                     (isSameElement(*other, *output) || !mayBeOne(other->buffer, output->buffer)))))) {
        return false;
      }
    }
  }
  return true;
}

bool isCandidate(Operation &op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.hasPureBufferSemantics() && mayBeRepeated(linalgOp);
  auto copy = dyn_cast<memref::CopyOp>(op);
  return copy && isa<MemRefType>(copy.getSource().getType()) && isa<MemRefType>(copy.getTarget().getType());
}

/// Operations that stay in front of what is made of the steps around them.
bool isPassive(Operation &op) {
  return isa<memref::AllocOp>(op) || (op.getNumRegions() == 0 && isMemoryEffectFree(&op));
}

constexpr size_t kMostSteps = 32; // of a kernel, each of which may have a sum of its own in registers

/// Steps around the first operation of a run that reduces rows. Returns the number of the one behind them.
size_t takeSteps(ArrayRef<Operation *> run, size_t start, std::vector<RowSteps> &found) {
  for (size_t at = start; at < run.size(); ++at) {
    auto first = dyn_cast<linalg::LinalgOp>(run[at]);
    if (!first || first.getNumReductionLoops() != 1)
      continue;
    RowSteps taken;
    taken.first = first;
    SmallVector<Size> rows;
    for (auto [loop, size] : llvm::enumerate(sizesOf(first)))
      if (size.known != 1) {
        taken.loops.push_back(unsigned(loop));
        rows.push_back(size);
      }
    std::optional<RowStep> step = rows.empty() ? std::nullopt : stepOf(first, rows);
    if (!step || !step->sums)
      continue;
    auto take = [&](Operation *op, bool inFront) {
      std::optional<RowStep> other = stepOf(op, rows);
      if (!other)
        return false;
      std::vector<RowStep> all = taken.steps;
      all.insert(inFront ? all.begin() : all.end(), std::move(*other));
      if (!areApart(all, rows.size() - 1))
        return false;
      taken.steps = std::move(all);
      for (auto [role, size] : llvm::zip_equal(*rolesOf(sizesOf(op), rows), sizesOf(op)))
        if (role != kUnit)
          rows[role == kAlongRow ? rows.size() - 1 : size_t(role)].merge(size);
      return true;
    };
    size_t from = at, until = at;
    auto hasRoom = [&] { return taken.steps.size() < kMostSteps; };
    while (until < run.size() && hasRoom() && take(run[until], /*inFront=*/false))
      ++until;
    while (until > at && from > start && hasRoom() && take(run[from - 1], /*inFront=*/true))
      --from;
    if (taken.steps.size() < 2)
      continue;
    found.push_back(std::move(taken));
    return until;
  }
  return run.size();
}

} // namespace

std::vector<RowSteps> rowStepsOf(Block &block) {
  std::vector<RowSteps> found;
  SmallVector<Operation *> run;
  auto finish = [&] {
    for (size_t at = 0; at < run.size();)
      at = takeSteps(run, at, found);
    run.clear();
  };
  for (Operation &op : block)
    if (isCandidate(op))
      run.push_back(&op);
    else if (!isPassive(op))
      finish();
  finish();
  return found;
}

bool isBetween(const RowSteps &rows, Value buffer) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  return alloc && llvm::all_of(alloc->getUsers(), [&](Operation *user) {
           return isa<memref::DeallocOp>(user) ||
                  llvm::any_of(rows.steps, [&](const RowStep &step) { return step.op == user; });
         });
}

/// Whether the output of a step may have, from the step on that writes memory between the steps, what is kept
/// there.
static bool mayKeep(const RowSteps &rows, size_t last, const RowAccess &output, const RowAccess &between) {
  auto elementOf = [](const RowAccess &access) {
    return cast<MemRefType>(access.memory.getType()).getElementType();
  };
  if (!between.isAlongRow() || !output.isAlongRow() || elementOf(between) != elementOf(output) ||
      !isBetween(rows, between.buffer))
    return false;
  bool isWritten = false; // by a step before
  for (const auto &[i, step] : llvm::enumerate(rows.steps)) {
    auto isIt = [&](const RowAccess &access) { return access.buffer == between.buffer; };
    if (i > last) { // the output is another's by now
      if (llvm::any_of(step.inputs, isIt) || llvm::any_of(step.outputs, isIt))
        return false;
      continue;
    }
    bool writesFirst = !isWritten && llvm::any_of(step.outputs, isIt);
    if (isWritten || writesFirst)
      for (const auto *accesses : {&step.inputs, &step.outputs})
        for (const RowAccess &access : *accesses) {
          if (!access.memory || access.buffer == between.buffer || &access == &output ||
              !mayOverlap(access.buffer, output.buffer))
            continue;
          // That step still reads the element in whose place it leaves another.
          if (!writesFirst || accesses != &step.inputs || !access.isAlongRow() ||
              !isOnce(access, rows.loops.size() - 1))
            return false;
        }
    if (i == last && !isWritten)
      return false;
    isWritten |= writesFirst;
  }
  return true;
}

SmallVector<Operation *> keepInOutputs(RowSteps &rows) {
  SmallVector<Operation *> unused;
  for (size_t last = 0; last < rows.steps.size(); ++last) {
    RowStep &step = rows.steps[last];
    auto op = dyn_cast<linalg::LinalgOp>(step.op);
    for (auto [i, output] : llvm::enumerate(step.outputs)) {
      if (step.sums || (op && !op.getRegionOutputArgs()[i].use_empty()))
        continue;
      for (const RowAccess &input : step.inputs) {
        if (!input.memory || !mayKeep(rows, last, output, input))
          continue;
        const RowAccess between = input, kept = output;
        unused.push_back(between.memory.getDefiningOp());
        for (RowStep &each : rows.steps)
          for (auto *accesses : {&each.inputs, &each.outputs})
            for (RowAccess &access : *accesses)
              if (access.memory && access.buffer == between.buffer)
                access = kept;
        break; // it has the elements of one
      }
    }
  }
  return unused;
}

bool isSpeculatableStep(const RowStep &step) {
  auto op = dyn_cast<linalg::LinalgOp>(step.op);
  return !op || llvm::all_of(op.getBlock()->without_terminator(),
                             [](Operation &each) { return isSpeculatable(&each); });
}

} // namespace offload
