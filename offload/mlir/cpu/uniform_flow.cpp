//===- uniform_flow.cpp - What is the same for all threads of a block -------===//

#include "cpu/uniform_flow.h"
#include "cpu/kernel_code.h"
#include "names.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace offload {

/// Whether the operation reads what another thread may have changed since its neighbour read it.
static bool readsChanging(const Instruction &instruction) {
  if (const auto *load = dyn_cast<LoadInst>(&instruction))
    return !load->isSimple() || load->hasMetadata(kOrdered);
  return instruction.mayReadOrWriteMemory();
}

static bool startsVarying(const Instruction &instruction) {
  if (auto *call = dyn_cast<CallInst>(&instruction))
    if (Function *callee = call->getCalledFunction(); callee && callee->getName().starts_with(kThreadId))
      return true;
  return isa<AllocaInst>(instruction) || (readsChanging(instruction) && !instruction.hasMetadata(kCommon));
}

UniformFlow::UniformFlow(Function &code) : tree(code) {
  for (Instruction &instruction : instructions(code))
    if (startsVarying(instruction))
      mark(&instruction);
  while (!work.empty())
    markUsers(work.pop_back_val());
}

void UniformFlow::mark(Instruction *instruction) {
  if (varying.insert(instruction).second)
    work.push_back(instruction);
}

void UniformFlow::markUsers(Instruction *instruction) {
  for (User *user : instruction->users()) {
    auto *next = cast<Instruction>(user);
    if (!next->isTerminator()) {
      mark(next);
      continue;
    }
    BasicBlock *branch = next->getParent();
    if (next->getNumSuccessors() < 2 || !parting.insert(branch).second)
      continue;
    // Threads that take different ways bring different values to where the ways meet, and leave a loop in
    // different iterations.
    SmallVector<BasicBlock *> blocks = between(branch);
    if (BasicBlock *meeting = join(branch))
      blocks.push_back(meeting);
    for (BasicBlock *block : blocks)
      for (PHINode &phi : block->phis())
        mark(&phi);
  }
}

BasicBlock *UniformFlow::join(BasicBlock *branch) const {
  auto *node = tree.getNode(branch);
  return node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
}

SmallVector<BasicBlock *> UniformFlow::between(BasicBlock *branch) const {
  BasicBlock *end = join(branch);
  DenseSet<BasicBlock *> seen;
  SmallVector<BasicBlock *> found, open(successors(branch));
  while (!open.empty()) {
    BasicBlock *block = open.pop_back_val();
    if (block == end || !seen.insert(block).second)
      continue;
    found.push_back(block);
    append_range(open, successors(block));
  }
  return found;
}

DenseSet<BasicBlock *> UniformFlow::partedBlocks() const {
  DenseSet<BasicBlock *> blocks;
  for (BasicBlock *branch : parting)
    for (BasicBlock *block : between(branch))
      blocks.insert(block);
  return blocks;
}

} // namespace offload
