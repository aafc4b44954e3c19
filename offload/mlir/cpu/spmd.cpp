//===- spmd.cpp - From one GPU thread's code to code that runs blocks -----===//
//
// Input: LLVM IR of a device module of the host target, where a kernel is the code of one thread and GPU
// operations are calls to the functions of names.h. Output: what host_abi.h describes. For each kernel `k`
// the global `k.info` with either `k.blocks` (block_loops.cpp) or, where threads may come to a barrier on
// different ways, `k.thread` (coroutines.cpp).
//
// Functions that a kernel calls are inlined first, so recursion is refused.
//
//===----------------------------------------------------------------------===//

#include "cpu/kernel_code.h"
#include "cpu/strips.h"
#include "names.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"

using namespace llvm;

namespace offload {
namespace {

constexpr StringRef kInfo = ".info";

/// Replaces the kernel of this name by what host_abi.h describes; returns its resources.
Resources lowerKernel(const std::string &name, Function &kernel, uint32_t maxThreads, const HostWay &way) {
  KernelCode code(kernel, maxThreads, way);
  const Types &types = code.types;
  Function *entry = code.waits() && way.coroutines ? nullptr : buildBlocks(code);
  bool suspends = !entry;
  if (suspends)
    entry = buildThread(code);
  Constant *none = ConstantPointerNull::get(types.pointer);
  Constant *fields[] = {ConstantInt::get(types.i32, kAbiVersion),
                        ConstantInt::get(types.i32, kernel.arg_size()),
                        ConstantInt::get(types.i64, code.sharedBytes),
                        suspends ? none : entry,
                        suspends ? entry : none,
                        code.parameterSizes(),
                        ConstantInt::get(types.i64, maxThreads),
                        ConstantInt::get(types.i32, way.warpSize),
                        ConstantDataArray::get(code.context, code.knownBlock),
                        ConstantDataArray::get(code.context, code.knownCluster)};
  new GlobalVariable(code.module, types.kernel, /*isConstant=*/true, GlobalValue::ExternalLinkage,
                     ConstantStruct::get(types.kernel, fields), name + kInfo);
  kernel.deleteBody();
  kernel.eraseFromParent();
  return {{"shared_bytes", int64_t(code.sharedBytes)}, {"coroutine", suspends}};
}

/// The first function that calls itself, directly or through others; null where there is none.
Function *findRecursion(Module &module) {
  CallGraph graph(module);
  for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc)
    if (scc.hasCycle())
      for (CallGraphNode *node : *scc)
        if (Function *function = node->getFunction(); function && !function->isDeclaration())
          return function;
  return nullptr;
}

void inlineEverything(Module &module, const std::vector<std::string> &kernels) {
  for (Function &function : module) {
    // A kernel's code is inlined later on.
    function.removeFnAttr(Attribute::NoInline);
    function.removeFnAttr(Attribute::OptimizeNone);
    if (!function.isDeclaration() && !is_contained(kernels, function.getName())) {
      function.setLinkage(GlobalValue::InternalLinkage);
      function.addFnAttr(Attribute::AlwaysInline);
    }
  }
  PassBuilder builder;
  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass(/*InsertLifetime=*/false));
  runPasses(module, builder, std::move(passes));
}

/// Between which instructions a thread's memory holds something, and where the stack ends: that memory is
/// about to become a part of other memory, which is in use throughout, and a coroutine runs on several
/// stacks.
void forgetLifetimes(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<IntrinsicInst>(&instruction);
      if (!call)
        continue;
      if (call->getIntrinsicID() == Intrinsic::stacksave)
        call->replaceAllUsesWith(PoisonValue::get(call->getType()));
      if (call->isLifetimeStartOrEnd() || call->getIntrinsicID() == Intrinsic::stacksave ||
          call->getIntrinsicID() == Intrinsic::stackrestore)
        call->eraseFromParent();
    }
}

/// Whether a constant is workgroup memory or a place in it, or holds one.
bool speaksOfShared(const Value *value) {
  if (auto *global = dyn_cast<GlobalValue>(value))
    return global->getName().starts_with(kSharedPrefix);
  auto *constant = dyn_cast<Constant>(value);
  return constant && any_of(constant->operands(), [](const Use &use) { return speaksOfShared(use.get()); });
}

