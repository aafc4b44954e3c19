//===- chains.cpp - offload-cut-chains, offload-join-chains ---------------===//
//
// To tell whether an operation may work in its tensor's place, MLIR's eliminate-empty-tensors and
// one-shot-bufferize compare, of the tensors that may share memory with it, all that are read with all that
// are written: of a chain of n, that is n^3 comparisons, and they take longer in long chains, too. 160 slices
// that are taken out of one tensor, changed and put back took two minutes.
//
// Long chains become calls of functions of some dozens of operations each, which are analysed one by one. It
// is cut where that changes nothing: the tensors that are needed behind a cut do not share memory, so that
// what a function says of its arguments is all there is to know. After the bufferization, the functions are
// parts of their callers again.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SubsetOpInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace offload {
namespace {

/// On functions that are parts of their only callers.
constexpr char kIsPart[] = "offload.part";

bool holdsElements(Value value) { return isa<TensorType, BaseMemRefType>(value.getType()); }

bool isView(Operation *op) {
  return isa_and_nonnull<tensor::ExtractSliceOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         tensor::CastOp, tensor::ReshapeOp>(op);
}

/// Is it made anew wherever it is needed?
bool isCloned(Operation *op) {
  return op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op));
}

/// Is it a caller's, and stays as it is?
bool isConstantArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!function)
    return false;
  auto writable = function.getArgAttrOfType<BoolAttr>(argument.getArgNumber(),
                                                      bufferization::BufferizationDialect::kWritableAttrName);
  return writable && !writable.getValue();
}

/// Which values of a function may share memory once it is bufferized.
class Sharing {
public:
  explicit Sharing(func::FuncOp function) {
    function.walk([&](Operation *op) { add(op); });
    for (const auto *each : members)
      ++sizes[members.getLeaderValue(each->getData())];
    auto note = [&](Value value) { readOnly.insert(leaderOf(unwritten, value)); };
    llvm::for_each(llvm::make_filter_range(function.getArguments(), isConstantArgument), note);
    function.walk([&](Operation *op) {
      auto tensor = dyn_cast<bufferization::ToTensorOp>(op);
      if (op->hasTrait<OpTrait::ConstantLike>() || (tensor && !tensor.getWritable()))
        llvm::for_each(op->getResults(), note);
    });
  }

  /// One of those that share memory with it, the same one for all of them.
  void *of(Value value) const { return leaderOf(members, value); }
  /// How many do.
  unsigned countOf(Value value) const { return sizes.lookup(of(value)); }
  unsigned most() const {
    unsigned count = 0;
    for (const auto &each : sizes)
      count = std::max(count, each.second);
    return count;
  }
  /// May it be memory that nobody may write to: an argument's, a constant's, a program's own? What is
  /// computed or inserted in its place is not, as that would be written.
  bool isReadOnly(Value value) const { return readOnly.contains(leaderOf(unwritten, value)); }

private:
  using Classes = llvm::EquivalenceClasses<void *>;

  static void *leaderOf(const Classes &classes, Value value) {
    auto leader = classes.findLeader(value.getAsOpaquePointer());
    return leader == classes.member_end() ? value.getAsOpaquePointer() : *leader;
  }

  void join(Value a, Value b, bool isWritten = false) {
    if (!holdsElements(a) || !holdsElements(b))
      return;
    members.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
    if (!isWritten)
      unwritten.unionSets(a.getAsOpaquePointer(), b.getAsOpaquePointer());
  }

  void joinAll(ValueRange values, Value &with) {
    for (Value value : values) {
      if (!holdsElements(value))
        continue;
      if (with)
        join(with, value);
      with = value;
    }
  }

  void add(Operation *op) {
    if (isCloned(op) || isa<bufferization::AllocTensorOp, tensor::GenerateOp, tensor::FromElementsOp,
                            tensor::SplatOp, func::FuncOp>(op))
      return;
    if (auto computed = dyn_cast<DestinationStyleOpInterface>(op)) {
      for (OpResult result : op->getResults())
        join(result, computed.getTiedOpOperand(result)->get(), /*isWritten=*/true);
      return;
    }
    if (isa<scf::ForOp, scf::ForallOp>(op)) {
      auto loop = cast<LoopLikeOpInterface>(op);
      for (auto [result, init, inside] :
           llvm::zip_equal(op->getResults(), loop.getInits(), loop.getRegionIterArgs())) {
        join(result, init);
        join(result, inside);
      }
      if (isa<scf::ForOp>(op))
        for (auto [result, yielded] : llvm::zip_equal(op->getResults(), loop.getYieldedValues()))
          join(result, yielded);
      return;
    }
    if (isa<scf::IfOp, scf::IndexSwitchOp>(op)) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (auto [result, yielded] : llvm::zip(op->getResults(), block.getTerminator()->getOperands()))
            join(result, yielded);
      return;
    }
    if (op->getNumResults() == 0 && op->getNumRegions() == 0)
      return;
    Value some; // of an operation that is not known, all that goes in or comes out
    joinAll(op->getOperands(), some);
    joinAll(op->getResults(), some);
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        joinAll(block.getArguments(), some);
        if (block.mightHaveTerminator())
          joinAll(block.getTerminator()->getOperands(), some);
      }
  }

  Classes members, unwritten;
  llvm::DenseMap<void *, unsigned> sizes;
  llvm::DenseSet<void *> readOnly;
};

