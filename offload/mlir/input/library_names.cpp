//===- library_names.cpp - offload-private-names, offload-named-interfaces -===//
//
// Which names a program's functions cannot have, because calls that are made of its code, or those of the
// runtime beside it, would find them. Nobody outside knows a private function's name: it gets another one.
// Likewise of globals, where the linker or the runtime looks for a name. A public function gets another one,
// too, when the host code is lowered: Python and C++ call its C interface, which keeps the name.
//
//===----------------------------------------------------------------------===//

#include "input/library_names.h"
#include "names.h"
#include "passes.h"
#include "program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
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
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op); function && isLocal(function.getLinkage()))
    return true;
  if (auto global = dyn_cast<LLVM::GlobalOp>(op); global && isLocal(global.getLinkage()))
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
      "strerror strncmp strrchr strspn strstr strtok_r strtol strtoull syscall sysconf unlink vsnprintf "
      "write");
  StringRef name = cast<SymbolOpInterface>(op).getName();
  bool isPublic = !isOwn(op);
  return memory.contains(name) || isReservedName(name) || isOfLibm(name) || name.starts_with("mgpu") ||
         (isPublic && (runtime.contains(name) || name.starts_with("pthread_")));
}

bool isCalledByInterface(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  return function && !isReservedName(function.getName()) && !function.getName().starts_with("mgpu");
}

namespace {

std::string freeName(StringRef name, const SymbolTable &symbols) {
  std::string own = "own." + name.str();
  while (symbols.lookup(own))
    own += "_";
  return own;
}

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
    for (Operation *each : taken)
      if (failed(symbols.rename(each, freeName(SymbolTable::getSymbolName(each).getValue(), symbols))))
        return signalPassFailure();
  }
};

struct NamedInterfaces : public PassWrapper<NamedInterfaces, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NamedInterfaces)

  StringRef getArgument() const final { return "offload-named-interfaces"; }
  StringRef getDescription() const final {
    return "Leave names that a library has to the C interfaces of functions";
  }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!function.isPublic() || !takesLibraryName(function))
        continue;
      StringAttr name = function.getSymNameAttr();
      if (failed(symbols.rename(function, freeName(name, symbols))))
        return signalPassFailure();
      function->setAttr(kNamed, name);
    }
  }
};

} // namespace

void registerLibraryNamesPasses() {
  PassRegistration<PrivateNames>();
  PassRegistration<NamedInterfaces>();
}

} // namespace offload
