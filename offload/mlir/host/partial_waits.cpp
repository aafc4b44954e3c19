//===- partial_waits.cpp - Tokens that are waited for on some ways only ---===//
//
// A function may wait for a token in one branch and return through another, choose one token of two, or give
// one to a function that leaves it alone. Nobody can ask for that work once the function has returned; where
// there is such a token, all that is on its streams is waited for before the return.
//
// Each token is looked at alone: on every way from where it comes to be, the first thing that uses it must
// wait for it or put it behind another token, which is then looked at in its turn.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

/// Whether who uses the token there waits for it, or for a token behind it that can be waited for.
bool passesOn(Operation *user) {
  return isa<func::ReturnOp, LLVM::ReturnOp>(user) || // which waits: the streams go with the function
         isa<gpu::AsyncOpInterface>(user);
}

/// Whether the token is an operand of that successor: its argument is behind it.
bool handsOn(BranchOpInterface branch, unsigned successor, Value token) {
  return llvm::is_contained(branch.getSuccessorOperands(successor).getForwardedOperands(), token);
}

bool isWaitedForOnAllWays(Value token) {
  SmallPtrSet<Block *, 8> seen;
  SmallVector<Block::iterator> ways; // each to its block's end
  Operation *maker = token.getDefiningOp();
  ways.push_back(maker ? std::next(maker->getIterator()) : token.getParentBlock()->begin());
  while (!ways.empty()) {
    Block::iterator it = ways.pop_back_val();
    auto uses = [&](Operation &op) { return llvm::is_contained(op.getOperands(), token); };
    Operation *end = &it->getBlock()->back();
    while (&*it != end && !uses(*it))
      ++it;
    auto branch = dyn_cast<BranchOpInterface>(*it);
    if (!branch) {
      if (!uses(*it) || !passesOn(&*it))
        return false;
      continue;
    }
    for (auto [index, next] : llvm::enumerate(branch->getSuccessors())) {
      if (handsOn(branch, index, token))
        continue;
      if (next == token.getParentBlock()) // there is another token then, and this one is lost
        return false;
      if (seen.insert(next).second)
        ways.push_back(next->begin());
    }
  }
  return true;
}

/// A call has waited for what it returns, and a wait for nothing starts a stream without work.
bool standsForNoWork(Operation &op) {
  auto wait = dyn_cast<gpu::WaitOp>(op);
  return isa<CallOpInterface>(op) || (wait && wait.getAsyncDependencies().empty());
}

} // namespace

bool getsToken(Operation *call) {
  return isa<CallOpInterface>(call) &&
         llvm::any_of(call->getOperandTypes(), llvm::IsaPred<gpu::AsyncTokenType>);
}

bool waitsForAllTokens(FunctionOpInterface function) {
  auto missed = [](ValueRange values) {
    return llvm::any_of(values, [](Value value) {
      return isa<gpu::AsyncTokenType>(value.getType()) && !isWaitedForOnAllWays(value);
    });
  };
  for (Block &block : function.getFunctionBody()) {
    // The function's own arguments are on streams of its callers, who look after them.
    if (!block.isEntryBlock() && missed(block.getArguments()))
      return false;
    for (Operation &op : block)
      if (getsToken(&op) || (!standsForNoWork(op) && missed(op.getResults())))
        return false;
  }
  return true;
}

} // namespace offload
