//===- parallel_loops.h - Parallel loops of host code -----------------------===//
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace offload {

/// Bytes of workgroup memory that the threads of a block may have on every target.
inline constexpr int64_t kSharedBytes = 48 << 10;

// Of a block, on every target.
inline constexpr int64_t kMaxThreads = 1024;
inline constexpr int64_t kMaxDeep = 64; // of these, along z

bool isInKernel(mlir::Operation *op);

/// Are there threads for what is in it, or will be, or is that called for each element?
bool hasThreads(mlir::Operation *op);

/// In a kernel, or in what has threads.
bool isRunByThreads(mlir::Operation *op);

/// The functions that code of kernels calls, themselves or through others: their loops are run by the thread
/// that calls.
llvm::SmallPtrSet<mlir::Operation *, 4> calledFromKernels(mlir::ModuleOp module);

/// The outermost scf.parallel of host code, in the order of the program.
llvm::SmallVector<mlir::scf::ParallelOp> outermostParallel(mlir::Operation *root);

/// Is it of a thread or a block, so that its author counts on what loops become?
bool takesThreadsForGranted(mlir::Operation *op);

/// Takes away a mapping that convert-parallel-loops-to-gpu cannot follow: one of some loops of a nest alone,
/// as scf-parallel-loop-tiling leaves it, one of scf.forall's (#gpu.thread<x>), which scf-forall-to-parallel
/// keeps, and one of loops that reduce. Where the loops use threads or blocks themselves, it stays.
void forgetUnfitMapping(mlir::scf::ParallelOp nest);

/// Puts scf.for, as many as the loop has levels, in its place.
void makeSerial(mlir::scf::ParallelOp loop);

/// What the reductions of a loop that ends so make of two values each. `map` is of values of the loop's body.
llvm::SmallVector<mlir::Value> combine(mlir::OpBuilder &builder, mlir::scf::ReduceOp end,
                                       mlir::ValueRange sums, mlir::ValueRange values,
                                       mlir::IRMapping map = {});

/// reduction.cpp: puts loops without results before the loop, and what they leave in the place of its
/// results. With the attribute kInPlace, what the initial values were loaded from is where kernels leave the
/// results.
void replaceReduction(mlir::scf::ParallelOp loop);

/// Of a loop with results: its initial values come from loads in front of it, its results go to the same
/// places.
inline constexpr char kInPlace[] = "offload.in_place";

} // namespace offload
