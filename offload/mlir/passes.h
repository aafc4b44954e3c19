//===- passes.h - offload's own MLIR passes -------------------------------===//
#pragma once

namespace offload {

/// Enters the passes below into MLIR's registry, so that textual pipelines can name them. Call once.
///
/// On the builtin.module, in the order in which they run:
///   offload-join-transforms          puts the libraries of a schedule into its module
///   offload-erase-transforms         removes sequences of the transform dialect, which have run
///   offload-keep-apart               numbers operations that depend on the active lanes
///   offload-program-globals          makes memory of variables of the ml_program dialect
///   offload-masked-reductions        writes masked reductions of single elements as choices
///   offload-structure-tensors        writes branches of functions with tensors as regions
///   offload-missing-tensors          writes out operations on tensors that bufferization does not know
///   offload-constant-arguments       lets functions leave the tensors that they take as they are
///   offload-fold-transposes          lets products of few rows read transposed matrices where they are
///   offload-fuse-elementwise         makes chains of operations on elements of tensors one operation
///   offload-separate-tensors         copies tensors that bufferization takes for two
///   offload-private-loops            lets loops of a thread hand tensors on in one place
///   offload-cut-chains               makes long chains of tensors calls of functions
///   offload-eliminate-empty-tensors  makes what is inserted into tensors in its place there
///   offload-join-chains              makes these functions parts of their callers again
///   offload-carried-memory           lets loops of a thread hand on memory that stays where it is
///   offload-private-buffers          keeps what an iteration of a parallel loop allocates
///   offload-free-buffers             frees what was allocated for tensors
///   offload-map-foralls              makes launches of loops that are mapped to blocks and threads
///   offload-gather-kernels           gives kernels in the program's own module a gpu.module
///   offload-name-changed             gives names of their own to what inline PTX changes
///   offload-mark-kernels             marks kernels of the LLVM dialect as the gpu dialect does
///   offload-private-names            renames private functions that are named like a library's
///   offload-check-input              refuses programs that no later step can take
///   offload-known-sizes              gives one name to what kernels say of their blocks and grids
///   offload-equal-sizes              notes which sizes of arguments have to be the same
///   offload-missing-lowerings        writes out what MLIR has no lowering for
///   offload-inline-async             puts regions of the async dialect into the code around them
///   offload-group-launches           puts the kernels of many launches into one gpu.module
///   offload-mark-written-kernels     marks kernels that are there before loops become some
///   offload-find-places              finds the largest elements of rows before their places
///   offload-collapse-linalg          makes one loop of those over one piece of memory
///   offload-transpose-tiles          takes what lies across the output through workgroup memory
///   offload-fuse-rows                makes one kernel of what is done row by row
///   offload-reduce-rows              reduces rows of memory by subgroups and blocks
///   offload-reduce-linalg            writes linalg that reduces everything as scf.parallel with results
///   offload-block-tiles              computes products of matrices by tiles in workgroup memory
///   offload-thread-tiles             lets a thread compute several elements of products of matrices
///   offload-serial-functions         lets parallel loops call functions with parallel loops
///   offload-serial-linalg-to-launch  makes linalg without parallel loops kernels of one thread
///   offload-reduce-parallel          writes scf.parallel with results as loops without
///   offload-shape-nests              leaves nests of scf.parallel that blocks of threads can run
///   offload-tile-parallel            tiles outermost scf.parallel into blocks of threads
///   offload-finish-kernels           checks and names what became kernels
///   offload-block-memory             makes workgroup memory that kernels allocate attributions
///   offload-descriptor-arguments     hands TMA descriptors to kernels as pointers
///   offload-nvgpu-to-nvvm            lowers the nvgpu dialect, in loops that carry fragments, too
///   offload-named-interfaces         renames public functions that are named like a library's (host code)
///   offload-lower-descriptors        makes TMA descriptors by calls of the runtime (host code)
///   offload-plain-spaces             takes the memory spaces of kernels out of host code
///   offload-place-buffers            puts temporaries of kernels into device memory
///   offload-check-memory             refuses allocations that no machine can make
///   offload-join-equal-kernels       keeps one of the equal kernels that were made of loops
///   offload-repair-math              makes expm1 and log1p calls of libm, rsqrt approximate
///   offload-host-to-llvm             host code -> LLVM dialect with calls to the mgpu runtime
/// At the two ends of a target's pipeline:
///   offload-check-device             refuses what a chip does not have
///   offload-check-lowered            refuses what LLVM IR has no counterpart for (host code too)
/// On a gpu.module:
///   offload-prepare-memory           checks memory operations of kernels, writes out copies
///   offload-choose-products          keeps code for a chip's matrix units, or for chips without
///   offload-spread-fragments         makes matrices of gpu.subgroup_mma vectors in each lane (AMD, CPU)
///   offload-join-steps               takes several steps of a thread's loop at once (GPUs)
///   offload-prepare-device           gpu operations -> few that every target lowers right; runs first
///   offload-prepare-products         makes products of bf16 matrices instructions of NVIDIA's chips
///   offload-number-spaces            makes memory spaces by name numbers of the target's
///   offload-gpu-to-host              gpu dialect -> functions that spmd.cpp gives a meaning on the CPU
///   offload-inline-constants         keeps constants that are no integers out of the text of inline PTX
///   offload-plain-declarations       calls declared functions without memrefs by their own names
/// On either:
///   offload-prepare-complex          completes the lowering of complex numbers
///   offload-prepare-math             brings math operations to what the lowerings take
///   offload-prepare-small-floats     writes out conversions of floats with 4 to 8 bits
///   offload-prepare-vectors          checks vectors, writes out those of several dimensions
///   offload-settle-positions         simplifies positions of inlined code before debug information is made
///   offload-repair-lowered           mends what lowerings of MLIR leave wrong in the LLVM dialect
void registerOffloadPasses();

// One per file; called by registerOffloadPasses.
void registerGroupLaunchesPass();
void registerInlineAsyncPass();
void registerRepairLoweredPass();
void registerPlaceBuffersPass();
void registerPlainDeclarationsPass();
void registerPrepareComplexPass();
void registerPrepareMathPass();
void registerPrepareMemoryPass();
void registerPrepareSmallFloatsPass();
void registerPrepareProductsPass();
void registerPrepareVectorsPass();
void registerPrepareDevicePass();
void registerRepairPasses();
void registerGatherKernelsPass();
void registerMarkKernelsPass();
void registerMaskedReductionsPass();
void registerMissingLoweringsPass();
void registerMissingTensorsPass();
void registerCarriedMemoryPass();
void registerInlineCallsPass();
void registerChainPasses();
void registerInlineConstantsPass();
void registerNameChangedPass();
void registerPrivateBuffersPass();
void registerPrivateLoopsPass();
void registerMapForallsPass();
void registerProgramGlobalsPass();
void registerSeparateTensorsPass();
void registerStructureTensorsPass();
void registerSerialFunctionsPass();
void registerCollapseLinalgPass();
void registerOrderLoopsPass();
void registerReduceLinalgPass();
void registerEqualSizesPass();
void registerKnownSizesPass();
void registerEliminateEmptyTensorsPass();
void registerFreeEarlyPass();
void registerFindPlacesPass();
void registerFuseRowsPass();
void registerReduceRowsPass();
void registerBlockTilesPass();
void registerRowProductsPass();
void registerThreadTilesPass();
void registerTransposeTilesPass();
void registerReduceParallelPass();
void registerSerialLinalgPass();
void registerShapeNestsPass();
void registerTileParallelPass();
void registerFoldTransposesPass();
void registerFuseElementwisePass();
void registerTensorPasses();
void registerLibraryNamesPasses();
void registerCheckInputPass();
void registerCheckMemoryPass();
void registerCheckDevicePass();
void registerDescriptorPasses();
void registerAlignTilesPass();
void registerJoinStepsPass();
void registerChooseProductsPass();
void registerSpreadFragmentsPass();
void registerLowerNvgpuPass();
void registerCheckLoweredPass();
void registerTransformPasses();
void registerKeepApartPass();
void registerBlockMemoryPass();
void registerLoopMemoryPass();
void registerFinishKernelsPass();
void registerEqualKernelsPasses();
void registerGpuToHostPass();
void registerNumberSpacesPass();
void registerHostToLLVMPass();
void registerPlainSpacesPass();
void registerWaitForUnusedTokensPass();
void registerSettlePositionsPass();

} // namespace offload
