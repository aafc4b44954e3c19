//===- loop_memory.cpp - offload-loop-memory ------------------------------===//
//
// The stack memory of a loop's body ends with each iteration, as that of a memref.alloca_scope with the
// scope. Loops of blocks have no such scopes: the stack would grow with each iteration until the program
// dies. What has one size is the function's memory instead, used again in each. Vectors that are read and
// written in part have such memory (convert-vector-to-scf).
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {

bool isPassedOn(Value memory) {
  auto mayShow = [](Type type) {
    return isa<BaseMemRefType, LLVM::LLVMPointerType, LLVM::LLVMStructType>(type);
  };
  SmallVector<Value> shown = {memory};
  llvm::SmallDenseSet<Value> seen;
  while (!shown.empty()) {
    Value value = shown.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      auto store = dyn_cast<memref::StoreOp>(user);
      auto plain = dyn_cast<LLVM::StoreOp>(user);
      bool isKept = (store && store.getValueToStore() == value) || (plain && plain.getValue() == value);
      if (Operation *branch = user->getParentOp();
          isa<scf::YieldOp>(user) && isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(branch)) {
        shown.push_back(branch->getResult(use.getOperandNumber()));
        continue;
      }
      // The last of a block is its terminator. (Operation::hasTrait does not know IsTerminator here.)
      if (isKept || user == &user->getBlock()->back() || isa<RegionBranchOpInterface>(user) ||
          isa<memref::ExtractAlignedPointerAsIndexOp, LLVM::PtrToIntOp>(user))
        return true;
      llvm::copy_if(user->getResults(), std::back_inserter(shown),
                    [&](Value result) { return mayShow(result.getType()); });
    }
  }
  return false;
}

namespace {

/// The function whose memory it may be; null where it is that, or lives longer than an iteration.
FunctionOpInterface functionFor(memref::AllocaOp op) {
  Operation *scope = op->getParentWithTrait<OpTrait::AutomaticAllocationScope>();
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!scope || !function || scope == function || op->getNumOperands())
    return {};
  bool repeats = isa<LoopLikeOpInterface>(scope) || scope->getParentOfType<LoopLikeOpInterface>();
  return repeats && !isPassedOn(op) ? function : FunctionOpInterface();
}

struct LoopMemory : public PassWrapper<LoopMemory, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LoopMemory)

  StringRef getArgument() const final { return "offload-loop-memory"; }
  StringRef getDescription() const final { return "Give functions the stack memory of their loops"; }

  void runOnOperation() final {
    getOperation()->walk([](memref::AllocaOp op) {
      if (FunctionOpInterface function = functionFor(op))
        op->moveBefore(&function.getFunctionBody().front().front());
    });
  }
};

} // namespace

void registerLoopMemoryPass() { PassRegistration<LoopMemory>(); }

} // namespace offload
