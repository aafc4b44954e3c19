//===- vector_math.h - Functions of mathematics that vectorize ------------===//
//
// Calls of libm keep a loop scalar, or cost a call per thread. Kernels of the host target get the functions
// of functions.h instead, inlined: the same code for one thread and for many, so that a result does not
// depend on where in a block its thread is; and nothing to link, whatever the C library and the width of
// vectors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace offload {

/// Replaces calls and intrinsics by functions with a body, to be inlined. `rounds`, `fuses`: the processor
/// has instructions for floor and its kin, and for fma.
void useVectorMath(llvm::Module &module, bool rounds, bool fuses);

/// Makes arithmetic on 16-bit floats arithmetic on f32, and conversions from and to f32 operations on bits,
/// for the kinds that the processor has no instructions for: LLVM's way are calls for each lane.
void widenSmallFloats(llvm::Module &module, bool half, bool bfloat);

/// For NVIDIA's chips that convert integers to bf16: LLVM 22 has 1 for a signed integer of one bit that is
/// -1.
void chooseTruth(llvm::Module &module);

/// Defines what useVectorMath left to libm (angles beyond 1e6), once nothing is inlined by force any more.
void defineFarMath(llvm::Module &module);

/// Tells the vectorizer of the forms for vectors that FarMathPass gives such calls.
struct FarVariantsPass : public llvm::PassInfoMixin<FarVariantsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

/// After the vectorizer: calls for vectors become a jump over calls of libm, lane by lane.
struct FarMathPass : public llvm::PassInfoMixin<FarMathPass> {
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
};

} // namespace offload
