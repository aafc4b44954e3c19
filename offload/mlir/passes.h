//===- passes.h - offload's own MLIR passes -------------------------------===//
#pragma once

namespace offload {

/// Enters the passes below into MLIR's registry, so that textual pipelines can name them. Call once.
///
///   offload-check-input        builtin.module  refuses programs that no later step can take
///   offload-serial-linalg-to-launch  builtin.module  makes linalg without parallel loops kernels of one
///   thread offload-tile-parallel      builtin.module  tiles outermost scf.parallel into blocks of threads
///   offload-finish-kernels     builtin.module  checks and names what became kernels
///   offload-place-buffers      builtin.module  puts temporaries of kernels into device memory
///   offload-gpu-to-host        gpu.module      gpu dialect -> functions that spmd.cpp gives a meaning on the
///   CPU offload-host-to-llvm       builtin.module  host code -> LLVM dialect with calls to the mgpu runtime
void registerOffloadPasses();

// One per file; called by registerOffloadPasses.
void registerPlaceBuffersPass();
void registerSerialLinalgPass();
void registerTileParallelPass();
void registerCheckInputPass();
void registerFinishKernelsPass();
void registerGpuToHostPass();
void registerHostToLLVMPass();

} // namespace offload
