//===- amd_kernels.cpp - How LLVM compiles kernels for AMD GPUs -----------===//

#include "codegen/gpu/amd_kernels.h"
#include "codegen/gpu/kept_conditions.h"
#include "codegen/gpu/short_regions.h"
#include "codegen/gpu/two_comparisons.h"
#include "codegen/gpu/wide_moves.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/CodeGen/AtomicExpandUtils.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;

namespace offload {

/// Whether all that a function calls is known not to recurse.
static bool callsNoRecursion(Function &function) {
  return all_of(instructions(function), [](Instruction &instruction) {
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || call->isInlineAsm() || isa<IntrinsicInst>(call))
      return true;
    Function *called = call->getCalledFunction();
    return called && called->doesNotRecurse();
  });
}

void denyRecursion(Module &module) {
  CallGraph graph(module);
  for (auto functions = scc_begin(&graph); !functions.isAtEnd(); ++functions)
    if (Function *function = functions->front()->getFunction();
        function && !function->isDeclaration() && !functions.hasCycle() && callsNoRecursion(*function))
      function->setDoesNotRecurse();
  for (Function &function : module)
    if (function.getCallingConv() == CallingConv::AMDGPU_KERNEL)
      function.setDoesNotRecurse();
}

void placeGlobals(Module &module) {
  constexpr unsigned kGlobal = 1, kConstant = 4; // AMDGPUUsage
  for (GlobalVariable &global : make_early_inc_range(module.globals())) {
    if (global.getAddressSpace() != 0 || global.getName().starts_with("llvm."))
      continue;
    auto *placed = new GlobalVariable(
        module, global.getValueType(), global.isConstant(), global.getLinkage(),
        global.hasInitializer() ? global.getInitializer() : nullptr, "", &global, global.getThreadLocalMode(),
        global.isConstant() ? kConstant : kGlobal, global.isExternallyInitialized());
    placed->copyAttributesFrom(&global);
    placed->copyMetadata(&global, 0);
    placed->setComdat(global.getComdat());
    placed->takeName(&global);
    global.replaceAllUsesWith(ConstantExpr::getAddrSpaceCast(placed, global.getType()));
    global.eraseFromParent();
  }
}

void splitBlockIds(Module &module) {
  for (Function &function : module)
    if (!function.hasFnAttribute("amdgpu-no-workgroup-id-y"))
      function.removeFnAttr("amdgpu-no-workgroup-id-z");
}

void sumBytesAlone(Module &module, const TargetMachine &machine) {
  auto isNarrowSum = [](const Instruction &instruction) {
    return instruction.getOpcode() == Instruction::Add && instruction.getType()->getScalarSizeInBits() < 32 &&
           any_of(
               instruction.operands(),
               [](const Value *operand) {
                 return match(operand, PatternMatch::m_Mul(PatternMatch::m_Value(), PatternMatch::m_Value()));
               });
  };
  for (Function &function : module)
    if (any_of(instructions(function), isNarrowSum)) {
      // A function's own features stand for those of the machine.
      Attribute own = function.getFnAttribute("target-features");
      StringRef all = own.isValid() ? own.getValueAsString() : machine.getTargetFeatureString();
      function.addFnAttr("target-features", all.empty() ? "-dot7-insts" : (all + ",-dot7-insts").str());
    }
}

void compareIdleAtomics(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *atomic = dyn_cast<AtomicRMWInst>(&instruction);
      if (!atomic || atomic->getOperation() != AtomicRMWInst::Or || !atomic->getType()->isIntegerTy() ||
          atomic->getType()->getIntegerBitWidth() >= 32 ||
          !match(atomic->getValOperand(), PatternMatch::m_Zero()))
        continue;
      Value *zero = atomic->getValOperand();
      AtomicOrdering order = atomic->getOrdering();
      IRBuilder<> b(atomic);
      AtomicCmpXchgInst *exchange = b.CreateAtomicCmpXchg(
          atomic->getPointerOperand(), zero, zero, atomic->getAlign(), order,
          AtomicCmpXchgInst::getStrongestFailureOrdering(order), atomic->getSyncScopeID());
      exchange->setVolatile(atomic->isVolatile());
      exchange->copyMetadata(*atomic);
      atomic->replaceAllUsesWith(b.CreateExtractValue(exchange, 0));
      atomic->eraseFromParent();
    }
}

/// No other thread takes part in what happens there.
static bool isOwn(const Value *pointer) {
  constexpr unsigned kPrivate = 5;
  return pointer->getType()->getPointerAddressSpace() == kPrivate;
}

