//===- serial_linalg.cpp - offload-serial-linalg-to-launch ----------------===//
//
// A linalg operation without a parallel loop (a sum over everything, say) gives
// convert-linalg-to-parallel-loops nothing to make a kernel of: it would become a loop on the host, over
// memory that may be a device's. Such an operation becomes a kernel of one thread; inside of a parallel loop
// it is the loop's kernel's. In a function that kernels call it gets a parallel loop of one iteration, which
// offload-serial-functions takes away for these callers.
//
//===----------------------------------------------------------------------===//

#include "loops/linalg_steps.h"
#include "loops/parallel_loops.h"
#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct SerialLinalg : public PassWrapper<SerialLinalg, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SerialLinalg)

  StringRef getArgument() const final { return "offload-serial-linalg-to-launch"; }
  StringRef getDescription() const final { return "Launch linalg operations without parallel loops"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, gpu::GPUDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallPtrSet<Operation *, 4> inKernels = calledFromKernels(getOperation()); // which launch none
    for (linalg::LinalgOp op : hostLinalg(getOperation())) {
      if (op.getNumParallelLoops() != 0)
        continue;
      OpBuilder builder(op);
      Value one = arith::ConstantIndexOp::create(builder, op.getLoc(), 1);
      if (inKernels.contains(op->getParentOfType<func::FuncOp>())) {
        Value zero = arith::ConstantIndexOp::create(builder, op.getLoc(), 0);
        auto loop = scf::ParallelOp::create(builder, op.getLoc(), zero, one, one);
        op->moveBefore(loop.getBody()->getTerminator());
        continue;
      }
      auto launch = gpu::LaunchOp::create(builder, op.getLoc(), one, one, one, one, one, one);
      Block &body = launch.getBody().front();
      op->moveBefore(&body, body.end());
      builder.setInsertionPointToEnd(&body);
      gpu::TerminatorOp::create(builder, op.getLoc());
    }
  }
};

} // namespace

void registerSerialLinalgPass() { PassRegistration<SerialLinalg>(); }

} // namespace offload
