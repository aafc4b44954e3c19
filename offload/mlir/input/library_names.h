//===- library_names.h - Functions named like those of the C library ------===//
#pragma once

#include "mlir/IR/Operation.h"

namespace offload {

/// Whether libm has a function of this name, for f32 or f64, that operations of the math dialect become calls
/// of.
bool isOfLibm(llvm::StringRef name);

/// Whether linkers, loaders or compiled code mean something of their own by a name.
bool isReservedName(llvm::StringRef name);

/// Whether a function or global of host code has such a name, or a function one under which generated code or
/// the runtime would call it in place of the C library's: @expf that computes math.exp would call itself.
bool takesLibraryName(mlir::Operation *op);

/// Whether it may have it all the same, as others call its C interface, which has the name in another one.
bool isCalledByInterface(mlir::Operation *op);

} // namespace offload
