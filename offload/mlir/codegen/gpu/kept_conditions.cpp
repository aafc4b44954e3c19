//===- kept_conditions.cpp - Conditions beside AMD's branches -------------===//

#include "codegen/gpu/kept_conditions.h"
#include "codegen/gpu/amd_opcodes.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace offload {
namespace {

struct KeptConditions : public MachineFunctionPass {
  static char ID;
  KeptConditions() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Conditions that branches leave to others"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
    const TargetRegisterInfo *registers = function.getSubtarget().getRegisterInfo();
    static const unsigned ifNone = opcodeOf(instructions, "S_CBRANCH_VCCZ"),
                          ifAny = opcodeOf(instructions, "S_CBRANCH_VCCNZ"),
                          narrow = opcodeOf(instructions, "S_AND_B32"),
                          wide = opcodeOf(instructions, "S_AND_B64"),
                          moveNarrow = opcodeOf(instructions, "S_MOV_B32"),
                          moveWide = opcodeOf(instructions, "S_MOV_B64");
    bool changed = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &branch : block.terminators()) {
        if (branch.getOpcode() != ifNone && branch.getOpcode() != ifAny)
          continue;
        Register lanes = branch.implicit_operands().begin()->getReg();
        auto made = std::find_if(std::next(MachineBasicBlock::reverse_iterator(branch)), block.rend(),
                                 [&](MachineInstr &each) { return each.modifiesRegister(lanes, registers); });
        if (made == block.rend() || (made->getOpcode() != narrow && made->getOpcode() != wide) ||
            none_of(made->implicit_operands(), [](const MachineOperand &each) {
              return each.isReg() && each.isDef() && !each.isDead();
            }))
          continue;
        unsigned move = made->getOpcode() == wide ? moveWide : moveNarrow;
        BuildMI(block, std::next(MachineBasicBlock::iterator(*made)), made->getDebugLoc(),
                instructions.get(move), lanes)
            .addReg(lanes);
        changed = true;
      }
    return changed;
  }
};

char KeptConditions::ID = 0;

} // namespace

FunctionPass *createKeptConditionsPass() { return new KeptConditions(); }

} // namespace offload
