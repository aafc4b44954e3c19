//===- library_names.cpp - offload-private-names --------------------------===//
//
// Which names a program's functions cannot have, because calls that are made of its code, or those of the
// runtime beside it, would find them. Nobody outside knows a private function's name: it gets another one.
// Likewise of globals, where the linker or the runtime looks for a name.
//
//===----------------------------------------------------------------------===//

#include "input/library_names.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {

static llvm::StringSet<> words(StringRef text) {
  llvm::StringSet<> found;
  SmallVector<StringRef> parts;
  text.split(parts, ' ');
  found.insert_range(parts);
  return found;
}

bool isOfLibm(StringRef name) {
  static const llvm::StringSet<> known = words(kLibm);
  return known.contains(name) || (name.consume_back("f") && known.contains(name)); // expf
}

bool isReservedName(StringRef name) {
  // What loaders run or linkers make by these names, thread-local ones that every program with the C library
  // has, what a library of offload has, and what code generators call for numbers that the processor has no
  // instructions for.
  static const llvm::StringSet<> reserved = words(
      "_init _fini _GLOBAL_OFFSET_TABLE_ errno h_errno offload_api offload_modules offload_images_begin "
      "offload_images_end __divti3 __modti3 __udivti3 __umodti3 __extendhfsf2 __extendhfdf2 "
      "__truncsfhf2 __truncdfhf2 __truncsfbf2 __truncdfbf2");
  return reserved.contains(name);
}

/// A function with a body, or memory that is not another's.
static bool isDefinition(Operation *op) {
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    return !global.isExternal();
  if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    return global.getValueOrNull() || !global.getInitializerRegion().empty();
  auto function = dyn_cast<FunctionOpInterface>(op);
  return function && !function.isExternal();
}

/// Whether nobody outside of the program knows its name.
static bool isOwn(Operation *op) {
  auto isOfUnit = [](LLVM::Linkage linkage) {
    return linkage == LLVM::Linkage::Internal || linkage == LLVM::Linkage::Private;
  };
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op); function && isOfUnit(function.getLinkage()))
    return true;
  if (auto global = dyn_cast<LLVM::GlobalOp>(op); global && isOfUnit(global.getLinkage()))
    return true;
  return cast<SymbolOpInterface>(op).isPrivate();
}

bool takesLibraryName(Operation *op) {
  if (!isDefinition(op) || op->getParentOfType<gpu::GPUModuleOp>())
    return isa<memref::GlobalOp, LLVM::GlobalOp>(op) && !op->getParentOfType<gpu::GPUModuleOp>() &&
           isReservedName(cast<SymbolOpInterface>(op).getName());
  static const llvm::StringSet<> memory =
      words("malloc calloc realloc free aligned_alloc memcpy memmove memset memcmp bcmp strlen abort puts "
            "printf memrefCopy");
  // What the runtime inside of every library calls: the program's function would be linked to its calls.
  static const llvm::StringSet<> runtime = words(
      "__cxa_atexit __errno_location access dl_iterate_phdr madvise mmap munmap __register_atfork "
      "__sched_cpucount _setjmp clock_gettime close "
      "dlclose dlerror dlopen dlsym fclose fgets flock fopen fprintf ftruncate getcwd getenv "
      "getpid longjmp lseek malloc_usable_size memchr memfd_create memmem mkostemp open posix_memalign pread "
      "pwrite qsort read sched_getaffinity sigfillset snprintf statx stderr strchr strcmp strcpy strcspn "
      "strerror strncmp strrchr strspn strstr strtol strtoull syscall sysconf unlink vsnprintf write");
  StringRef name = cast<SymbolOpInterface>(op).getName();
  bool isPublic = !isOwn(op);
  return memory.contains(name) || isReservedName(name) || isOfLibm(name) || name.starts_with("mgpu") ||
         (isPublic && (runtime.contains(name) || name.starts_with("pthread_")));
}

namespace {

struct PrivateNames : public PassWrapper<PrivateNames, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrivateNames)

  StringRef getArgument() const final { return "offload-private-names"; }
  StringRef getDescription() const final { return "Give what is private names that no library has"; }

  void runOnOperation() final {
    SmallVector<Operation *> taken;
    for (Operation &op : getOperation().getOps())
      if (takesLibraryName(&op) && isOwn(&op))
        taken.push_back(&op);
    if (taken.empty())
      return;
    SymbolTable symbols(getOperation());
    for (Operation *each : taken) {
      std::string name = "own." + SymbolTable::getSymbolName(each).str();
      while (symbols.lookup(name))
        name += "_";
      if (failed(symbols.rename(each, name)))
        return signalPassFailure();
    }
  }
};

} // namespace

void registerPrivateNamesPass() { PassRegistration<PrivateNames>(); }

} // namespace offload
