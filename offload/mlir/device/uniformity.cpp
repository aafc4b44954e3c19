//===- uniformity.cpp - Do all threads of a block get here? ---------------===//
//
// A conservative answer from the structure of the program: every branch and loop around an operation must be
// decided by values that are the same in all threads of a block. Kernel arguments, constants and block ids
// are; thread ids are not, nor is anything that was loaded, because another thread may have written
// meanwhile. The same is asked of the threads of a subgroup, which have its number in common, too.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

class Uniformity {
public:
  /// Of the threads of a block, or of the subgroups of this many.
  explicit Uniformity(int64_t subgroup = 0) : subgroup(subgroup) {}

  /// `op` is executed by all threads, equally often.
  bool reached(Operation *op) {
    for (; !isa<FunctionOpInterface>(op); op = op->getParentOp()) {
      if (!op->getParentOp() || isa<gpu::GPUModuleOp>(op))
        return false;
      Block *block = op->getBlock();
      if (!block->isEntryBlock() && !branchesAreUniform(*block->getParent()))
        return false;
      if (!entersTogether(op->getParentOp()))
        return false;
    }
    return isKernel(op) || everyCall(op, [&](Operation *call) { return reached(call); });
  }

  /// The same in all threads. A value that depends on itself, around a loop, is if all else is.
  bool uniform(Value value) {
    if (!assumed.insert(value).second)
      return !varying.contains(value);
    bool found = isUniform(value);
    if (!found)
      varying.insert(value);
    return found;
  }

private:
  bool isUniform(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argumentIsUniform(argument);
    Operation *op = value.getDefiningOp();
    if (subgroup && isOfSubgroup(op))
      return true;
    if (isa<gpu::BlockIdOp, gpu::BlockDimOp, gpu::GridDimOp, gpu::ClusterIdOp, gpu::ClusterDimOp,
            gpu::ClusterDimBlocksOp, gpu::ClusterBlockIdOp, gpu::SubgroupSizeOp, gpu::NumSubgroupsOp,
            gpu::AllReduceOp>(op))
      return true;
    if (auto result = dyn_cast<OpResult>(value); auto loop = dyn_cast<LoopLikeOpInterface>(op))
      return entersTogether(op) && loop.getTiedLoopInit(result) &&
             uniform(loop.getTiedLoopInit(result)->get()) &&
             loop.getTiedLoopYieldedValue(loop.getTiedLoopRegionIterArg(result)) &&
             uniform(loop.getTiedLoopYieldedValue(loop.getTiedLoopRegionIterArg(result))->get());
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      return uniform(branch.getCondition()) && uniform(branch.thenYield().getOperand(number)) &&
             uniform(branch.elseYield().getOperand(number));
    }
    bool ofThisDialect = op->getDialect() && isa<gpu::GPUDialect>(op->getDialect());
    return !ofThisDialect && op->getNumRegions() == 0 && isMemoryEffectFree(op) && isSpread(op) &&
           all(op->getOperands());
  }

  /// A number that all threads of a subgroup have.
  bool isOfSubgroup(Operation *op) const {
    if (isa<gpu::SubgroupIdOp>(op))
      return true;
    std::optional<ArrayRef<int32_t>> known = knownBlockSize(op);
    if (!known)
      return false;
    int64_t row = (*known)[0], plane = row * (*known)[1];
    if (auto thread = dyn_cast<gpu::ThreadIdOp>(op)) {
      gpu::Dimension axis = thread.getDimension();
      return (*known)[unsigned(axis)] == 1 || (axis == gpu::Dimension::y && row % subgroup == 0) ||
             (axis == gpu::Dimension::z && plane % subgroup == 0);
    }
    auto thread = quotientOf(op).getDefiningOp<gpu::ThreadIdOp>();
    return thread && thread.getDimension() == gpu::Dimension::x &&
           (row % subgroup == 0 || (*known)[1] * (*known)[2] == 1);
  }

  /// What `op` divides by a multiple of the subgroup's threads; null where it does anything else.
  Value quotientOf(Operation *op) const {
    auto isMultiple = [&](std::optional<int64_t> by) { return by && *by > 0 && *by % subgroup == 0; };
    if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, index::DivUOp, index::DivSOp,
            index::FloorDivSOp>(op))
      return isMultiple(getConstantIntValue(op->getOperand(1))) ? plain(op->getOperand(0)) : Value();
    if (isa<arith::ShRUIOp, arith::ShRSIOp>(op)) {
      std::optional<int64_t> by = getConstantIntValue(op->getOperand(1));
      return by && *by >= 0 && *by < 31 && isMultiple(int64_t(1) << *by) ? plain(op->getOperand(0)) : Value();
    }
    auto apply = dyn_cast<affine::AffineApplyOp>(op);
    if (!apply || apply->getNumOperands() != 1)
      return Value();
    auto quotient = dyn_cast<AffineBinaryOpExpr>(apply.getAffineMap().getResult(0));
    if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv ||
        !isa<AffineDimExpr, AffineSymbolExpr>(quotient.getLHS()))
      return Value();
    auto by = dyn_cast<AffineConstantExpr>(quotient.getRHS());
    return by && isMultiple(by.getValue()) ? plain(apply->getOperand(0)) : Value();
  }

  static Value plain(Value value) {
    while (Operation *cast = value.getDefiningOp()) {
      bool isNarrow = value.getType().isInteger() && value.getType().getIntOrFloatBitWidth() < 32;
      if (isNarrow || !isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp, arith::ExtSIOp>(cast))
        break;
      value = cast->getOperand(0);
    }
    return value;
  }

  static bool isKernel(Operation *function) {
    return function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName());
  }

  /// `test` holds for every use of the function, and each is a call.
  bool everyCall(Operation *function, llvm::function_ref<bool(Operation *)> test) {
    if (!visiting.insert(function).second)
      return false;
    auto uses = SymbolTable::getSymbolUses(function, function->getParentOfType<gpu::GPUModuleOp>());
    bool all = uses && llvm::all_of(*uses, [&](SymbolTable::SymbolUse use) {
                 return isa<CallOpInterface>(use.getUser()) && test(use.getUser());
               });
    visiting.erase(function);
    return all;
  }

  bool branchesAreUniform(Region &region) {
    return llvm::all_of(region, [&](Block &block) {
      Operation *last = block.getTerminator();
      return last->getNumSuccessors() < 2 || all(last->getOperands());
    });
  }

  /// The threads that come to `parent` go through its regions alike.
  bool entersTogether(Operation *parent) {
    if (isa<FunctionOpInterface, scf::ExecuteRegionOp, memref::AllocaScopeOp>(parent))
      return true;
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return uniform(loop.getConditionOp().getCondition());
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return uniform(loop.getLowerBound()) && uniform(loop.getUpperBound()) && uniform(loop.getStep());
    if (auto loop = dyn_cast<affine::AffineForOp>(parent))
      return all(loop.getLowerBoundOperands()) && all(loop.getUpperBoundOperands());
    if (auto branch = dyn_cast<scf::IfOp>(parent))
      return uniform(branch.getCondition());
    return isa<affine::AffineIfOp, scf::IndexSwitchOp>(parent) && all(parent->getOperands());
  }

  bool all(ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return uniform(value); });
  }

  /// Dialects whose operations without effects compute from their operands alone: not the vendors', which
  /// read ids.
  static bool isSpread(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    return dialect == "arith" || dialect == "math" || dialect == "index" || dialect == "affine" ||
           dialect == "memref" || dialect == "vector" || op->getName().getStringRef() == "llvm.mlir.constant";
  }

  bool argumentIsUniform(BlockArgument argument) {
    Block *block = argument.getOwner();
    Operation *parent = block->getParentOp();
    unsigned number = argument.getArgNumber();
    if (!block->isEntryBlock()) {
      if (!branchesAreUniform(*block->getParent()))
        return false;
      return llvm::all_of(llvm::make_range(block->pred_begin(), block->pred_end()), [&](Block *before) {
        auto branch = dyn_cast<BranchOpInterface>(before->getTerminator());
        if (!branch)
          return false;
        for (unsigned i = 0; i < branch->getNumSuccessors(); ++i)
          if (branch->getSuccessor(i) == block) {
            SuccessorOperands given = branch.getSuccessorOperands(i);
            if (given.isOperandProduced(number) || !uniform(given[number]))
              return false;
          }
        return true;
      });
    }
    if (isa<FunctionOpInterface>(parent))
      return isKernel(parent) || everyCall(parent, [&](Operation *call) {
               OperandRange given = cast<CallOpInterface>(call).getArgOperands();
               return number < given.size() && uniform(given[number]);
             });
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      if (!entersTogether(parent))
        return false;
      return argument == loop.getInductionVar() || (uniform(loop.getTiedLoopInit(argument)->get()) &&
                                                    uniform(loop.getTiedLoopYieldedValue(argument)->get()));
    }
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (argument.getParentRegion() == &loop.getAfter())
        return uniform(loop.getConditionOp().getArgs()[number]);
      return uniform(loop.getInits()[number]) && uniform(loop.getYieldOp().getOperand(number));
    }
    if (auto loop = dyn_cast<affine::AffineForOp>(parent))
      return entersTogether(parent) && argument == loop.getInductionVar();
    return false;
  }

  int64_t subgroup;                       // threads
  llvm::DenseSet<Value> assumed, varying; // asked for; and found not to be
  llvm::DenseSet<Operation *> visiting;
};

} // namespace

bool everyThreadReaches(Operation *op) { return Uniformity().reached(op); }

bool wholeSubgroupsReach(Operation *op, int64_t threads) { return Uniformity(threads).reached(op); }

bool isSameInSubgroup(Value value, int64_t threads) { return Uniformity(threads).uniform(value); }

} // namespace offload
