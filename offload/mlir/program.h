//===- program.h - What a program holds and how it is split ---------------===//
#pragma once

#include "session.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace offload {

/// Exported functions and kernels with their arguments, as JSON: {"functions": […], "kernels": […]} in the
/// shape of offload/artifact/meta.py. Taken from a module whose launches are gpu.launch_func.
std::string signatures(const IRModule &module);

/// Moves the operations of the others, in order, to the end of `module` (input/join_sources.cpp). A
/// declaration stands for what another module defines; private symbols of one name are renamed. Throws
/// Failure, at the symbol, for two definitions and for types that differ, and at the launch for a kernel that
/// no source has, or not with these arguments.
void join(IRModule &module, const std::vector<std::shared_ptr<IRModule>> &others);
/// For a source among several: a gpu.module stands in for each whose kernels it launches and does not have.
void declareKernels(mlir::ModuleOp module);

/// What the library exports: the public functions with a body and, for those of the func dialect, their C
/// interfaces; of functions that are named like those of the C library these alone.
std::vector<std::string> exportedSymbols(const IRModule &module);
/// Whether nobody outside of the unit knows a symbol of the LLVM dialect.
bool isLocal(mlir::LLVM::Linkage linkage);
/// A function of the LLVM dialect is as visible as its linkage and visibility have it.
bool isVisible(mlir::FunctionOpInterface function);

/// Names of the gpu.modules and gpu.binaries, in order.
std::vector<std::string> deviceModules(const IRModule &module);
/// The target attributes of each gpu.module that has some, as text.
struct AttachedTargets {
  std::string module;
  Diagnostic position;
  std::vector<std::string> targets;
};
std::vector<AttachedTargets> attachedTargets(const IRModule &module);

/// Names of the kernels in a gpu.module, in order; none of a gpu.binary, which has no functions.
std::vector<std::string> kernelsOf(const IRModule &module, const std::string &name);

/// A module that holds a copy of one gpu.module and nothing else. `attributes` is the text of an array
/// attribute of target attributes for it, or empty. Throws Failure.
std::shared_ptr<IRModule> deviceModule(const IRModule &module, const std::string &name,
                                       const std::string &attributes);

/// Sets an attribute, given as text, on every kernel that has neither it nor one of `unless`, as an attribute
/// of its own or of LLVM's functions (passthrough). Throws Failure.
void setKernelAttribute(IRModule &module, const std::string &name, const std::string &value,
                        const std::vector<std::string> &unless);
/// Whether a function has one of the attributes, also as one that only LLVM knows (passthrough).
bool hasAttribute(mlir::FunctionOpInterface function, const std::vector<std::string> &names);

/// The attribute that says what a kernel's "block" or "grid" is: those of the LLVM dialect have it with a
/// prefix.
std::string knownSizeOf(mlir::FunctionOpInterface kernel, llvm::StringRef what);
/// The most threads of a block per kernel: as one of the attributes `blocks` says, else `most`; none for
/// kernels with neither (0). Throws Failure where a block is more than `most`.
std::vector<std::pair<std::string, int64_t>> limitThreads(const IRModule &module, int64_t most,
                                                          const std::vector<std::string> &blocks);
/// Tells LLVM of the threads of every kernel's block that one of the attributes `blocks` says, by another,
/// "64,64", where the kernel has neither that nor one of `unless`.
void setKernelThreads(IRModule &module, const std::string &name, const std::vector<std::string> &blocks,
                      const std::vector<std::string> &unless);

/// Throws Failure where a function of a gpu.module has a memref that a plain pointer cannot stand for.
void checkBarePointers(const IRModule &module);
/// Refuses functions of the runtime and of MLIR's runner that the program declares, and calls, with other
/// types than theirs; `bare`: memrefs are plain pointers there, `defined`: names that objects beside it
/// define. Throws Failure.
void checkDeclared(const IRModule &module, bool bare, const std::vector<std::string> &defined);
/// Fails, with an error at the function, where it has such a memref.
mlir::LogicalResult checkBareTypes(mlir::FunctionOpInterface function);
/// A memref that a plain pointer can stand for: everything but the address is known from the type.
bool fitsBarePointer(mlir::Type type);

/// How many parameters a launch passes where a memref is a descriptor, word by word.
unsigned wordsOf(mlir::gpu::LaunchFuncOp launch);
/// How many the launch's kernel has, where that came in the LLVM dialect or as code with a kernel table; else
/// nothing.
std::optional<unsigned> parametersOf(mlir::gpu::LaunchFuncOp launch);
/// Whether it has a plain pointer for each memref of the launch, or descriptors; nothing where neither is
/// known.
std::optional<bool> takesPlainPointers(mlir::gpu::LaunchFuncOp launch);

/// Throws Failure where a device module needs an index of 64 bits.
void checkNarrowIndex(const IRModule &module);

/// The host code alone: kernels are there by name and type only, exported functions ask for a C interface.
std::shared_ptr<IRModule> hostModule(const IRModule &module);

} // namespace offload
