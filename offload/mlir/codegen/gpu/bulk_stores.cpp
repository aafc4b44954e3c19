//===- bulk_stores.cpp - Addresses of st.bulk in registers ----------------===//

#include "codegen/gpu/bulk_stores.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace offload {

void holdBulkAddresses(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *store = dyn_cast<IntrinsicInst>(&instruction);
      if (!store || (store->getIntrinsicID() != Intrinsic::nvvm_st_bulk &&
                     store->getIntrinsicID() != Intrinsic::nvvm_st_bulk_shared_cta))
        continue;
      IRBuilder<> builder(store);
      Value *address = store->getArgOperand(0);
      InlineAsm *move = InlineAsm::get(FunctionType::get(address->getType(), {address->getType()}, false),
                                       "mov.b64 $0, $1;", "=l,l", /*hasSideEffects=*/false);
      store->setArgOperand(0, builder.CreateCall(move, {address}));
    }
}

} // namespace offload
