//===- bitcode.cpp - Linking of bitcode -------------------------------------===//

#include "codegen/llvm_module.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/AutoUpgrade.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace llvm;

namespace offload {

void checkBitcode(const std::string &data) {
  initializeTargets(); // LLVM may give up
  LLVMContext context;
  auto module = parseBitcodeFile(MemoryBufferRef(data, "bitcode"), context);
  if (!module)
    throw Failure(toString(module.takeError()), {});
  std::string wrong;
  raw_string_ostream stream(wrong);
  if (verifyModule(**module, &stream))
    throw Failure(wrong, {});
}

static std::unique_ptr<llvm::Module> readLibrary(const std::string &path, LLVMContext &context) {
  SMDiagnostic message;
  std::unique_ptr<llvm::Module> library = getLazyIRFileModule(path, message, context);
  if (!library)
    throw Failure("cannot read the bitcode library " + path + ": " + message.getMessage().str() +
                      "; it should be LLVM bitcode or LLVM IR as text (clang -emit-llvm makes it of C)",
                  {});
  return library;
}

/// Whether an address of the one kind is the same number as one of the other.
static bool isSameSpace(unsigned one, unsigned other, const Triple &triple) {
  constexpr unsigned kGlobal = 1, kConstant = 4; // where constants lie in memory as all else does
  auto isFlat = [&](unsigned space) {
    return space == 0 || space == kGlobal || (triple.isAMDGPU() && space == kConstant);
  };
  return one == other || (isFlat(one) && isFlat(other)) || !triple.isGPU();
}

/// Whether a caller that takes it for the one type reaches the other one: the same bits in the same
/// registers.
static bool isSame(Type *called, Type *defined, const llvm::Module &module) {
  if (called == defined)
    return true;
  // Structures have a name of their own in each file.
  if (auto *one = dyn_cast<StructType>(called)) {
    auto *other = dyn_cast<StructType>(defined);
    return other && one->isPacked() == other->isPacked() &&
           equal(one->elements(), other->elements(),
                 [&](Type *left, Type *right) { return isSame(left, right, module); });
  }
  if (auto *one = dyn_cast<ArrayType>(called)) {
    auto *other = dyn_cast<ArrayType>(defined);
    return other && one->getNumElements() == other->getNumElements() &&
           isSame(one->getElementType(), other->getElementType(), module);
  }
  if (auto *one = dyn_cast<VectorType>(called)) {
    auto *other = dyn_cast<VectorType>(defined);
    return other && one->getElementCount() == other->getElementCount() && one->isPtrOrPtrVectorTy() &&
           isSame(one->getElementType(), other->getElementType(), module);
  }
  const Triple &triple = module.getTargetTriple();
  auto *one = dyn_cast<PointerType>(called), *other = dyn_cast<PointerType>(defined);
  if (one && other)
    return isSameSpace(one->getAddressSpace(), other->getAddressSpace(), triple);
  if (one || other) // MLIR's programs have addresses as integers
    return CastInst::isBitOrNoopPointerCastable(called, defined, module.getDataLayout());
  // Registers of GPUs hold either number.
  return triple.isGPU() && !defined->isVectorTy() && CastInst::isBitCastable(called, defined);
}

static bool isCallable(const FunctionType &called, const FunctionType &defined, const llvm::Module &module) {
  auto areSame = [&](Type *one, Type *other) { return isSame(one, other, module); };
  Type *given = called.getReturnType();
  return called.isVarArg() == defined.isVarArg() && equal(called.params(), defined.params(), areSame) &&
         (given->isVoidTy() || areSame(given, defined.getReturnType()));
}

static std::string textOf(const Type &type) {
  std::string text;
  raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

/// LLVM knows functions and variables by their names alone: a call of another type would find whatever lies
/// in the registers.
std::string LLVMModule::misfitOf(const llvm::Module &library) const {
  for (const Function &called : *module) {
    const GlobalValue *found =
        called.isDeclaration() && called.hasName() ? library.getNamedValue(called.getName()) : nullptr;
    if (!found || found->isDeclaration() || found->hasLocalLinkage() ||
        called.getIntrinsicID() != Intrinsic::not_intrinsic)
      continue;
    auto *type = dyn_cast<FunctionType>(found->getValueType());
    std::string name = "'" + called.getName().str() + "'";
    for (const User *user : called.users()) {
      auto *call = dyn_cast<CallBase>(user);
      if (!call || call->getCalledOperand() != &called)
        continue;
      if (!type)
        return name + " is called here, and is a variable there";
      if (!isCallable(*call->getFunctionType(), *type, *module))
        return name + " is called as " + textOf(*call->getFunctionType()) + " here, and is " + textOf(*type) +
               " there: declare it as it is defined";
    }
  }
  return "";
}

void LLVMModule::linkLibrary(const std::string &path) {
  {
    SharedLock shared(optionsLock());
    std::unique_ptr<llvm::Module> library = readLibrary(path, *context);
    const Triple &theirs = library->getTargetTriple(), &mine = module->getTargetTriple();
    auto same = [&] { return theirs.getArch() == mine.getArch() && theirs.getOS() == mine.getOS(); };
    if (!theirs.str().empty() && !same())
      throw Failure("cannot link " + path + ": it is for " + theirs.str() + ", this target is " + mine.str() +
                        "; give it to the target that it is for (TARGET,link=" + path + ")",
                    {});
    const std::string &layout = library->getDataLayoutStr();
    // Bitcode without a layout gets what LLVM adds to every layout when it is read.
    bool silent = layout.empty() || layout == UpgradeDataLayoutString("", theirs.str());
    if (!silent && layout != module->getDataLayoutStr())
      throw Failure("cannot link " + path + ": its data layout is " + layout + ", this target's is " +
                        module->getDataLayoutStr() + "; compile it with clang of LLVM 22 for " + mine.str(),
                    {});
    if (std::string misfit = misfitOf(*library); !misfit.empty())
      throw Failure("cannot link " + path,
                    {positions.explainFunction("cannot link " + path + ": " + misfit)});
    for (const Function &function : *library)
      if (!function.isDeclarationForLinker() && !function.hasLocalLinkage())
        passed.try_emplace(function.getName().str(), path);
  }
  link(path);
  // Text is not checked when it is read. Two files that are right may not agree in their debug information.
  std::string wrong;
  raw_string_ostream stream(wrong);
  bool isDebugInfoWrong = false;
  bool isWrong = verifyModule(*module, &stream, &isDebugInfoWrong);
  if (isDebugInfoWrong)
    StripDebugInfo(*module);
  if (isWrong)
    throw Failure("cannot link " + path + ": it is not valid LLVM IR: " + StringRef(wrong).trim().str(), {});
  if (isForGpu())
    keepCallsInPlace(*module); // not all that write IR say so
}

void LLVMModule::linkNeeded(const std::string &path) {
  auto defined = [&] {
    std::set<std::string> names;
    for (const Function &function : *module)
      if (!function.isDeclaration())
        names.insert(function.getName().str());
    return names;
  };
  std::set<std::string> before = defined();
  link(path);
  for (const std::string &name : defined())
    if (!before.count(name))
      deviceLibrary.insert(name);
}

void LLVMModule::link(const std::string &path) {
  SharedLock shared(optionsLock());
  std::unique_ptr<llvm::Module> library = readLibrary(path, *context);
  library->setTargetTriple(module->getTargetTriple());
  library->setDataLayout(module->getDataLayout());
  // What a function says of its chip stands for all that the target says: waves would have another size in
  // it.
  if (module->getTargetTriple().isAMDGPU())
    for (Function &function : *library)
      for (StringRef attribute : {"target-cpu", "tune-cpu", "target-features"})
        function.removeFnAttr(attribute);
  bool failed = Linker::linkModules(*module, std::move(library), Linker::LinkOnlyNeeded,
                                    [](llvm::Module &linked, const StringSet<> &added) {
                                      internalizeModule(linked, [&added](const GlobalValue &value) {
                                        return !value.hasName() || !added.contains(value.getName());
                                      });
                                    });
  if (failed)
    throw Failure("cannot link the bitcode library " + path, {});
}

} // namespace offload
