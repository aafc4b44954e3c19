//===- wide_moves.h - Constants of 64 bits in AMD's scalar registers ------===//
#pragma once

namespace llvm {
class FunctionPass;
}

namespace offload {

/// In LLVM 22, SIInstrInfo::foldImmediate and SIFixSGPRCopies move constants of 64 bits into scalar registers
/// with S_MOV_B64, which has room for 32 of them: the other half is lost, silently. (LLVM's pull request
/// 200576 mends the second one.) The pass makes such moves the pseudo instruction that is for them; it is to
/// run just before these are expanded.
llvm::FunctionPass *createWideMovesPass();

} // namespace offload
