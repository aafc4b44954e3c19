//===- workgroup_on_stack.cpp - Workgroup memory that may become registers --===//

#include "codegen/cpu/workgroup_on_stack.h"
#include "cpu/spmd_abi.h"

#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace offload {

PreservedAnalyses WorkgroupOnStackPass::run(Function &function, FunctionAnalysisManager &) {
  uint64_t bytes = 0;
  if (function.getFnAttribute(kWorkgroupBytes).getValueAsString().getAsInteger(10, bytes) || bytes == 0)
    return PreservedAnalyses::all();
  function.removeFnAttr(kWorkgroupBytes);
  IRBuilder<> b(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
  AllocaInst *memory = b.CreateAlloca(ArrayType::get(b.getInt8Ty(), bytes), nullptr, "workgroup");
  memory->setAlignment(Align(64));
  // What a program reads before it wrote there is 0, or what an earlier block left: memory that was never
  // written could be taken for anything, even to branch anywhere.
  b.CreateMemSet(memory, b.getInt8(0), bytes, memory->getAlign());
  function.getArg(1)->replaceAllUsesWith(memory);
  return PreservedAnalyses::none();
}

} // namespace offload