/// A difference that stops at zero, where no instruction makes it.
static bool isUnknownDifference(const AtomicRMWInst &atomic, bool subtractsInBlocks) {
  constexpr unsigned kAny = 0, kWorkgroup = 3;
  unsigned space = atomic.getPointerAddressSpace();
  return atomic.getOperation() == AtomicRMWInst::USubSat && atomic.getType()->isIntegerTy(32) &&
         (space == kAny || (space == kWorkgroup && !subtractsInBlocks));
}

/// An exchange of f64 through a descriptor, where LLVM selects none but of integers.
static bool isUnknownExchange(const AtomicRMWInst &atomic) {
  constexpr unsigned kFatBuffer = 7;
  return atomic.getOperation() == AtomicRMWInst::Xchg && atomic.getType()->isDoubleTy() &&
         atomic.getPointerAddressSpace() == kFatBuffer;
}

static void exchangeBits(AtomicRMWInst *atomic) {
  IRBuilder<> b(atomic);
  AtomicRMWInst *exchange =
      b.CreateAtomicRMW(AtomicRMWInst::Xchg, atomic->getPointerOperand(),
                        b.CreateBitCast(atomic->getValOperand(), b.getInt64Ty()), atomic->getAlign(),
                        atomic->getOrdering(), atomic->getSyncScopeID());
  exchange->setVolatile(atomic->isVolatile());
  exchange->copyMetadata(*atomic);
  atomic->replaceAllUsesWith(b.CreateBitCast(exchange, atomic->getType()));
  atomic->eraseFromParent();
}

static void compareAndExchange(AtomicRMWInst *atomic) {
  bool isVolatile = atomic->isVolatile();
  expandAtomicRMWToCmpXchg(atomic, [isVolatile](IRBuilderBase &b, Value *pointer, Value *loaded,
                                                Value *wanted, Align alignment, AtomicOrdering order,
                                                SyncScope::ID scope, Value *&done, Value *&found,
                                                Instruction *source) {
    AtomicCmpXchgInst *exchange =
        b.CreateAtomicCmpXchg(pointer, loaded, wanted, alignment, order,
                              AtomicCmpXchgInst::getStrongestFailureOrdering(order), scope);
    exchange->setVolatile(isVolatile);
    if (source)
      exchange->copyMetadata(*source);
    done = b.CreateExtractValue(exchange, 1);
    found = b.CreateExtractValue(exchange, 0);
  });
}

void writeUnknownAtomics(Module &module, bool subtractsInBlocks) {
  for (Function &function : module) {
    SmallVector<AtomicRMWInst *> differences;
    for (Instruction &instruction : make_early_inc_range(instructions(function)))
      if (auto *atomic = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (isOwn(atomic->getPointerOperand()))
          lowerAtomicRMWInst(atomic);
        else if (isUnknownDifference(*atomic, subtractsInBlocks))
          differences.push_back(atomic);
        else if (isUnknownExchange(*atomic))
          exchangeBits(atomic);
      } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction);
                 exchange && isOwn(exchange->getPointerOperand())) {
        lowerAtomicCmpXchgInst(exchange);
      }
    for_each(differences, compareAndExchange); // which makes blocks
  }
}

bool addAmdPassesToEmitFile(legacy::PassManagerBase &passes, TargetMachine &machine,
                            raw_pwrite_stream &stream, CodeGenFileType type) {
  auto &target = static_cast<CodeGenTargetMachineImpl &>(machine);
  TargetPassConfig *config = target.createPassConfig(passes);
  config->setDisableVerify(true);
  config->insertPass(&PrologEpilogCodeInserterID, createWideMovesPass());
  if (machine.getOptLevel() != CodeGenOptLevel::None) { // else nothing is joined or scheduled
    config->insertPass(&MachineSinkingLegacyID, createTwoComparisonsPass());
    config->insertPass(&ExpandPostRAPseudosID, createShortRegionsPass());
    config->insertPass(&MachineBlockPlacementID, createKeptConditionsPass());
  }
  passes.add(config);
  auto *functions = new MachineModuleInfoWrapperPass(&machine);
  passes.add(functions);
  if (config->addISelPasses())
    return true;
  config->addMachinePasses();
  config->setInitialized();
  if (target.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext()))
    return true;
  passes.add(createFreeMachineFunctionPass());
  return false;
}

} // namespace offload
