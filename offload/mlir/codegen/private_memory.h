//===- private_memory.h - Where the memory of a thread's own is ------------===//
#pragma once

#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace offload {

/// Some passes of MLIR make private memory in the flat address space, where some chips have no stack: it goes
/// into the space of the data layout.
void placeMemory(llvm::Module &module);

/// Makes private memory part of the function's frame, so that a loop does not take more of it each time it
/// comes by. False where some stays outside: of a size that is not known, or with an address that may still
/// be in use in the next iteration.
bool hoistMemory(llvm::Function &code);

/// For AMD's chips that reach their stack through a buffer: the stack pointer counts the bytes of all lanes
/// of a wave, 2 to the power of `lanes`, and an address those of one; where memory is made while a kernel
/// runs, LLVM 22 takes the one for the other.
void addressDynamicMemory(llvm::Module &module, unsigned lanes);

/// For NVIDIA's chips: loops that make memory in each turn are unrolled by nobody.
void keepMemoryLoopsRolled(llvm::Module &module);

/// For NVIDIA's chips, whose backend in LLVM 22 moves memory of a known size out of loops
/// (NVPTXAllocaHoisting), also where an address is still in use in the next iteration: its size is what an
/// instruction gives. So is that of a function's other memory then.
void hideMemorySizes(llvm::Module &module);

/// For NVIDIA's chips likewise: where a variable's alignment is not written, LLVM's optimizer takes the
/// preferred one for granted (16 for all but small arrays), and the backend declares that of an element.
void writeAlignments(llvm::Module &module);

struct HoistMemoryPass : public llvm::PassInfoMixin<HoistMemoryPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace offload
