//===- thread_steps.h - Several elements for a thread -----------------------===//
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace offload {

/// How many iterations of the innermost loop a thread of a GPU should take, a block's width apart, so that
/// enough of what it loads is on its way at once; 1 where that is not known to help. `width` is the number of
/// threads of a block along that loop. Of loops that count from 0 in steps of 1.
int64_t stepsOfThread(mlir::scf::ParallelOp loop, int64_t width);

/// Of the loop over the elements of a block, the innermost of which goes over `width` times `steps` at most:
/// makes it one over `width` threads, each of which takes its steps in a loop. That one has the attribute
/// kIndependentSteps.
void giveSteps(mlir::scf::ParallelOp threads, int64_t width, int64_t steps);

} // namespace offload