/// Erases lists of what has to be kept, as llvm.used, and tables that nobody reads.
void forgetLists(Module &module) {
  for (GlobalVariable &global : make_early_inc_range(module.globals()))
    if (global.use_empty() && global.hasInitializer() &&
        (is_contained({"llvm.used", "llvm.compiler.used"}, global.getName()) ||
         speaksOfShared(global.getInitializer())))
      global.eraseFromParent();
}

/// A function whose address is taken, so that it could not be inlined everywhere, with operations of the GPU
/// or workgroup memory. Null where there is none.
Function *findOutsider(Module &module, const std::vector<std::string> &kernels) {
  auto isOutside = [&](Function *function) {
    return !is_contained(kernels, function->getName()) && function->hasAddressTaken();
  };
  for (Function &standIn : module)
    if (standIn.isDeclaration() && standIn.getName().starts_with("__offload_"))
      for (User *user : standIn.users())
        if (auto *call = dyn_cast<CallInst>(user); call && isOutside(call->getFunction()))
          return call->getFunction();
  for (Function &function : module)
    if (!function.isDeclaration() && isOutside(&function))
      for (Instruction &instruction : instructions(function))
        if (any_of(instruction.operands(), [](Value *operand) { return speaksOfShared(operand); }))
          return &function;
  return nullptr;
}

/// A global whose value has the address of workgroup memory, which is another one in each block; null where
/// there is none.
GlobalVariable *findHolder(Module &module) {
  for (GlobalVariable &global : module.globals())
    if (global.hasInitializer() && speaksOfShared(global.getInitializer()))
      return &global;
  return nullptr;
}

/// A declared function under its own name, where another may have that already.
void giveName(Function &function, const std::string &name) {
  Function *other = function.getParent()->getFunction(name);
  if (!other)
    return function.setName(name);
  function.replaceAllUsesWith(other);
  function.eraseFromParent();
}

/// The kernels that the module defines. What has the name that one of them is described under loses it: code
/// is found by its description alone.
std::vector<std::pair<std::string, Function *>> definedKernels(Module &module,
                                                               const std::vector<std::string> &kernels) {
  std::vector<std::pair<std::string, Function *>> defined;
  for (const std::string &name : kernels)
    if (Function *kernel = module.getFunction(name); kernel && !kernel->isDeclaration())
      defined.emplace_back(name, kernel);
  for (auto &[name, kernel] : defined)
    if (GlobalValue *other = module.getNamedValue((name + kInfo).str()); other && !other->isDeclaration())
      other->setName("offload." + other->getName());
  return defined;
}

} // namespace

KernelResources lowerKernelsForHost(Module &module, const std::vector<std::string> &kernels,
                                    const ThreadLimits &limits, const HostWay &way, std::string &error) {
  KernelResources resources;
  if (Function *function = findRecursion(module)) {
    error = "'" + function->getName().str() + "' is recursive: kernels cannot call recursive functions";
    return resources;
  }
  inlineEverything(module, kernels);
  forgetLifetimes(module);
  forgetLists(module);
  if (Function *function = findOutsider(module, kernels)) {
    error = "'" + function->getName().str() +
            "' has operations of the GPU or workgroup memory and is called through a pointer: on the CPU, "
            "functions with such are inlined; call it by its name, or pass it the memory's address";
    return resources;
  }
  if (GlobalVariable *global = findHolder(module)) {
    error =
        "the value of '" + global->getName().str() +
        "' has the address of workgroup memory, which is another one in each block: let the kernel store it";
    return resources;
  }
  for (auto &[name, kernel] : definedKernels(module, kernels)) {
    auto limit = limits.find(name);
    uint32_t most = limit == limits.end() ? 0 : limit->second;
    if (way.registers)
      kernel->addFnAttr(kRegisters, std::to_string(way.registers));
    resources.push_back({name, lowerKernel(name, *kernel, most, way)});
  }
  for (Function &function : make_early_inc_range(module)) {
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
    else if (StringRef name = function.getName(); name.consume_front(kLibmFunction))
      giveName(function, name.str());
  }
  for (GlobalVariable &global : make_early_inc_range(module.globals()))
    if (global.getName().starts_with(kSharedPrefix) && global.use_empty())
      global.eraseFromParent();
  return resources;
}

} // namespace offload
