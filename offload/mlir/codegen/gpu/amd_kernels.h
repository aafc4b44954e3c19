//===- amd_kernels.h - How LLVM compiles kernels for AMD GPUs -------------===//
#pragma once

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace offload {

/// Says which functions do not recurse: kernels, as nothing may call one, and functions that call none but
/// such functions, of which LLVM says so itself only where it optimizes. Otherwise it takes kernels that call
/// them for recursive ones, whose stack has no size that is known before.
void denyRecursion(llvm::Module &module);

/// Gives global variables that are in no space of memory the global or the constant one. They could be
/// reached by what knows where they are, but LLVM loads from them as from memory of which it knows nothing:
/// it may be a thread's own or a block's.
void placeGlobals(llvm::Module &module);

/// For chips that keep a block's id y in the low and its id z in the high half of one register: kernels that
/// use y alone are said to use z, too. Otherwise LLVM takes the whole register for y, which AMDGPUUsage does
/// not promise. Call after optimization, which finds out what they use.
void splitBlockIds(llvm::Module &module);

/// Atomic operations on 8 or 16 bits that change nothing, which LLVM's optimizer writes as `or 0`, become
/// exchanges of zero for zero: LLVM's code generator makes additions of them, for which there is no code.
void compareIdleAtomics(llvm::Module &module);

/// Atomic operations of which LLVM's code generator believes that a chip has them. Those on a thread's own
/// memory become plain ones, as it makes them itself but for gfx1250. Differences of 32 bits that stop at
/// zero, in a block's memory before gfx12 (`subtractsInBlocks` from then on) and in memory of any space,
/// become loops that compare and exchange. Exchanges of f64 through a descriptor are of its bits. Call after
/// optimization, which finds out where pointers lead.
void writeUnknownAtomics(llvm::Module &module, bool subtractsInBlocks);

/// Functions that add products of bytes to sums of fewer than 32 bits have no dot products of four bytes:
/// LLVM's code generator crashes where it would make them of such sums. Call after optimization.
void sumBytesAlone(llvm::Module &module, const llvm::TargetMachine &machine);

/// As the target machine's own addPassesToEmitFile, with ours among them. Returns true where it has no way.
bool addAmdPassesToEmitFile(llvm::legacy::PassManagerBase &passes, llvm::TargetMachine &machine,
                            llvm::raw_pwrite_stream &stream, llvm::CodeGenFileType type);

} // namespace offload
