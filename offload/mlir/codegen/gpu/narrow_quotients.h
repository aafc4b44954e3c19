//===- narrow_quotients.h - Division of integers of few bits on AMD GPUs ---===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// Writes quotients and remainders as operations on integers where LLVM 22 gets them wrong for AMD GPUs,
/// which have no instruction for them. With operands of up to 24 bits it multiplies by an approximate
/// reciprocal and corrects the quotient in one direction alone: 0xfffffe / 0xffffff is 1, and from 23 bits on
/// (24 of signed ones) it depends on the last bit of what the hardware says. Later versions of LLVM do this
/// for fewer bits. It gives a signed quotient the bits of its operands, up to 24 of them or 32: -128 / -1 is
/// -128 where both are bytes; there a quotient by -1 is a difference. Without optimization (`optimized`) it
/// does the same to unsigned numbers whose upper bits are all ones, and it cannot select a quotient and a
/// remainder of 8 or 16 bits that it has joined: there all of up to 32 bits are written out.
void writeNarrowQuotients(llvm::Module &module, bool optimized);

} // namespace offload
