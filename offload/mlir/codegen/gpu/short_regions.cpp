//===- short_regions.cpp - Blocks of many accesses in AMD's kernels -------===//

#include "codegen/gpu/short_regions.h"
#include "codegen/gpu/amd_opcodes.h"

#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace offload {
namespace {

/// More than a chip has under way at a time; a region of these takes milliseconds.
constexpr unsigned kMostAccesses = 128;

struct ShortRegions : public MachineFunctionPass {
  static char ID;
  ShortRegions() : MachineFunctionPass(ID) {}

  StringRef getPassName() const override { return "Regions of few accesses for the scheduler"; }
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    const TargetInstrInfo &instructions = *function.getSubtarget().getInstrInfo();
    static const unsigned barrier = opcodeOf(instructions, "SCHED_BARRIER");
    bool changed = false;
    for (MachineBasicBlock &block : function) {
      unsigned accesses = 0;
      // A bundle is one access, and nothing goes into it.
      for (auto next = block.begin(); next != block.end();) {
        MachineInstr &access = *next++;
        if (!access.mayLoadOrStore() || ++accesses % kMostAccesses != 0 || next == block.end() ||
            next->isTerminator())
          continue;
        // No kind of instruction may cross it.
        BuildMI(block, next, access.getDebugLoc(), instructions.get(barrier)).addImm(0);
        changed = true;
      }
    }
    return changed;
  }
};

char ShortRegions::ID = 0;

} // namespace

FunctionPass *createShortRegionsPass() { return new ShortRegions(); }

} // namespace offload
