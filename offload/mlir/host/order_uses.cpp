//===- order_uses.cpp - What runs behind the uses of its memory -----------===//
//
// Programs written for upstream's runtime leave out dependencies. Its free waits for the whole device, and
// sparse-gpu-codegen frees a kernel's operands on streams of their own; here gpu.dealloc is a free in the
// order of its stream. Its copies from memory that is not registered are over soon, and tests of TMA launch a
// kernel without a token while copies to its operands, with one, are not waited for.
//
// So a free, and an operation without a token, depend on every operation with a token that uses the memory
// before them; and in a function that gets tokens, on these. Where such an operation stands in a loop or on
// one of several ways, or a function gets the memory, there is no token to depend on: all that is on the
// function's streams is waited for.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "host/memory_uses.h"

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

/// May it run before, though not always, or in an earlier turn of a loop than the last?
bool mayHaveRun(Operation *other, Operation *op, DominanceInfo &dominance) {
  Block *there = other->getBlock(), *here = op->getBlock();
  if (there->getParent() != here->getParent()) // of a region that has not been lowered
    return other->getParentOfType<FunctionOpInterface>() == op->getParentOfType<FunctionOpInterface>();
  if (!dominance.properlyDominates(other, op))
    return there->isReachable(here);
  return there != here && there->isReachable(there, {here});
}

/// Is a token waited for in the block that makes it, with the operation not before that? So most are, and no
/// ways are to be gone.
bool isWaitedForAtOnce(Operation *op, Value token) {
  Operation *maker = token.getDefiningOp();
  auto isBetween = [&](Operation *user) {
    return op->getBlock() == maker->getBlock() && maker->isBeforeInBlock(op) && op->isBeforeInBlock(user);
  };
  return llvm::any_of(token.getUsers(), [&](Operation *user) {
    auto async = dyn_cast<gpu::AsyncOpInterface>(user);
    return async && !async.getAsyncToken() && user->getBlock() == maker->getBlock() && !isBetween(user);
  });
}

/// Is what has that token done, or before the operation's own tokens, on every way from there to the
/// operation?
bool isBehind(Operation *op, Value token) {
  if (isWaitedForAtOnce(op, token))
    return true;
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

/// An operation of a function that uses memory, or makes or takes a token.
struct Step {
  Operation *op;
  Touched touched;
  bool isWork; // others may have to wait for its end: it has a token, or is a call that gets one
};

/// The tokens that a function gets: what stands behind them is on streams of its callers, and so is what it
/// puts there.
SmallVector<Value> tokensGiven(Operation *function) {
  Region &body = cast<FunctionOpInterface>(function).getFunctionBody();
  return llvm::filter_to_vector(ValueRange(body.getArguments()),
                                [](Value value) { return isa<gpu::AsyncTokenType>(value.getType()); });
}

/// Puts an operation behind the steps that use its memory. Returns whether all that is on the function's
/// streams has to be waited for.
bool order(Operation *op, const Touched &use, ArrayRef<Step> steps, ArrayRef<Value> given,
           DominanceInfo &dominance) {
  auto waiting = dyn_cast<gpu::AsyncOpInterface>(op); // else a call, which has no tokens
  DenseSet<Value> before;
  addBefore(op, before);
  if (!waiting) // the tokens that a call gets are the callee's to wait for
    for (Value operand : op->getOperands())
      if (isa<gpu::AsyncTokenType>(operand.getType()) && before.insert(operand).second)
        if (Operation *maker = operand.getDefiningOp())
          addBefore(maker, before);
  auto tokenOf = [](Operation *other) {
    auto async = dyn_cast<gpu::AsyncOpInterface>(other);
    return async ? async.getAsyncToken() : Value();
  };
  DenseSet<Operation *> missing;
  for (const Step &step : steps)
    if (step.isWork && step.op != op && !before.contains(tokenOf(step.op)) && step.touched.mayMeet(use))
      missing.insert(step.op);
  if (missing.empty() && given.empty()) // as in most programs
    return false;
  SmallVector<Value> tokens;
  bool unordered = false;
  for (const Step &step : steps) {
    bool isBefore = dominance.properlyDominates(step.op, op);
    Value token = tokenOf(step.op);
    if (!unordered && missing.contains(step.op)) // each question reads a part of the function
      unordered = token ? mayHaveRun(step.op, op, dominance) && !isBehind(op, token)
                        : isBefore || mayHaveRun(step.op, op, dominance);
    if (!isBefore)
      continue;
    if (isa<gpu::AsyncOpInterface>(step.op) && !token) // done when the next operation starts
      addBefore(step.op, before);
    else if (token && missing.contains(step.op))
      tokens.push_back(token);
  }
  SmallVector<Value> callers =
      llvm::filter_to_vector(given, [&](Value token) { return unordered || !before.contains(token); });
  if (!waiting) {
    OpBuilder b(op);
    if (!callers.empty())
      gpu::WaitOp::create(b, op->getLoc(), Type(), callers);
    return unordered || llvm::any_of(tokens, [&](Value token) { return !before.contains(token); });
  }
  auto putBehind = [&](Value token) {
    if (llvm::is_contained(waiting.getAsyncDependencies(), token))
      return;
    waiting.addAsyncDependency(token);
    addBefore(op, before);
  };
  // The last operation of a stream stands for those before it.
  for (Value token : llvm::reverse(tokens))
    if (!before.contains(token))
      putBehind(token);
  llvm::for_each(callers, putBehind);
  return unordered;
}

} // namespace

SmallVector<Operation *> orderUses(ModuleOp module) {
  SmallVector<Operation *> waiting;
  std::optional<MemoryUses> memory; // most programs have no tokens
  DominanceInfo dominance(module);
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (function.isExternal())
      continue;
    SmallVector<Operation *> found;
    bool makesTokens = false;
    function.walk([&](Operation *op) {
      makesTokens |= llvm::any_of(op->getResultTypes(), llvm::IsaPred<gpu::AsyncTokenType>);
      if (isa<gpu::AsyncOpInterface, CallOpInterface>(op))
        found.push_back(op);
    });
    SmallVector<Value> given = tokensGiven(function);
    if (found.empty() || (!makesTokens && given.empty()))
      continue;
    if (!memory)
      memory.emplace(module);
    SmallVector<Step> steps;
    SmallVector<std::pair<Operation *, Touched>> uses;
    for (Operation *op : found) {
      if (auto call = dyn_cast<CallOpInterface>(op)) {
        steps.push_back({op, getsToken(op) ? memory->of(call, /*inOrder=*/false) : Touched(), getsToken(op)});
        uses.push_back({op, memory->of(call, /*inOrder=*/true)});
        continue;
      }
      auto async = cast<gpu::AsyncOpInterface>(op);
      Touched touched = memory->of(async);
      if (comesInOrder(async))
        uses.push_back({op, touched});
      steps.push_back({op, std::move(touched), async.getAsyncToken() && !isa<gpu::DeallocOp>(op)});
    }
    for (auto &[op, touched] : uses)
      if (!touched.isNothing() && order(op, touched, steps, given, dominance) && makesTokens)
        waiting.push_back(op);
  }
  return waiting;
}

} // namespace offload
