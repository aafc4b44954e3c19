//===- bitcode.cpp - Linking of bitcode -------------------------------------===//

#include "codegen/llvm_module.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/AutoUpgrade.h"
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

/// Whether a caller that takes it for the one type reaches the other one: the same registers.
static bool isSame(Type *called, Type *defined, const DataLayout &layout) {
  return called == defined || (called->isPtrOrPtrVectorTy() && defined->isPtrOrPtrVectorTy() &&
                               layout.getTypeSizeInBits(called) == layout.getTypeSizeInBits(defined));
}

static bool isCallable(FunctionType &called, FunctionType &defined, const DataLayout &layout) {
  Type *given = called.getReturnType();
  return called.isVarArg() == defined.isVarArg() &&
         (given->isVoidTy() || isSame(given, defined.getReturnType(), layout)) &&
         equal(called.params(), defined.params(),
               [&](Type *one, Type *other) { return isSame(one, other, layout); });
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
    const GlobalValue *found = called.isDeclaration() && called.hasName() && !called.use_empty()
                                   ? library.getNamedValue(called.getName())
                                   : nullptr;
    if (!found || found->isDeclaration() || called.getIntrinsicID() != Intrinsic::not_intrinsic)
      continue;
    auto *type = dyn_cast<FunctionType>(found->getValueType());
    std::string name = "'" + called.getName().str() + "'";
    if (!type)
      return name + " is called here, and is a variable there";
    if (!isCallable(*called.getFunctionType(), *type, module->getDataLayout()))
      return name + " is called as " + textOf(*called.getFunctionType()) + " here, and is " + textOf(*type) +
             " there: declare it as it is defined";
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
      if (!function.isDeclaration() && !function.hasLocalLinkage())
        passed.try_emplace(function.getName().str(), path);
  }
  linkNeeded(path);
  // Text is not checked when it is read.
  std::string wrong;
  raw_string_ostream stream(wrong);
  if (verifyModule(*module, &stream))
    throw Failure("cannot link " + path + ": it is not valid LLVM IR: " + StringRef(wrong).trim().str(), {});
  if (isForGpu())
    keepCallsInPlace(*module); // not all that write IR say so
}

void LLVMModule::linkNeeded(const std::string &path) {
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
