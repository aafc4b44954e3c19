//===- long_blocks.cpp - Blocks of many accesses in NVIDIA's kernels ------===//

#include "codegen/gpu/long_blocks.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace offload {

/// So many of them take a tenth of a second, and neighbours are hardly ever further apart.
constexpr unsigned kMostAccesses = 256;

void divideLongBlocks(Module &module) {
  auto *type = FunctionType::get(Type::getVoidTy(module.getContext()), /*isVarArg=*/false);
  // Empty; nobody says that it leaves memory alone, so accesses are not joined across it. Blocks that were
  // split would be put together again.
  InlineAsm *border = InlineAsm::get(type, "", "", /*hasSideEffects=*/true);
  for (Function &function : module)
    for (BasicBlock &block : function) {
      unsigned accesses = 0;
      for (Instruction &instruction : make_early_inc_range(block)) {
        if (!isa<LoadInst, StoreInst>(instruction) || ++accesses % kMostAccesses != 0)
          continue;
        IRBuilder<> b(instruction.getNextNode());
        b.CreateCall(border);
      }
    }
}

} // namespace offload
