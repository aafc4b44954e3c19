//===- two_comparisons.cpp - Comparisons of bits on AMD GPUs --------------===//

#include "codegen/gpu/two_comparisons.h"
#include "codegen/gpu/amd_opcodes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace offload {
namespace {

struct TwoComparisons : public MachineFunctionPass {
  static char ID;
  TwoComparisons() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Copies of numbers that are compared twice"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
    static const unsigned narrow = opcodeOf(instructions, "S_AND_B32"),
                          wide = opcodeOf(instructions, "S_AND_B64");
    MachineRegisterInfo &registers = function.getRegInfo();
    DenseSet<Register> compared;
    bool changed = false;
    for (MachineBasicBlock &block : function)
      for (MachineInstr &comparison : block) {
        if (!comparison.isCompare() || !comparison.getOperand(0).isReg())
          continue;
        MachineOperand &operand = comparison.getOperand(0);
        Register number = operand.getReg();
        MachineInstr *made = number.isVirtual() ? registers.getUniqueVRegDef(number) : nullptr;
        if (!made || operand.getSubReg() || (made->getOpcode() != narrow && made->getOpcode() != wide) ||
            compared.insert(number).second)
          continue;
        Register copy = registers.createVirtualRegister(registers.getRegClass(number));
        BuildMI(block, comparison, comparison.getDebugLoc(), instructions.get(TargetOpcode::COPY), copy)
            .addReg(number);
        registers.clearKillFlags(number);
        operand.setReg(copy);
        changed = true;
      }
    return changed;
  }
};

char TwoComparisons::ID = 0;

} // namespace

FunctionPass *createTwoComparisonsPass() { return new TwoComparisons(); }

} // namespace offload
