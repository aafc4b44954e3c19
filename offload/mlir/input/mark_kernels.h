//===- mark_kernels.h - Kernels of the LLVM dialect -----------------------===//
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace offload {

/// Whether it is a kernel of the gpu dialect, or a vendor's: by an attribute `*.kernel` or by the convention
/// `*_kernelcc` of its calls.
bool isMarkedKernel(mlir::LLVM::LLVMFuncOp function);

} // namespace offload
