//===- double_extremes.h - Minima and maxima of f64 on AMD GPUs ------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes minima and maxima of f64 that are NaN where an operand is, also those of a vector's elements, for
/// AMD GPUs without an instruction for them, as LLVM 22 does: a minimum or maximum of numbers, and a choice.
/// But LLVM freezes the operands, and then what those were made of, and so on, once for each way that leads
/// there: of numbers that are each made of the one before in two ways, as in max(3 * v, v), each took four
/// times as long to compile as the last, and a dozen a quarter of a minute. Nothing has to be frozen: a
/// choice by what is undefined is undefined.
void writeDoubleExtremes(llvm::Module &module);

} // namespace offload
