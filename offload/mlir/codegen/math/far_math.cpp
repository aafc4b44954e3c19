//===- far_math.cpp - Where libm is asked after all -----------------------===//
//
// A few values are left to libm, behind a branch that is hardly ever taken. To the vectorizer it is a call of
// `offload.far.NAME`, which has forms for vectors with a mask: it makes the branch a mask, and the call one
// for all lanes. FarMathPass then puts the branch back, over the whole vector.
//
//===----------------------------------------------------------------------===//

#include "codegen/math/far_math.h"
#include "codegen/math/vector_math.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/VFABIDemangler.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace offload {

constexpr const char *kFar = "offload.far.";

/// `offload.far.sinf`, or with lanes `offload.far.sinf.v8`.
static FunctionCallee farFunction(Module &module, StringRef name, Type *type) {
  std::string full = (kFar + name).str();
  SmallVector<Type *> parameters{type};
  if (auto *vector = dyn_cast<FixedVectorType>(type)) {
    full += ".v" + std::to_string(vector->getNumElements());
    parameters.push_back(vector->getWithNewType(Type::getInt1Ty(module.getContext())));
  }
  FunctionCallee callee = module.getOrInsertFunction(full, FunctionType::get(type, parameters, false));
  auto *function = cast<Function>(callee.getCallee());
  if (function->isDeclaration()) {
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
    function->addFnAttr(Attribute::NoInline);
    function->addFnAttr(Attribute::Cold);
  }
  return callee;
}

Value *withFar(Builder &b, const std::string &name, Number x, Number isFar, Number result) {
  BasicBlock *before = b.GetInsertBlock();
  Function *function = before->getParent();
  FunctionCallee far = farFunction(*function->getParent(), name, x.type());
  if (x.type()->isVectorTy())
    return b.CreateSelect(isFar.value, b.CreateCall(far, {x.value, isFar.value}), result.value);
  auto *asks = BasicBlock::Create(b.getContext(), "far", function);
  auto *after = BasicBlock::Create(b.getContext(), "near", function);
  b.CreateCondBr(isFar.value, asks, after);
  b.SetInsertPoint(asks);
  Value *theirs = b.CreateCall(far, {x.value});
  b.CreateBr(after);
  b.SetInsertPoint(after);
  PHINode *chosen = b.CreatePHI(x.type(), 2);
  chosen->addIncoming(result.value, before);
  chosen->addIncoming(theirs, asks);
  return chosen;
}

static StringRef plainName(const Function &function) {
  return function.getName().drop_front(StringRef(kFar).size());
}

static bool isFar(const Function *function, bool vector) {
  return function && function->getName().starts_with(kFar) &&
         function->getReturnType()->isVectorTy() == vector;
}

void defineFarMath(Module &module) {
  for (Function &function : module) {
    if (!isFar(&function, false) || !function.isDeclaration())
      continue;
    FunctionCallee libm = module.getOrInsertFunction(plainName(function), function.getFunctionType());
    Builder b(BasicBlock::Create(module.getContext(), "", &function));
    auto *call = b.CreateCall(libm, {function.getArg(0)});
    call->setDoesNotAccessMemory();
    b.CreateRet(call);
    function.setLinkage(GlobalValue::InternalLinkage);
    function.setDSOLocal(true);
    // Functions that kernels call have lost it, of which this was one. A call of libm itself the vectorizer
    // would make for each lane, far or not.
    function.addFnAttr(Attribute::NoInline);
  }
}

PreservedAnalyses FarVariantsPass::run(Function &function, FunctionAnalysisManager &) {
  Module &module = *function.getParent();
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<CallInst>(&instruction);
    if (!call || !isFar(call->getCalledFunction(), false))
      continue;
    StringRef name = call->getCalledFunction()->getName();
    SmallVector<std::string> variants;
    for (unsigned lanes : {2, 4, 8, 16}) {
      auto *type = FixedVectorType::get(call->getType(), lanes);
      auto *variant =
          cast<Function>(farFunction(module, plainName(*call->getCalledFunction()), type).getCallee());
      variants.push_back(("_ZGV_LLVM_M" + Twine(lanes) + "v_" + name + "(" + variant->getName() + ")").str());
      appendToCompilerUsed(module, {variant});
    }
    VFABI::setVectorVariantNames(call, variants);
  }
  return PreservedAnalyses::all();
}

/// Lane after lane.
static void defineVariant(Function &function) {
  Module &module = *function.getParent();
  LLVMContext &context = module.getContext();
  auto *type = cast<FixedVectorType>(function.getReturnType());
  StringRef name = plainName(function).rsplit('.').first;
  FunctionCallee libm = module.getOrInsertFunction(
      name, FunctionType::get(type->getElementType(), {type->getElementType()}, false));
  Builder b(BasicBlock::Create(context, "", &function));
  Value *result = PoisonValue::get(type);
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    auto *asks = BasicBlock::Create(context, "ask", &function),
         *next = BasicBlock::Create(context, "next", &function);
    BasicBlock *before = b.GetInsertBlock();
    b.CreateCondBr(b.CreateExtractElement(function.getArg(1), lane), asks, next);
    b.SetInsertPoint(asks);
    Value *with = b.CreateInsertElement(
        result, b.CreateCall(libm, {b.CreateExtractElement(function.getArg(0), lane)}), lane);
    b.CreateBr(next);
    b.SetInsertPoint(next);
    PHINode *both = b.CreatePHI(type, 2);
    both->addIncoming(result, before);
    both->addIncoming(with, asks);
    result = both;
  }
  b.CreateRet(result);
  function.setLinkage(GlobalValue::InternalLinkage);
  function.setDSOLocal(true);
}

PreservedAnalyses FarMathPass::run(Module &module, ModuleAnalysisManager &) {
  SmallVector<CallInst *> calls;
  SmallVector<Function *> variants;
  for (Function &function : module)
    if (isFar(&function, true) && function.isDeclaration()) {
      variants.push_back(&function);
      for (User *user : function.users())
        if (auto *call = dyn_cast<CallInst>(user))
          calls.push_back(call);
    }
  removeFromUsedLists(module,
                      [&](Constant *used) { return is_contained(variants, used->stripPointerCasts()); });
  for (CallInst *call : calls) {
    Builder b(call);
    Value *any = b.CreateOrReduce(call->getArgOperand(1));
    BasicBlock *before = call->getParent();
    Instruction *then = SplitBlockAndInsertIfThen(any, call->getIterator(), /*Unreachable=*/false);
    BasicBlock *after = call->getParent();
    auto *result = PHINode::Create(call->getType(), 2, "", after->begin());
    call->replaceAllUsesWith(result);
    call->moveBefore(then->getIterator());
    result->addIncoming(PoisonValue::get(call->getType()), before);
    result->addIncoming(call, call->getParent());
  }
  for (Function *variant : variants)
    if (variant->use_empty())
      variant->eraseFromParent();
    else
      defineVariant(*variant);
  return calls.empty() && variants.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

} // namespace offload
