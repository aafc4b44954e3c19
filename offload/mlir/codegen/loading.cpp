//===- loading.cpp - What is to run when a device's code is loaded --------===//
//
// No device runs constructors and destructors (llvm.global_ctors, llvm.global_dtors). LLVM runs what it can
// when it compiles; the rest is refused. Libraries bring some that have nothing to do with what is called of
// them: those only touch variables that no kernel sees.
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm_module.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace offload {
namespace {

constexpr StringLiteral kConstructors = "llvm.global_ctors", kDestructors = "llvm.global_dtors";

struct Entry {
  Function *function;
  int priority;
  Constant *data;
};

SmallVector<Entry> entriesOf(const Module &module, StringRef list) {
  SmallVector<Entry> found;
  const GlobalVariable *variable = module.getNamedGlobal(list);
  auto *entries =
      variable && variable->hasInitializer() ? dyn_cast<ConstantArray>(variable->getInitializer()) : nullptr;
  for (unsigned i = 0; entries && i < entries->getNumOperands(); ++i) {
    Constant *entry = entries->getOperand(i);
    auto *priority = dyn_cast<ConstantInt>(entry->getAggregateElement(0u));
    if (auto *function = dyn_cast<Function>(entry->getAggregateElement(1)))
      found.push_back({function, priority ? int(priority->getZExtValue()) : 65535,
                       entry->getNumOperands() > 2 ? entry->getAggregateElement(2) : nullptr});
  }
  return found;
}

using Values = SmallPtrSet<const Constant *, 32>;

/// Adds what code or a variable's value refers to, and what that does.
void addReached(const Constant *from, Values &reached) {
  SmallVector<const Constant *> left{from};
  auto add = [&](const Use &use) {
    if (auto *value = dyn_cast<Constant>(use))
      left.push_back(value);
  };
  while (!left.empty()) {
    const Constant *value = left.pop_back_val();
    if (!reached.insert(value).second)
      continue;
    for_each(value->operands(), add); // a variable's is its value
    if (auto *function = dyn_cast<Function>(value))
      for (const Instruction &each : instructions(function))
        for_each(each.operands(), add);
  }
}

/// Code that may do what is not seen here.
bool isForeign(const Constant *value) {
  auto *function = dyn_cast<Function>(value);
  if (!function || function->isDeclaration())
    return function && !function->isIntrinsic();
  return any_of(instructions(function), [](const Instruction &each) {
    auto *call = dyn_cast<CallBase>(&each);
    return call && call->isInlineAsm();
  });
}

/// Whether a kernel may tell that it has run: it writes no variable that is not among `seen`, nor is anything
/// called that may.
bool isUnseen(const Function *function, const Values &seen) {
  Values reached;
  addReached(function, reached);
  return none_of(reached, [&](const Constant *value) {
    auto *variable = dyn_cast<GlobalVariable>(value);
    return isForeign(value) || (variable && !variable->isConstant() && seen.contains(variable));
  });
}

} // namespace

void LLVMModule::dropUnseenLoading() {
  Values seen;
  for (const GlobalObject &object : module->global_objects())
    if (!object.isDeclaration() && !object.hasLocalLinkage() && !object.hasAppendingLinkage())
      addReached(&object, seen);
  for (StringRef list : {kConstructors, kDestructors}) {
    SmallVector<Entry> entries = entriesOf(*module, list), kept;
    copy_if(entries, std::back_inserter(kept), [&](Entry each) { return !isUnseen(each.function, seen); });
    if (kept.size() == entries.size())
      continue;
    module->getNamedGlobal(list)->eraseFromParent();
    for (Entry each : kept)
      (list == kConstructors ? appendToGlobalCtors : appendToGlobalDtors)(*module, each.function,
                                                                          each.priority, each.data);
    for (Entry each : entries)
      if (each.function->use_empty() && each.function->hasLocalLinkage())
        each.function->eraseFromParent();
  }
}

std::vector<std::string> LLVMModule::functionsOfLoading() const {
  std::vector<std::string> names;
  for (const std::shared_ptr<LLVMModule> &part : parts)
    append_range(names, part->functionsOfLoading());
  if (!module || !parts.empty())
    return names;
  for (StringRef list : {kConstructors, kDestructors})
    for (Entry each : entriesOf(*module, list))
      names.push_back(each.function->getName().str());
  return names;
}

} // namespace offload
