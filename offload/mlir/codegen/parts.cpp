//===- parts.cpp - Kernels of the host target, compiled side by side ------===//
//
// LLVM optimizes a module, and makes machine code of it, on one thread. Kernels know nothing of each other:
// those of a module with many are divided among modules of their own, and what several use and nobody changes
// is in each of them. How they are divided depends on the module alone, and so does the library: not on how
// many processors there are.
//
//===----------------------------------------------------------------------===//

#include "codegen/parts.h"
#include "codegen/llvm_module.h"
#include "crash_notes.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/thread.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <atomic>
#include <exception>

using namespace llvm;

namespace offload {
namespace {

/// Instructions of a part, before they are optimized: some 50 milliseconds. What it takes to begin a part is
/// a few.
constexpr size_t kPart = 400;
constexpr size_t kMostParts = 32;
constexpr unsigned kStack = 64 << 20; // LLVM goes deep; memory that nobody touches costs nothing

using Values = SmallSetVector<const GlobalValue *, 16>;

/// Adds the globals that a constant speaks of.
void addGlobals(const Constant *constant, SmallPtrSetImpl<const Constant *> &seen, Values &found) {
  if (!seen.insert(constant).second)
    return;
  if (auto *global = dyn_cast<GlobalValue>(constant)) {
    found.insert(global);
    return;
  }
  for (const Use &use : constant->operands())
    if (auto *inner = dyn_cast<Constant>(use))
      addGlobals(inner, seen, found);
}

/// A global and all that is defined in the module and it needs.
Values neededBy(const GlobalValue &root) {
  Values needed;
  SmallPtrSet<const Constant *, 32> seen;
  needed.insert(&root);
  for (size_t i = 0; i < needed.size(); ++i) {
    const GlobalValue *value = needed[i];
    for (const Use &use : value->operands()) // an initializer, a personality
      if (auto *constant = dyn_cast<Constant>(use))
        addGlobals(constant, seen, needed);
    if (auto *function = dyn_cast<Function>(value))
      for (const BasicBlock &block : *function)
        for (const Instruction &instruction : block)
          for (const Use &use : instruction.operands())
            if (auto *constant = dyn_cast<Constant>(use))
              addGlobals(constant, seen, needed);
  }
  return needed;
}

size_t lengthOf(const Values &values) {
  size_t length = 0;
  for (const GlobalValue *value : values)
    if (auto *function = dyn_cast<Function>(value))
      length += function->getInstructionCount();
  return length;
}

/// May it be in several parts, each with its own?
bool canBeTwice(const GlobalValue &value) {
  if (value.isDeclaration())
    return true;
  auto *variable = dyn_cast<GlobalVariable>(&value);
  return value.hasLocalLinkage() && (isa<Function>(value) || (variable && variable->isConstant()));
}

/// What the parts define; empty where the module stays whole.
std::vector<Values> partsOf(const llvm::Module &module) {
  if (!module.getModuleInlineAsm().empty() || module.getNamedMetadata("llvm.dbg.cu") || !module.ifunc_empty())
    return {};
  std::vector<Values> needed;
  EquivalenceClasses<size_t> together;
  DenseMap<const GlobalValue *, size_t> owner; // of what is there once
  for (const GlobalValue &root : module.global_values()) {
    if (root.isDeclaration() || root.hasLocalLinkage())
      continue;
    if (root.hasAppendingLinkage())
      return {};
    together.insert(needed.size());
    for (const GlobalValue *value : needed.emplace_back(neededBy(root)))
      if (!canBeTwice(*value)) {
        auto [entry, isNew] = owner.try_emplace(value, needed.size() - 1);
        if (!isNew)
          together.unionSets(entry->second, needed.size() - 1);
      }
  }
  std::vector<Values> groups; // in the order of their first kernel
  DenseMap<size_t, size_t> groupOf;
  for (size_t i = 0; i < needed.size(); ++i) {
    auto [entry, isNew] = groupOf.try_emplace(together.getLeaderValue(i), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[entry->second].insert_range(needed[i]);
  }
  size_t whole = 0;
  for (const Values &group : groups)
    whole += lengthOf(group);
  size_t count = std::min({whole / kPart, kMostParts, groups.size()});
  if (count < 2)
    return {};
  std::vector<Values> parts(1);
  size_t length = 0;
  for (const Values &group : groups) {
    if (length >= whole / count) {
      parts.emplace_back();
      length = 0;
    }
    parts.back().insert_range(group);
    length += lengthOf(group);
  }
  return parts.size() < 2 ? std::vector<Values>() : parts;
}

/// The definitions as a module of their own.
std::string bitcodeOf(const llvm::Module &module, const Values &defined) {
  ValueToValueMapTy map;
  std::unique_ptr<llvm::Module> part =
      CloneModule(module, map, [&](const GlobalValue *value) { return defined.contains(value); });
  for (GlobalValue &value : make_early_inc_range(part->global_values()))
    if (value.isDeclaration() && value.use_empty())
      value.eraseFromParent();
  std::string bitcode;
  raw_string_ostream stream(bitcode);
  WriteBitcodeToFile(*part, stream);
  return bitcode;
}

std::unique_ptr<llvm::Module> read(const std::string &bitcode, LLVMContext &context) {
  auto module = parseBitcodeFile(MemoryBufferRef(bitcode, "offload"), context);
  if (!module)
    throw Failure("internal error in the parts of a module: " + toString(module.takeError()), {});
  return std::move(*module);
}

} // namespace

void sideBySide(size_t count, const std::string &what, const std::function<void(size_t)> &work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next{0};
  auto go = [&] {
    CrashNote note(what);
    for (size_t i = next++; i < count; i = next++)
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  std::vector<llvm::thread> threads;
  size_t most = std::min<size_t>(count, hardware_concurrency().compute_thread_count());
  try {
    while (threads.size() + 1 < most)
      threads.emplace_back(std::optional<unsigned>(kStack), go);
  } catch (const Failure &) { // LLVM gives up
    // The system has no more of them: those that are there do it.
  }
  go();
  for (llvm::thread &each : threads)
    each.join();
  for (const std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
}

void LLVMModule::divide() {
  SharedLock shared(optionsLock());
  MachineOptions same = options;
  same.fastMath = machine->Options.AllowFPOpFusion == FPOpFusion::Fast;
  for (const Values &defined : partsOf(*module)) {
    std::shared_ptr<LLVMModule> part(new LLVMModule(session, same));
    part->options = options;
    part->positions = positions;
    part->holdsHostKernels = true;
    part->module = read(bitcodeOf(*module, defined), *part->context);
    parts.push_back(std::move(part));
  }
}

void LLVMModule::join() {
  if (parts.empty() || isJoined)
    return;
  auto whole = std::make_unique<llvm::Module>("offload", *context);
  whole->setTargetTriple(module->getTargetTriple());
  whole->setDataLayout(module->getDataLayout());
  whole->setSourceFileName("");
  for (const std::shared_ptr<LLVMModule> &part : parts) {
    std::string bitcode;
    raw_string_ostream stream(bitcode);
    WriteBitcodeToFile(*part->module, stream);
    if (Linker::linkModules(*whole, read(bitcode, *context)))
      throw Failure("internal error: the parts of a module do not fit together", {});
  }
  module = std::move(whole);
  isJoined = true;
}

} // namespace offload
