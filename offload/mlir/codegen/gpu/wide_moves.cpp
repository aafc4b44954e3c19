//===- wide_moves.cpp - Constants of 64 bits in AMD's scalar registers ----===//

#include "codegen/gpu/wide_moves.h"
#include "codegen/gpu/amd_opcodes.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace offload {
namespace {

struct WideMoves : public MachineFunctionPass {
  static char ID;
  WideMoves() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Moves of wide constants"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
    static const unsigned plain = opcodeOf(instructions, "S_MOV_B64"),
                          wide = opcodeOf(instructions, "S_MOV_B64_IMM_PSEUDO");
    bool changed = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &move : block)
        // The pseudo instruction is taken apart, or made the plain one where that holds the constant.
        if (move.getOpcode() == plain && move.getOperand(1).isImm() &&
            !isInt<32>(move.getOperand(1).getImm())) {
          move.setDesc(instructions.get(wide));
          changed = true;
        }
    return changed;
  }
};

char WideMoves::ID = 0;

} // namespace

FunctionPass *createWideMovesPass() { return new WideMoves(); }

} // namespace offload