/// The operations of a block by number, and where it may be cut: cut `p` is in front of operation p.
class Places {
public:
  Places(Block &block, const Sharing &sharing, unsigned longest)
      : block(block), sharing(sharing), longest(longest) {
    for (Operation &op : block.without_terminator()) {
      numbers[&op] = unsigned(ops.size());
      ops.push_back(&op);
    }
    changes.resize(ops.size() + 2);
    starting.resize(ops.size() + 2);
    ending.resize(ops.size() + 2);
    llvm::SetVector<Value> outside;
    for (BlockArgument argument : block.getArguments())
      addNeeded(argument, 0);
    for (Operation *op : ops)
      for (Value result : op->getResults())
        addNeeded(result, numbers[op] + 1);
    block.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Block *home = operand.getParentBlock(); home->getParent()->isProperAncestor(block.getParent()))
          outside.insert(operand);
    });
    for (Value value : outside) // the next iteration needs it again
      add(value, 0, unsigned(ops.size()));
  }

  /// Parts of the block with `size` tensors of long chains, as pairs of numbers, the last one excluded.
  SmallVector<std::pair<unsigned, unsigned>> parts(unsigned size) const {
    SmallVector<std::pair<unsigned, unsigned>> found;
    llvm::DenseMap<void *, unsigned> needed; // how many that share memory
    unsigned together = 0, forbidden = 0, begin = 0, count = 0;
    for (unsigned p = 0; p <= ops.size(); ++p) {
      forbidden += unsigned(changes[p]);
      for (void *memory : ending[p])
        together -= --needed[memory] == 1;
      for (void *memory : starting[p])
        together += ++needed[memory] == 2;
      if (count >= size && together == 0 && forbidden == 0) {
        found.push_back({begin, p});
        begin = p;
        count = 0;
      }
      if (p < ops.size())
        count += longIn(ops[p]);
    }
    return found;
  }

  SmallVector<Operation *> ops;

private:
  unsigned longIn(Operation *root) const {
    unsigned count = 0;
    root->walk([&](Operation *op) {
      count += unsigned(
          llvm::count_if(op->getResults(), [&](Value each) { return sharing.countOf(each) > longest; }));
    });
    return count;
  }

  void addNeeded(Value value, unsigned first) {
    if (!holdsElements(value) || isCloned(value.getDefiningOp()))
      return;
    unsigned last = 0;
    for (Operation *user : value.getUsers()) {
      Operation *op = block.findAncestorOpInBlock(*user);
      last = std::max(last, numbers.contains(op) ? numbers.lookup(op) : unsigned(ops.size()));
    }
    add(value, first, last);
  }

  /// The value is needed behind the cuts from `first` to `last`.
  void add(Value value, unsigned first, unsigned last) {
    if (!holdsElements(value) || isCloned(value.getDefiningOp()) || isConstantArgument(value) || first > last)
      return;
    starting[first].push_back(sharing.of(value));
    ending[last + 1].push_back(sharing.of(value));
    // A view would be memory of its own to the caller, as would be what nobody may write to, and of what is
    // inserted somewhere nobody could see any more that it can be made there.
    bool isInserted = llvm::any_of(value.getUses(), [](OpOperand &use) {
      auto insertion = dyn_cast<SubsetInsertionOpInterface>(use.getOwner());
      return insertion && &insertion.getSourceOperand() == &use;
    });
    bool isMade = value.getDefiningOp() && value.getParentBlock() == &block;
    if (!isInserted && !(isMade && (isView(value.getDefiningOp()) || sharing.isReadOnly(value))))
      return;
    ++changes[first];
    --changes[last + 1];
  }

  Block &block;
  const Sharing &sharing;
  unsigned longest;
  llvm::DenseMap<Operation *, unsigned> numbers;
  SmallVector<int> changes; // of how many forbid a cut
  SmallVector<SmallVector<void *, 2>> starting, ending;
};

/// Makes what an operation needs of constants and empty tensors anew in front of it. Adds what was there.
void remake(Operation *op, SmallVectorImpl<Operation *> &made, SetVector<Operation *> &before) {
  llvm::MapVector<Value, Value> found;
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      Operation *from = operand.get().getDefiningOp();
      if (!isCloned(from) || op->isAncestor(from))
        continue;
      Value &value = found[operand.get()];
      if (!value) {
        Operation *clone = OpBuilder(op).clone(*from);
        before.insert(from);
        remake(clone, made, before); // the sizes of an empty tensor
        made.push_back(clone);
        value = clone->getResult(0);
      }
      operand.set(value);
    }
  });
}

