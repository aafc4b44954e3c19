//===- prepare_device.h - The parts of offload-prepare-device -------------===//
#pragma once

#include "device/lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace offload {

/// plain_names.cpp: gives what nobody outside of the module sees names that every assembly language has and
/// no library. For offload-prepare-math, which makes the first calls of libraries.
llvm::LogicalResult givePlainNames(mlir::gpu::GPUModuleOp module);

/// prepare_arguments.cpp: kernels' arguments with llvm.byval and llvm.byref become what the target has for
/// them.
void settleArgumentsByValue(mlir::gpu::GPUModuleOp module, llvm::StringRef target);

// Each rewrites one group of operations in the module, or fails with an error at the operation. One per file,
// in the order in which they run.

/// prepare_calls.cpp: refuses recursion.
llvm::LogicalResult refuseRecursion(mlir::gpu::GPUModuleOp module);
/// prepare_lane_zero.cpp: warp_execute_on_lane_0 becomes branches and exchanges.
llvm::LogicalResult lowerLaneZeroRegions(mlir::gpu::GPUModuleOp module, const Lanes &lanes);
/// prepare_reductions.cpp: all_reduce and subgroup_reduce become exchanges, workgroup memory and barriers.
llvm::LogicalResult lowerReductions(mlir::gpu::GPUModuleOp module, const Lanes &lanes);
/// prepare_shuffles.cpp: shuffle, rotate and subgroup_broadcast become exchanges.
llvm::LogicalResult lowerShuffles(mlir::gpu::GPUModuleOp module, const Lanes &lanes);
/// prepare_ids.cpp: ids and sizes that follow from others.
llvm::LogicalResult lowerIds(mlir::gpu::GPUModuleOp module, const Lanes &lanes);
/// prepare_prints.cpp: cf.assert, and the formats and arguments of printf.
llvm::LogicalResult lowerPrints(mlir::gpu::GPUModuleOp module, const Lanes &lanes);
/// prepare_atomics.cpp: atomic_rmw kinds that LLVM has no instruction for, and the names of LLVM's scopes.
llvm::LogicalResult lowerAtomics(mlir::gpu::GPUModuleOp module, llvm::StringRef target);
/// prepare_fragments.cpp: what subgroup_mma operations do with elements, on the registers of fragments.
llvm::LogicalResult lowerFragments(mlir::gpu::GPUModuleOp module);
/// Refuses an operation on elements that fragments of such a type do not have.
llvm::LogicalResult checkElementwise(mlir::gpu::SubgroupMmaElementwiseOp op);
/// And the loads of fragments that are one register, when they are LLVM's.
void settleFragmentLoads(mlir::Operation *root);

/// The scope of an author's atomic operation that has none of its own, until repairAtomics, which gives those
/// of memref's the device's.
inline constexpr llvm::StringLiteral kWholeSystem = "system";
/// What a target calls the threads of its device and those of a block, nothing for the CPU; the attributes
/// that its atomic operations get; and whether LLVM forgets the order of an atomicrmw there.
struct AtomicsOfTarget {
  std::string deviceScope, blockScope;
  llvm::ArrayRef<std::string> attributes;
  bool needsFences;
};
/// repair_atomics.cpp: what they are in the LLVM dialect.
void repairAtomics(mlir::Operation *root, const AtomicsOfTarget &target);

/// loop_memory.cpp: may somebody have memory after the iteration that made it: the next one, say, that it is
/// passed on to?
bool isPassedOn(mlir::Value memory);

/// uniformity.cpp: whether control flow makes sure that all threads of a block get to `op` as often as each
/// other. False where it cannot tell.
bool everyThreadReaches(mlir::Operation *op);
/// The same of the subgroups of a block, which have `threads` each: whether a subgroup's threads get to `op`
/// together, and whether they all have the same `value`.
bool wholeSubgroupsReach(mlir::Operation *op, int64_t threads);
bool isSameInSubgroup(mlir::Value value, int64_t threads);

// prepare_ids.cpp: values for the rewrites above; i32.

/// The block's size along an axis, a constant where the kernel says so.
mlir::Value blockSize(mlir::OpBuilder &b, mlir::Operation *anchor, mlir::gpu::Dimension axis);
/// The block's three sizes, if the kernel says so.
std::optional<llvm::ArrayRef<int32_t>> knownBlockSize(mlir::Operation *anchor);
/// Threads of the block, if the kernel says so.
std::optional<int64_t> knownThreads(mlir::Operation *anchor);
mlir::Value blockThreads(mlir::OpBuilder &b, mlir::Operation *anchor);
/// The thread's number in its block: x fastest, which is the order of lanes too.
mlir::Value linearThread(mlir::OpBuilder &b, mlir::Operation *anchor);

inline mlir::Value constant32(mlir::OpBuilder &b, mlir::Location loc, int64_t value) {
  return mlir::arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
}

} // namespace offload
