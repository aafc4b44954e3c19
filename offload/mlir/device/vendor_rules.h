//===- vendor_rules.h - Whose operation is it, and which chips have it ----===//
#pragma once

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace offload {

/// What code is made for: the name of a target and a chip that MLIR knows, both of which may be empty, and
/// the chip's name in messages: a family's, for which one of its chips stands elsewhere.
struct ChipName {
  std::string target, chip, said;
};

/// Why an operation cannot be in code for this chip, as a sentence with what to do; nothing where it can, or
/// where only the code generator can tell.
std::optional<std::string> whyNotFor(mlir::Operation *op, const ChipName &where);

/// The same for a value's type (a descriptor, memory in a space of one vendor).
std::optional<std::string> whyNotFor(mlir::Type type, const ChipName &where);

/// The same for memory and arguments of functions in kernels (check_kernels.cpp).
std::optional<std::string> whyNotInKernels(mlir::Operation *op, const ChipName &where);

/// Whether operations become calls of a function, or uses of a variable, of this name in the library of a
/// vendor's or of C (plain_names.cpp).
bool isOfDeviceLibrary(llvm::StringRef name);

/// Why a lowered operation of a vendor is no instruction of any chip, where MLIR's translation would crash.
std::optional<std::string> whyNotInstruction(mlir::Operation *op);

/// The number that a vendor's own memory space has in LLVM; nothing for a space of everyone.
std::optional<unsigned> numberOfSpace(mlir::Attribute space);

/// Whether it takes values of other lanes, also where it has no effects for MLIR: what it gives then depends
/// on which lanes are active.
bool takesFromLanes(mlir::Operation *op);

/// Whether its lowering makes a vendor's descriptor of a memref, with what the elements take.
bool describesMemory(mlir::Operation *op);

/// Whose operations a dialect holds ("NVIDIA GPUs"); empty for a dialect of everyone.
llvm::StringRef ownerOf(llvm::StringRef dialect);
/// The target of those GPUs; empty where there is none.
llvm::StringRef targetOf(llvm::StringRef dialect);

} // namespace offload
