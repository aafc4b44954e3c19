//===- names.h - Names shared by passes, signatures and code generation ---===//
#pragma once

namespace offload {

// Discardable attributes in the IR.
inline constexpr char kActiveSet[] =
    "offload.active_set"; // on an operation that depends on the active lanes: a number of its own
inline constexpr char kArgumentName[] =
    "offload.name"; // argument attribute: the author's name of an argument
inline constexpr char kBFloats[] =
    "offload.bfloats"; // on a gpu.subgroup_mma_compute whose f16 are bf16, which such matrices cannot be of,
                       // and on the scf.if of kMatrixUnits around it
inline constexpr char kChanged[] =
    "offload.changed"; // on an nvvm.inline_ptx, then an llvm.inline_asm: what the text behind it changes
inline constexpr char kComparesSizes[] =
    "offload.compares_sizes";                 // on a cf.assert of two sizes, which the error tells
inline constexpr char kDoc[] = "offload.doc"; // function attribute: what the author says of it, for Python
inline constexpr char kElsewhere[] =
    "offload.elsewhere"; // on a gpu.module that stands in for one of another source
inline constexpr char kEqualSizes[] = "offload.equal_sizes"; // function attribute: sizes of arguments that
                                                             // have to be the same (input/equal_sizes.cpp)
inline constexpr char kIndependentSteps[] =
    "offload.independent_steps"; // on an scf.for of a thread whose steps may be taken in any order: how many
                                 // there are at most, from a number below the loop's step; 0: any number
inline constexpr char kMatrixUnits[] =
    "offload.matrix_units"; // on an scf.if: of chips whose matrix units do what it guards, the threads of a
                            // subgroup (0: any GPU) and the bits of a factor (0: any); and where
                            // nvgpu.mma.sync is meant, how many blocks a multiprocessor is to have room for
inline constexpr char kOptional[] =
    "offload.optional"; // argument attribute: Python may pass None, which is an empty array
inline constexpr char kOnTensors[] =
    "offload.on_tensors"; // on a function that had tensors: MLIR has given them memory, and frees it
inline constexpr char kPlainPointers[] =
    "offload.plain_pointers"; // on a launch of compiled code: whether it takes those, or descriptors
inline constexpr char kReadOnly[] =
    "offload.read_only";                          // on an argument that was a tensor: it stays as it is
inline constexpr char kReady[] = "offload.ready"; // on a gpu.module whose kernels are compiled already
inline constexpr char kResultSizes[] =
    "offload.result_sizes";                               // function attribute: sizes of results that are
                                                          // those of arguments (input/equal_sizes.cpp)
inline constexpr char kScheduled[] = "offload.scheduled"; // on a module whose own schedule has run
inline constexpr char kScope[] = "offload.scope";         // on the llvm.alloca of a function's mgpuScope
inline constexpr char kLaunchValues[] = "offload.launch_values"; // on those for what its launches pass
inline constexpr char kLaunchPlaces[] = "offload.launch_places"; // and for where that is

inline constexpr char kAlignment[] =
    "offload.alignment"; // on a gpu.alloc: more than memory of a device has anyway
inline constexpr char kSharedGlobal[] = "offload.shared"; // on a memref.global that kernels use

inline constexpr char kNamed[] =
    "offload.named"; // on a function whose own name is the C library's: what its C interface is for

// Symbols of the host module.
inline constexpr char kInterface[] = "_mlir_ciface_";     // + name: what MLIR calls a function's C interface
inline constexpr char kModuleTable[] = "offload_modules"; // array of mgpuModuleSlot, ended by a zero one
inline constexpr char kImagesBegin[] = "offload_images_begin";
inline constexpr char kImagesEnd[] = "offload_images_end";

// Functions of libm that operations of the math dialect become calls of; of f32 with an f behind.
inline constexpr char kLibm[] =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs "
    "floor fma fmax fmin fmod ldexp log log10 log1p log2 pow remainder rint round roundeven sin sincos sinh "
    "sqrt tan tanh tgamma trunc";
// Marks a gpu.module: the bytes that its dynamic workgroup memory is aligned to, if more than usual.
inline constexpr char kDynamicAlignment[] = "offload.dynamic_alignment"; // i64

// In device modules of the host target: the ending of a function that has such a name for as long as calls of
// libm are made, and the prefix of the one of libm where the name is a kernel's.
inline constexpr char kOwnFunction[] = ".offload.own";
inline constexpr char kLibmFunction[] = "offload.libm.";

// Functions that stand for GPU operations in device modules of the host target until spmd.cpp replaces them.
inline constexpr char kThreadId[] = "__offload_thread_id_";     // + x, y, z: i32
inline constexpr char kBlockId[] = "__offload_block_id_";       // + x, y, z: i32
inline constexpr char kBlockDim[] = "__offload_block_dim_";     // + x, y, z: i32
inline constexpr char kGridDim[] = "__offload_grid_dim_";       // + x, y, z: i32
inline constexpr char kClusterDim[] = "__offload_cluster_dim_"; // + x, y, z: i32, in blocks
inline constexpr char kBarrier[] = "__offload_barrier";         // (): waits for the block
inline constexpr char kExchange[] = "__offload_exchange";       // (i64 value, i32 lane): that lane's value
inline constexpr char kActiveLanes[] =
    "__offload_active_lanes";                     // (): an integer with a bit per lane: who is here too
inline constexpr char kFail[] = "__offload_fail"; // (ptr message): ends the launch; does not return
inline constexpr char kDynamicShared[] = "__offload_dynamic_shared"; // (): ptr
inline constexpr char kSharedPrefix[] = "__offload_shared_";         // globals in workgroup memory
inline constexpr char kWraps[] =
    "offload.wraps"; // on an nvgpu.mma.sync: sums of integers run over, as others do
inline constexpr char kWideRows[] = "offload.wide_rows"; // on an scf.if of a kernel: what GPUs do where its
                                                         // condition holds, and the CPU never

} // namespace offload
