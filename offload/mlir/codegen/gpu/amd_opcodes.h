//===- amd_opcodes.h - Instructions of AMD's chips by their names ---------===//
#pragma once

#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/Support/ErrorHandling.h"

namespace offload {

/// The number of an instruction; LLVM's headers do not have those of single targets.
inline unsigned opcodeOf(const llvm::TargetInstrInfo &instructions, llvm::StringRef name) {
  for (unsigned opcode = 0; opcode < instructions.getNumOpcodes(); ++opcode)
    if (instructions.getName(opcode) == name)
      return opcode;
  llvm::report_fatal_error("LLVM's AMDGPU target has no " + name);
}

} // namespace offload