/// Makes a function of operations that follow each other, and calls it in their place. Constants and empty
/// tensors stay, and are made anew there.
void outline(ArrayRef<Operation *> range, const Sharing &sharing, SymbolTable &symbols,
             SetVector<Operation *> &before) {
  SmallVector<Operation *> ops;
  for (Operation *op : range) {
    if (isCloned(op))
      continue;
    remake(op, ops, before);
    ops.push_back(op);
  }
  if (ops.empty())
    return;
  Operation *first = ops.front();
  Location loc = first->getLoc();
  OpBuilder b(first);
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
  Block *block = first->getBlock();
  auto isInside = [&](Operation *op) {
    Operation *ancestor = block->findAncestorOpInBlock(*op);
    return ancestor && inside.contains(ancestor);
  };
  SetVector<Value> inputs;
  SmallVector<Value> outputs;
  for (Operation *op : ops) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *from = operand.getDefiningOp();
        if (!isInside(from ? from : operand.getParentBlock()->getParentOp()))
          inputs.insert(operand);
      }
    });
    llvm::copy_if(op->getResults(), std::back_inserter(outputs), [&](Value result) {
      return llvm::any_of(result.getUsers(), [&](Operation *user) { return !isInside(user); });
    });
  }

  auto type = b.getFunctionType(TypeRange(inputs.getArrayRef()), TypeRange(outputs));
  b.clearInsertionPoint();
  auto function = func::FuncOp::create(b, loc, "offload_part", type);
  function.setPrivate();
  function->setAttr(kIsPart, b.getUnitAttr());
  symbols.insert(function);
  Block *body = function.addEntryBlock();
  b.setInsertionPoint(first);
  auto call = func::CallOp::create(b, loc, function, inputs.getArrayRef());
  for (Operation *op : ops)
    op->moveBefore(body, body->end());
  for (auto [output, result] : llvm::zip_equal(outputs, call.getResults()))
    output.replaceUsesWithIf(result, [&](OpOperand &use) { return !function->isAncestor(use.getOwner()); });
  StringRef writable = bufferization::BufferizationDialect::kWritableAttrName;
  for (auto [input, argument] : llvm::zip_equal(inputs.getArrayRef(), body->getArguments())) {
    if (isa<TensorType>(input.getType()) && sharing.isReadOnly(input))
      function.setArgAttr(argument.getArgNumber(), writable, b.getBoolAttr(false));
    Value(input).replaceUsesWithIf(argument,
                                   [&](OpOperand &use) { return function->isAncestor(use.getOwner()); });
  }
  b.setInsertionPointToEnd(body);
  func::ReturnOp::create(b, loc, outputs);
}

struct CutChains : public PassWrapper<CutChains, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CutChains)

  CutChains() = default;
  CutChains(const CutChains &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-cut-chains"; }
  StringRef getDescription() const final { return "Make long chains of tensors calls of functions"; }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      Sharing sharing(function);
      if (sharing.most() <= longest)
        continue;
      SmallVector<Block *> blocks; // those inside of others first
      function.walk([&](Block *block) { blocks.push_back(block); });
      SetVector<Operation *> before;
      for (Block *block : blocks) {
        if (!isa<func::FuncOp, scf::ForOp, scf::IfOp>(block->getParentOp()) || !block->mightHaveTerminator())
          continue;
        Places places(*block, sharing, longest);
        for (auto [begin, end] : places.parts(part))
          outline(ArrayRef(places.ops).slice(begin, end - begin), sharing, symbols, before);
      }
      for (Operation *op : before)
        if (op->use_empty())
          op->erase();
    }
  }

  // The analysis of so many takes a tenth of a second.
  Option<unsigned> longest{*this, "longest", llvm::cl::init(64),
                           llvm::cl::desc("how many tensors of one memory are no long chain yet")};
  Option<unsigned> part{*this, "part", llvm::cl::init(24), llvm::cl::desc("how many of them a function has")};
};

struct JoinChains : public PassWrapper<JoinChains, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinChains)

  StringRef getArgument() const final { return "offload-join-chains"; }
  StringRef getDescription() const final { return "Make functions that long chains became parts of them"; }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    SmallVector<std::pair<func::CallOp, func::FuncOp>> parts;
    getOperation().walk([&](func::CallOp call) {
      auto function = symbols.lookup<func::FuncOp>(call.getCallee());
      if (function && function->hasAttr(kIsPart))
        parts.push_back({call, function});
    });
    for (auto [call, function] : parts) {
      Block &body = function.front();
      for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), call.getOperands()))
        argument.replaceAllUsesWith(operand);
      Operation *end = body.getTerminator();
      call->replaceAllUsesWith(end->getOperands());
      end->erase();
      call->getBlock()->getOperations().splice(call->getIterator(), body.getOperations());
      call.erase();
      symbols.erase(function);
    }
  }
};

} // namespace

void registerChainPasses() {
  PassRegistration<CutChains>();
  PassRegistration<JoinChains>();
}

} // namespace offload
