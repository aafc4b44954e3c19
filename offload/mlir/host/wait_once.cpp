//===- wait_once.cpp - Kernels of a function are waited for together ------===//
//
// An operation without a token is done when anybody looks. For kernels that follow each other on the calling
// thread's stream, which is in order, that is one wait behind the last of them: on a GPU each wait costs more
// than many a kernel takes.
//
// Anything may look but what is listed in kindOf: a load, a copy, a call, a return, work with a token, an
// operation that nobody here knows. Two analyses of a function's blocks, where loops and branches are gone
// already:
//
//  * Backward: a launch leaves its wait for later where, on some way, more work on the stream comes before
//    anybody looks. The others wait as they always did, so a function with one kernel, outside of loops, has
//    no more code than before. Device memory that is allocated or freed is such work: it is so in the
//    stream's order, and none but that stream's until the next wait.
//  * Forward: where something may be left to wait for, a wait is put in front of what looks. That alone keeps
//    programs right, whatever the first one decides.
//
// An assertion does not look: where it fails, the runtime waits before it leaves the function (abi/guard.c),
// and so it does where a function goes on after a failure.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

enum class Kind {
  Nothing, // neither looks at what kernels do nor puts work on the stream
  Work,    // on the thread's stream
  Waits,   // for that stream, itself
  Looks,
};

Kind kindOf(Operation &op) {
  if (auto async = dyn_cast<gpu::AsyncOpInterface>(op)) {
    if (async.getAsyncToken() || !async.getAsyncDependencies().empty())
      return Kind::Looks;
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      return launch.getAsyncObject() ? Kind::Looks : Kind::Work;
    if (auto alloc = dyn_cast<gpu::AllocOp>(op))
      return alloc.getHostShared() ? Kind::Waits : Kind::Work;
    return isa<gpu::DeallocOp>(op) ? Kind::Work : Kind::Looks;
  }
  if (isa<cf::AssertOp>(op))
    return Kind::Nothing;
  // Operation::hasTrait does not know IsTerminator here. LLVM takes assembly for what reads memory, whatever
  // MLIR does.
  bool isReturn = &op == &op.getBlock()->back() && !isa<BranchOpInterface>(op);
  if (isReturn || op.getNumRegions() || isa<CallOpInterface, LLVM::InlineAsmOp>(op) ||
      isa<gpu::GPUDialect>(op.getDialect()) || !isMemoryEffectFree(&op))
    return Kind::Looks;
  return Kind::Nothing;
}

struct Step {
  Operation *op;
  Kind kind;
  bool waits = true; // work that does not leave its wait for later
};

/// The operations of a block that matter here, and what holds at its two ends.
struct Way {
  SmallVector<Step> steps;
  bool worksNext = false; // at its begin: work may come before anybody looks
  bool pending = false;   // at its end: there may be something to wait for
};

class WaitOnce {
public:
  explicit WaitOnce(Region &body) : body(body) {
    for (Block &block : body)
      for (Operation &op : block)
        if (Kind kind = kindOf(op); kind != Kind::Nothing) {
          launches += isa<gpu::LaunchFuncOp>(op);
          ways[&block].steps.push_back({&op, kind});
        }
  }

  void run() {
    if (!launches)
      return;
    bool changed = true;
    while (changed) {
      changed = false;
      for (Block &block : llvm::reverse(body))
        changed |= leaveWaits(block);
    }
    for (changed = true; changed;) {
      changed = false;
      for (Block &block : body)
        changed |= follow(block, /*rewrite=*/false);
    }
    for (Block &block : body)
      follow(block, /*rewrite=*/true);
  }

private:
  /// Whether the block's begin is news for those before it.
  bool leaveWaits(Block &block) {
    bool next = llvm::any_of(block.getSuccessors(), [&](Block *after) { return ways[after].worksNext; });
    Way &way = ways[&block];
    for (Step &step : llvm::reverse(way.steps)) {
      step.waits = step.kind != Kind::Work || !next;
      next = step.kind == Kind::Work;
    }
    return std::exchange(way.worksNext, next) != next;
  }

  /// Whether the block's end is news for those behind it.
  bool follow(Block &block, bool rewrite) {
    bool pending = llvm::any_of(block.getPredecessors(), [&](Block *before) { return ways[before].pending; });
    Way &way = ways[&block];
    for (Step &step : way.steps) {
      bool later = !step.waits;
      if (rewrite && later)
        step.op->setAttr(kWaitsLater, UnitAttr::get(step.op->getContext()));
      if (rewrite && pending && step.kind == Kind::Looks) {
        OpBuilder b(step.op);
        callRuntime(b, step.op, "mgpuWaitForLater", {}, {});
      }
      pending = later;
    }
    return std::exchange(way.pending, pending) != pending;
  }

  Region &body;
  DenseMap<Block *, Way> ways;
  size_t launches = 0;
};

} // namespace

void waitOnce(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>()) {
    function.walk([](Operation *op) { op->removeAttr(kWaitsLater); }); // nobody else may say so
    if (!function.isExternal())
      WaitOnce(function.getFunctionBody()).run();
  }
}

} // namespace offload
