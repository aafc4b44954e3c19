//===- group_launches.cpp - offload-group-launches ------------------------===//
//
// What gpu-kernel-outlining is told before it makes kernels of launches: their names, unlike anything that a
// kernel may use by name, and their modules. It makes a module of each launch, and each module is compiled by
// itself for each chip: for a small kernel, starting the passes and the assembler takes far longer than
// compiling it. Where a program launches many kernels, small ones share a module, and large ones stay apart,
// so that they compile side by side.
//
// Constants and sizes that a body uses are computed in it.
//
// Outlining copies what a body uses by name into the kernel's module. Memory that changes must not be copied:
// a global is read outside of the launch, and goes to the kernel as an argument.
//
//===----------------------------------------------------------------------===//

#include "input/sink_computations.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace offload {
namespace {

/// So many kernels compile side by side anyway: they keep a module each, as everybody knows it.
constexpr size_t kFew = 4;
/// A module takes kernels up to so many operations; ptxas takes about as long for them as for its start.
constexpr size_t kLarge = 1000;
constexpr llvm::StringLiteral kModuleName = "kernels";

constexpr unsigned kGlobalSpace = 1; // NVIDIA's and AMD's number

/// Memory of the program's, which is one for all who use it.
bool changes(memref::GlobalOp global) {
  Attribute space = global.getType().getMemorySpace();
  auto number = dyn_cast_or_null<IntegerAttr>(space);
  auto named = dyn_cast_or_null<gpu::AddressSpaceAttr>(space);
  return !global.getConstant() && (!space || (number && number.getValue().ule(kGlobalSpace)) ||
                                   (named && named.getValue() == gpu::AddressSpace::Global));
}
bool changes(LLVM::GlobalOp global) { return !global.getConstant() && global.getAddrSpace() <= kGlobalSpace; }

/// Each with the number that makes the next one of it, where it is taken: a function may have a thousand
/// kernels.
using Names = llvm::StringMap<unsigned>;

struct GroupLaunches : public PassWrapper<GroupLaunches, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GroupLaunches)

  StringRef getArgument() const final { return "offload-group-launches"; }
  StringRef getDescription() const final { return "Name kernels; let small ones share a module"; }

  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    SmallVector<gpu::LaunchOp> launches;
    getOperation()->walk([&](gpu::LaunchOp launch) { launches.push_back(launch); });
    for (gpu::LaunchOp launch : launches) {
      sinkComputations(launch);
      if (passGlobals(launch, symbols);
          failed(checkReferences(launch, symbols)) || failed(checkUses(launch, launches, symbols)))
        return signalPassFailure();
    }
    name(launches);
  }

  static void passGlobals(gpu::LaunchOp launch, const SymbolTable &symbols) {
    launch->walk([&](memref::GetGlobalOp get) {
      if (auto global = symbols.lookup<memref::GlobalOp>(get.getName()); global && changes(global))
        get->moveBefore(launch);
    });
  }

  /// What outlining copies for a body: what it uses by name, and what that uses.
  static llvm::SetVector<Operation *> used(gpu::LaunchOp launch, const SymbolTable &symbols) {
    llvm::SetVector<Operation *> found;
    auto add = [&](auto &&from) {
      if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(from))
        for (SymbolTable::SymbolUse use : *uses)
          if (Operation *symbol = symbols.lookup(use.getSymbolRef().getLeafReference()))
            found.insert(symbol);
    };
    add(&launch.getBody());
    for (size_t i = 0; i < found.size(); ++i)
      add(found[i]);
    return found;
  }

  /// Outlining copies what the last part of a reference names, without a look at whether that is there.
  static LogicalResult checkReferences(gpu::LaunchOp launch, const SymbolTable &symbols) {
    auto check = [&](auto &&from) {
      if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(from))
        for (SymbolTable::SymbolUse use : *uses)
          if (!symbols.lookup(use.getSymbolRef().getLeafReference()))
            return LogicalResult(use.getUser()->emitError("refers to '")
                                 << use.getSymbolRef()
                                 << "', and a kernel can use by name only what the program's own module has");
      return success();
    };
    if (failed(check(&launch.getBody())))
      return failure();
    for (Operation *symbol : used(launch, symbols))
      if (failed(check(symbol)))
        return failure();
    return success();
  }

  static LogicalResult checkUses(gpu::LaunchOp launch, ArrayRef<gpu::LaunchOp> launches,
                                 const SymbolTable &symbols) {
    auto device = launch.getModule() ? symbols.lookup<gpu::GPUModuleOp>(*launch.getModule()) : nullptr;
    for (Operation *symbol : used(launch, symbols)) {
      StringRef name = cast<SymbolOpInterface>(symbol).getName();
      if (auto global = dyn_cast<memref::GlobalOp>(symbol); global && changes(global)) {
        auto error = launch.emitError("the kernel calls a function that uses the global memory '")
                     << name
                     << "', of which the kernel would have a copy: get it where the kernel is launched, "
                     << "and pass it to the function";
        error.attachNote(symbol->getLoc()) << "the memory is here";
        return error;
      }
      if (auto global = dyn_cast<LLVM::GlobalOp>(symbol); global && changes(global)) {
        auto error = launch.emitError("the kernel uses the variable '")
                     << name << "', of which it would have a copy: pass it memory, as a memref";
        error.attachNote(symbol->getLoc()) << "the variable is here";
        return error;
      }
      WalkResult walked = symbol->walk([&](Operation *op) {
        return isa<gpu::LaunchOp, gpu::LaunchFuncOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (isa<FunctionOpInterface>(symbol) && walked.wasInterrupted()) {
        auto error =
            launch.emitError("the kernel calls '")
            << name
            << "', which launches a kernel: a kernel cannot. Call it where the kernel is launched, or "
            << "write its work for one thread, with scf.for in place of linalg and parallel loops";
        error.attachNote(symbol->getLoc()) << "it is here";
        return error;
      }
      if (launch.getFunction() == name) {
        auto error = launch.emitError("the kernel is to be called '")
                     << name << "', and uses something of that name: give one of them another name";
        error.attachNote(symbol->getLoc()) << "it is here";
        return error;
      }
      for (gpu::LaunchOp other : launches)
        if (other.getFunction() == name && launch.getModule() && other.getModule() == launch.getModule()) {
          auto error = launch.emitError("the kernel uses '")
                       << name << "', and another kernel of its module is to be called so: give one of them "
                       << "another name";
          error.attachNote(other.getLoc()) << "the other kernel is here";
          return error;
        }
      Operation *there = device ? SymbolTable::lookupSymbolIn(device, name) : nullptr;
      if (there &&
          !OperationEquivalence::isEquivalentTo(symbol, there, OperationEquivalence::IgnoreLocations)) {
        auto error = launch.emitError("the kernel uses '")
                     << name
                     << "', and its module has another one of that name: give one of them another name";
        error.attachNote(there->getLoc()) << "the module's is here";
        return error;
      }
    }
    return success();
  }

  void name(ArrayRef<gpu::LaunchOp> launches) {
    // No kernel has the name of another, nor of anything that is copied to it.
    Names taken, modules;
    getOperation()->walk([&](SymbolOpInterface symbol) {
      if (symbol.getNameAttr())
        taken.try_emplace(symbol.getName());
    });
    for (Operation &op : *getOperation().getBody())
      if (auto symbol = dyn_cast<SymbolOpInterface>(op))
        modules.try_emplace(symbol.getName());
    SmallVector<gpu::LaunchOp> unnamed;
    for (gpu::LaunchOp launch : launches) {
      if (launch.getModuleAttr())
        modules.try_emplace(*launch.getModule());
      if (launch.getFunctionAttr())
        taken.try_emplace(*launch.getFunction());
      else if (!launch.getModuleAttr())
        unnamed.push_back(launch);
    }
    for (gpu::LaunchOp launch : launches)
      if (!launch.getFunctionAttr())
        launch.setFunction(
            unused(plain(launch->getParentOfType<SymbolOpInterface>().getName()) + "_kernel", taken));
    if (unnamed.size() > kFew)
      group(unnamed, modules);
  }

  static void group(ArrayRef<gpu::LaunchOp> launches, Names &modules) {
    std::string module;
    size_t size = kLarge;
    for (gpu::LaunchOp launch : launches) {
      size_t operations = 0;
      launch->walk([&](Operation *) { ++operations; });
      if (size + operations > kLarge) {
        module = unused(kModuleName, modules);
        size = 0;
      }
      size += operations;
      launch.setModule(module);
    }
  }

  /// A function's name as it may begin a kernel's on every target: PTX has no others.
  static std::string plain(StringRef name) {
    std::string found = !name.empty() && llvm::isDigit(name.front()) ? "_" : "";
    for (char c : name)
      found += llvm::isAlnum(c) || c == '$' ? c : '_';
    return found;
  }

  /// The name, or as a symbol table renames what has it too; it is taken from now on.
  static std::string unused(StringRef name, Names &taken) {
    std::string found = name.str();
    while (!taken.try_emplace(found).second)
      found = (name + "_" + Twine(taken[name]++)).str();
    return found;
  }
};

} // namespace

void registerGroupLaunchesPass() { PassRegistration<GroupLaunches>(); }

} // namespace offload
