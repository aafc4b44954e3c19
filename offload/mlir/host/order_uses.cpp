//===- order_uses.cpp - What runs behind the uses of its memory -----------===//
//
// Programs written for upstream's runtime leave out dependencies. Its free waits for the whole device, and
// sparse-gpu-codegen frees a kernel's operands on streams of their own; here gpu.dealloc is a free in the
// order of its stream. Its copies from memory that is not registered are over soon, and tests of TMA launch a
// kernel without a token while copies to its operands, with one, are not waited for.
//
// So a free, and an operation without a token, depend on every operation with a token that uses the memory
// before them. Where such an operation stands in a loop or on one of several ways, or a function gets the
// memory, there is no token to depend on: all that is on the function's streams is waited for.
//
//===----------------------------------------------------------------------===//

#include "host/buffer_flow.h"
#include "host/lowering.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;

namespace offload {
namespace {

/// The tokens that an operation waits for, and those that these wait for.
void addBefore(Operation *op, DenseSet<Value> &tokens) {
  SmallVector<Value> found;
  if (auto async = dyn_cast<gpu::AsyncOpInterface>(op))
    llvm::append_range(found, async.getAsyncDependencies());
  while (!found.empty()) {
    Value token = found.pop_back_val();
    if (!tokens.insert(token).second)
      continue;
    if (auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(token.getDefiningOp()))
      llvm::append_range(found, async.getAsyncDependencies());
  }
}

/// A use of memory that must not overtake earlier ones.
struct Use {
  Operation *op; // without tokens where it is a call
  SmallVector<Value> memory;
  bool any = false; // it may be all there is: a kernel's pointer, or what describes memory for TMA
};

std::optional<Use> useOf(gpu::AsyncOpInterface op) {
  if (auto free = dyn_cast<gpu::DeallocOp>(*op))
    return Use{op, {free.getMemref()}};
  if (op.getAsyncToken())
    return std::nullopt;
  if (auto copy = dyn_cast<gpu::MemcpyOp>(*op))
    return Use{op, {copy.getDst(), copy.getSrc()}};
  if (auto fill = dyn_cast<gpu::MemsetOp>(*op))
    return Use{op, {fill.getDst()}};
  auto launch = dyn_cast<gpu::LaunchFuncOp>(*op);
  if (!launch || launch.getAsyncObject()) // whose stream the author orders
    return std::nullopt;
  Use use{op, {}};
  for (Value operand : launch.getKernelOperands()) {
    if (isa<BaseMemRefType>(operand.getType()))
      use.memory.push_back(operand);
    use.any |= isa<LLVM::LLVMPointerType>(operand.getType());
  }
  return use;
}

/// What a call of a function of this program uses in order: the memory of the operations that are no host
/// code, in that function and those that it calls. They have no order of their own with what the caller has
/// put on its streams.
std::optional<Use> useOf(func::CallOp call) {
  Use use{call, {}};
  SmallVector<func::CallOp> calls = {call};
  DenseSet<Operation *> seen;
  while (!calls.empty()) {
    func::CallOp next = calls.pop_back_val();
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(next, next.getCalleeAttr());
    if (!callee || !seen.insert(callee).second)
      continue;
    callee.walk([&](Operation *op) {
      if (auto inner = dyn_cast<func::CallOp>(op))
        calls.push_back(inner);
      auto async = dyn_cast<gpu::AsyncOpInterface>(op);
      if (std::optional<Use> inside = async ? useOf(async) : std::nullopt) {
        use.memory.append(inside->memory);
        use.any |= inside->any;
      }
    });
  }
  return use.any || !use.memory.empty() ? std::optional(use) : std::nullopt;
}

/// May it run before, though not always, or in an earlier turn of a loop than the last?
bool mayHaveRun(Operation *other, Operation *op, DominanceInfo &dominance) {
  Block *there = other->getBlock(), *here = op->getBlock();
  if (there->getParent() != here->getParent()) // of a region that has not been lowered
    return other->getParentOfType<FunctionOpInterface>() == op->getParentOfType<FunctionOpInterface>();
  if (!dominance.properlyDominates(other, op))
    return there->isReachable(here);
  return there != here && there->isReachable(there, {here});
}

/// Is what has that token done, or before the operation's own tokens, on every way from there to the
/// operation?
bool isBehind(Operation *op, Value token) {
  enum { MostWays = 1000 };
  using Way = std::pair<Block::iterator, SmallVector<Value, 2>>; // with the tokens that stand for it there
  SmallVector<Way> ways;
  DenseMap<Block *, SmallVector<SmallVector<Value, 2>>> seen;
  Operation *maker = token.getDefiningOp();
  ways.push_back({std::next(maker->getIterator()), {token}});
  for (int count = 0; !ways.empty(); ++count) {
    if (count == MostWays)
      return false;
    auto [it, tokens] = ways.pop_back_val();
    bool over = false;
    for (Block *block = it->getBlock(); it != block->end() && !over; ++it) {
      bool waits =
          llvm::any_of(it->getOperands(), [&](Value value) { return llvm::is_contained(tokens, value); });
      if (&*it == op && !waits)
        return false;
      over = &*it == op;
      if (auto async = dyn_cast<gpu::AsyncOpInterface>(*it)) {
        Value made = async.getAsyncToken();
        llvm::erase(tokens, made); // of another turn of a loop
        if (waits && made)
          tokens.push_back(made);
        over |= waits && !made; // done when the next operation starts
      }
      if (over || &*it != &block->back())
        continue;
      auto branch = dyn_cast<BranchOpInterface>(*it);
      if (!branch && it->getNumSuccessors())
        return false;
      for (auto [index, next] : llvm::enumerate(it->getSuccessors())) {
        SmallVector<Value, 2> there(tokens);
        SuccessorOperands operands = branch.getSuccessorOperands(unsigned(index));
        for (unsigned i = 0; i < operands.size(); ++i)
          if (!operands.isOperandProduced(i) && llvm::is_contained(tokens, operands[i]) &&
              !llvm::is_contained(there, next->getArgument(i)))
            there.push_back(next->getArgument(i));
        // An argument that stood for it when the block was entered before stands for what comes now.
        llvm::erase_if(there, [&, next = next](Value value) {
          auto argument = dyn_cast<BlockArgument>(value);
          return argument && argument.getOwner() == next &&
                 !llvm::is_contained(tokens, operands[argument.getArgNumber()]);
        });
        auto &before = seen[next];
        if (!llvm::is_contained(before, there)) {
          before.push_back(there);
          ways.push_back({next->begin(), there});
        }
      }
    }
  }
  return true;
}

/// Returns whether all that is on the function's streams has to be waited for.
bool order(const Use &use, BufferFlow &flow, DominanceInfo &dominance) {
  Operation *op = use.op;
  auto waiting = dyn_cast<gpu::AsyncOpInterface>(op);
  DenseSet<Value> before;
  addBefore(op, before);
  if (!waiting) // the tokens that a call gets are the callee's to wait for
    for (Value operand : op->getOperands())
      if (auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(operand.getDefiningOp());
          async && operand == async.getAsyncToken() && before.insert(operand).second)
        addBefore(async, before);
  DenseSet<Operation *> missing;
  auto add = [&](Operation *other) {
    auto async = dyn_cast_or_null<gpu::AsyncOpInterface>(other);
    auto call = dyn_cast_or_null<func::CallOp>(other);
    if ((call && call != op && getsToken(call)) ||
        (async && async.getAsyncToken() && !before.contains(async.getAsyncToken()) &&
         !isa<gpu::DeallocOp>(other)))
      missing.insert(other);
  };
  for (Value memory : use.memory)
    for (Value value : flow.classOf(memory).values) {
      llvm::for_each(value.getUsers(), add);
      add(value.getDefiningOp());
    }
  // Most programs miss nothing: the whole function is not read for each of their uses.
  if (missing.empty() && !use.any)
    return false;
  SmallVector<Value> tokens;
  bool unordered = false;
  op->getParentOfType<FunctionOpInterface>()->walk([&](Operation *each) {
    if (auto call = dyn_cast<func::CallOp>(each)) {
      bool counts = call != op && getsToken(call) && (missing.contains(call) || use.any);
      unordered |= counts && (dominance.properlyDominates(call, op) || mayHaveRun(call, op, dominance));
    }
    auto other = dyn_cast<gpu::AsyncOpInterface>(each);
    if (!other || isa<gpu::DeallocOp>(each))
      return;
    bool counts = other.getAsyncToken() && (missing.contains(other) || use.any);
    unordered |= counts && mayHaveRun(other, op, dominance) && !isBehind(op, other.getAsyncToken());
    if (!dominance.properlyDominates(other, op))
      return;
    if (!other.getAsyncToken()) // done when the next operation starts
      addBefore(other, before);
    else if (counts)
      tokens.push_back(other.getAsyncToken());
  });
  if (!waiting)
    return unordered || llvm::any_of(tokens, [&](Value token) { return !before.contains(token); });
  // The last operation of a stream stands for those before it.
  for (Value token : llvm::reverse(tokens))
    if (!before.contains(token)) {
      waiting.addAsyncDependency(token);
      addBefore(op, before);
    }
  return unordered;
}

} // namespace

SmallVector<Operation *> orderUses(ModuleOp module) {
  SmallVector<Use> uses;
  SmallVector<Operation *> waiting;
  for (Operation &function : module.getOps()) {
    bool tokens = false;
    size_t first = uses.size();
    if (isa<FunctionOpInterface>(function))
      function.walk([&](Operation *op) {
        auto async = dyn_cast<gpu::AsyncOpInterface>(op);
        auto call = dyn_cast<func::CallOp>(op);
        tokens |= async && async.getAsyncToken();
        if (std::optional<Use> use = async ? useOf(async) : call ? useOf(call) : std::nullopt)
          uses.push_back(*use);
      });
    if (!tokens)
      uses.truncate(first);
  }
  if (uses.empty())
    return waiting;
  BufferFlow flow(module);
  DominanceInfo dominance(module);
  for (const Use &use : uses)
    if (order(use, flow, dominance))
      waiting.push_back(use.op);
  return waiting;
}

} // namespace offload
