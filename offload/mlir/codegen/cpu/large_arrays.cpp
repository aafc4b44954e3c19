//===- large_arrays.cpp - Arrays that no cache holds -----------------------===//

#include "codegen/cpu/large_arrays.h"
#include "cpu/spmd_abi.h"
#include "names.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace offload {
const Instruction *arrayOf(const StoreInst &store) {
  auto *load = dyn_cast<LoadInst>(getUnderlyingObject(store.getPointerOperand(), /*MaxLookup=*/0));
  return load && load->hasMetadata(kArray) ? load : nullptr;
}

Value *isLarge(Function &function, const Instruction &array, uint64_t elementSize) {
  const MDNode *node = array.getMetadata(kArray);
  auto number = [&](unsigned i) {
    return unsigned(mdconst::extract<ConstantInt>(node->getOperand(i))->getZExtValue());
  };
  IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  Types types(function.getContext());
  Value *params =
      b.CreateLoad(types.pointer, b.CreateStructGEP(types.launch, function.getArg(0), LaunchParams));
  Value *bytes = b.getInt64(elementSize);
  for (unsigned i = 0; i < number(1); ++i) {
    Value *slot = b.CreateConstInBoundsGEP1_32(types.pointer, params, number(0) + 2 + i);
    Value *size = b.CreateLoad(b.getIntNTy(number(2)), b.CreateLoad(types.pointer, slot));
    bytes = b.CreateMul(bytes, b.CreateZExt(size, types.i64));
  }
  Value *large = b.CreateLoad(types.i64, b.CreateStructGEP(types.launch, function.getArg(0), LaunchLarge));
  return b.CreateICmpUGE(bytes, large, "large");
}

} // namespace offload
