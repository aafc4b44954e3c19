//===- strips.h - Neighbouring threads taken together inside their loops ----===//
//
// The vectorizer takes the innermost loop. Where a thread's code has loops of its own, the loop over the
// threads is not that one, and each thread would go through its loop alone, far apart in memory from what its
// neighbour reads. A strip is a number of threads in a row whose loops are run together: the strip takes one
// step of the loop for all of them before the next step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "cpu/thread_loops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"

#include <optional>

namespace offload {

/// Threads of a strip: few enough that what they keep from step to step stays in registers. Loops that keep
/// little run for all threads of a row together, which then use memory in one piece.
inline constexpr uint32_t kNarrow = 32, kWide = 1024;

/// Attribute of a kernel: bytes of the processor's vector registers, where they hold little of a strip.
inline constexpr char kRegisters[] = "offload-vector-registers";

/// Code of one thread that `call` calls in the loop over x: puts loops over strips in front of that loop,
/// which then runs the threads that are left over. Nothing changes where the code has no loop that a strip
/// of at most `most` threads could run together. `blockDim` is the loop's bound.
void addStrips(llvm::CallInst &call, const Loop &loop, llvm::Value *blockDim, uint32_t warpSize,
               uint32_t most);

/// strip_loops.cpp: whether the lanes of a strip could run the loop together, by what is in it. Atomic
/// operations keep threads one after the other anyway.
bool isCandidate(const llvm::Loop &loop);
/// strip_checks.cpp: gives loops behind a check that parts the threads a copy for strips that pass it whole.
/// `lane` is the call that gives a thread's place in the strip.
void copyBehindChecks(llvm::Function &strip, llvm::CallInst *lane, uint32_t lanes);
/// strip_loops.cpp: splits off the steps of a loop that all threads of a strip take together, from a loop
/// that begins at another place in each thread.
void splitLoops(llvm::Function &strip, llvm::CallInst *lane, uint32_t lanes);
/// strip_loops.cpp: puts a barrier at the end of each loop whose steps all threads take together. How many.
unsigned joinLoops(llvm::Function &strip, llvm::CallInst *lane);

/// step_loops.cpp: how many bytes each step of the code's loops leaves the next one. None where there is
/// something else than such loops, or nothing that threads could use together.
std::optional<uint64_t> bytesKept(llvm::Function &code);

/// step_loops.cpp: has small loops of known length unrolled; alone, such a loop leaves nothing to run
/// together.
void unrollSmallLoops(llvm::Function &code);
/// Whether threads wait in the loop: it is cut at its own barriers.
bool waits(const llvm::Loop &loop);
/// waiting_loops.cpp: unrolls innermost loops, as many steps as `stepsOf` says. Whether any is gone.
bool takeApart(llvm::Function &code,
               llvm::function_ref<unsigned(llvm::Loop &, llvm::ScalarEvolution &)> stepsOf);
/// waiting_loops.cpp: unrolls such loops where they are short and of known length.
void unrollWaitingLoops(llvm::Function &code);
/// Has the loop unrolled to which a branch goes back.
void unrollFully(llvm::Instruction &backEdge);

/// whole_runs.cpp: gives loops that are cut short by the end of the data, but else have a small known length,
/// a copy of that length.
void addWholeRuns(llvm::Function &code);

} // namespace offload
