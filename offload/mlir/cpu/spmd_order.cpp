//===- spmd_order.cpp - The order in which threads of a warp wait for others //

#include "cpu/spmd_order.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"

using namespace llvm;

namespace offload {
namespace {

struct Ordering {
  explicit Ordering(Function &function) : tree(function), loops(tree) {
    add(nullptr, &function.getEntryBlock());
  }

  /// Adds the blocks of a loop (null: all) from `entry` on: those before a branch before those behind it, and
  /// an inner loop's together.
  void add(Loop *loop, BasicBlock *entry) {
    DenseSet<BasicBlock *> seen;
    SmallVector<BasicBlock *> finished;
    struct Open {
      BasicBlock *unit;
      SmallVector<BasicBlock *> next;
    };
    SmallVector<Open> stack;
    auto open = [&](BasicBlock *block) {
      BasicBlock *unit = unitOf(loop, block);
      if (seen.insert(unit).second)
        stack.push_back({unit, leaving(loop, unit)});
    };
    open(entry);
    while (!stack.empty()) {
      if (stack.back().next.empty()) {
        finished.push_back(stack.pop_back_val().unit);
        continue;
      }
      open(stack.back().next.pop_back_val());
    }
    for (BasicBlock *unit : reverse(finished)) {
      Loop *inner = innerLoop(loop, unit);
      if (inner)
        add(inner, unit);
      else
        order.push_back(unit);
    }
  }

  /// The loop directly inside of `loop` that has the block.
  Loop *innerLoop(Loop *loop, BasicBlock *block) const {
    Loop *inner = loops.getLoopFor(block);
    while (inner && inner != loop && inner->getParentLoop() != loop)
      inner = inner->getParentLoop();
    return inner == loop ? nullptr : inner;
  }

  /// A block stands for itself, a header for its loop.
  BasicBlock *unitOf(Loop *loop, BasicBlock *block) const {
    Loop *inner = innerLoop(loop, block);
    return inner ? inner->getHeader() : block;
  }

  SmallVector<BasicBlock *> leaving(Loop *loop, BasicBlock *unit) const {
    SmallVector<BasicBlock *> next;
    if (Loop *inner = innerLoop(loop, unit))
      inner->getExitBlocks(next);
    else
      append_range(next, successors(unit));
    erase_if(next, [&](BasicBlock *block) {
      return loop && (!loop->contains(block) || block == loop->getHeader());
    });
    return next;
  }

  DominatorTree tree;
  LoopInfo loops;
  SmallVector<BasicBlock *> order;
};

} // namespace

SmallVector<BasicBlock *> meetingOrder(Function &function) { return Ordering(function).order; }

} // namespace offload
