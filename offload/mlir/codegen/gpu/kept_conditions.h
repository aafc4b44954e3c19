//===- kept_conditions.h - Conditions beside AMD's branches ---------------===//
#pragma once

namespace llvm {
class FunctionPass;
}

namespace offload {

/// Before a branch that asks whether any lane compared true, LLVM 22's SIPreEmitPeephole takes the S_AND of
/// the comparison's lanes and those that are there away, as the comparison has no others. It does not look
/// whether something else asks for the condition that S_AND leaves, such as an S_CSELECT, which then has
/// whatever was there before. (LLVM's pull request 215829 mends it.) Where something does, the pass moves the
/// lanes once more, to themselves, so that LLVM does not recognize the branch; it is to run after the blocks
/// are where they stay.
llvm::FunctionPass *createKeptConditionsPass();

} // namespace offload
