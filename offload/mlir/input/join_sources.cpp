//===- join_sources.cpp - One program from several sources ----------------===//
//
// Sources meet by the names that they give to others, in any order: a declaration of one stands for the
// definition of another, and both must say the same type. What a source keeps to itself is renamed where the
// name is taken. A kernel may be launched in another source than the one that has it: until that one comes, a
// gpu.module with its name stands in, for MLIR takes no launch without a kernel.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "program.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {
namespace {

/// What a symbol is to the other sources.
enum class Role { Own, Declared, Defined };

bool holdsKernels(Operation *op) { return isa<gpu::GPUModuleOp, gpu::BinaryOp>(op); }

bool standsIn(Operation *op) { return op->hasAttr(kElsewhere); }

Role roleOf(Operation *op) {
  if (holdsKernels(op)) // what they hold is found by the names of kernels
    return standsIn(op) ? Role::Declared : Role::Own;
  bool own = cast<SymbolOpInterface>(op).isPrivate(), declared = false;
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    declared = function.isExternal();
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
    own |= isLocal(function.getLinkage());
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    declared = global.isExternal();
  if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
    own |= isLocal(global.getLinkage());
    declared = !global.getValueOrNull() && global.getInitializerRegion().empty();
  }
  return declared ? Role::Declared : own ? Role::Own : Role::Defined;
}

/// The type that a symbol promises; null where it is neither a function nor memory.
Type typeOf(Operation *op) {
  if (auto function = dyn_cast<FunctionOpInterface>(op))
    return function.getFunctionType();
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    return global.getType();
  if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    return global.getGlobalType();
  return Type();
}

void refuse(Operation *op, StringRef name, Operation *same) {
  Type here = typeOf(op), there = typeOf(same);
  bool bothDefined = roleOf(op) == Role::Defined && roleOf(same) == Role::Defined;
  InFlightDiagnostic error = op->emitError("'") << name;
  if (bothDefined) {
    error << "' is defined in two sources: rename one, or make it private";
    error.attachNote(same->getLoc()) << "the other definition";
  } else if (op->getName() != same->getName()) {
    error << "' is the operation " << op->getName() << " here and " << same->getName()
          << " in another source: make both the same";
    error.attachNote(same->getLoc()) << "the other source has it here";
  } else {
    error << "' has the type " << here << " here and " << there
          << " in another source: make them the same, or rename one";
    error.attachNote(same->getLoc()) << "the other source has it here, with the type " << there;
  }
}

/// May one symbol stand for both?
bool agree(Operation *op, Operation *same) {
  return (roleOf(op) == Role::Declared || roleOf(same) == Role::Declared) &&
         op->getName() == same->getName() && typeOf(op) && typeOf(op) == typeOf(same);
}

/// One of these has the kernels that the other stands in for, or both stand in: `op` goes, or `same` does.
/// Returns whether it is `op` that stays.
bool resolve(Operation &op, Operation *same, SymbolTable &mine) {
  if (!standsIn(&op)) {
    mine.erase(same);
    return true;
  }
  auto missing = cast<gpu::GPUModuleOp>(op);
  if (auto both = standsIn(same) ? cast<gpu::GPUModuleOp>(same) : nullptr)
    for (Operation &kernel : llvm::make_early_inc_range(*missing.getBody()))
      if (!both.lookupSymbol(cast<SymbolOpInterface>(kernel).getName()))
        kernel.moveBefore(both.getBody(), both.getBody()->end());
  return false;
}

/// Of gpu.modules, by name, what the sources so far have shown.
struct Holders {
  llvm::StringSet<> launchedElsewhere; // a source launches kernels of it and does not have it
  llvm::StringMap<std::pair<Operation *, Operation *>> twice; // two sources have it
};

} // namespace

void declareKernels(ModuleOp module) {
  SymbolTable symbols(module);
  module.walk([&](gpu::LaunchFuncOp launch) {
    Operation *there = symbols.lookup(launch.getKernelModuleName());
    if ((there && !standsIn(there)) || launch.getKernel().getNestedReferences().empty())
      return;
    OpBuilder builder(module.getContext());
    auto standIn = cast_or_null<gpu::GPUModuleOp>(there);
    if (!standIn) {
      standIn = gpu::GPUModuleOp::create(builder, launch.getLoc(), launch.getKernelModuleName());
      standIn->setAttr(kElsewhere, builder.getUnitAttr());
      symbols.insert(standIn);
    }
    if (standIn.lookupSymbol(launch.getKernelName()))
      return;
    builder.setInsertionPointToEnd(standIn.getBody());
    auto type = builder.getFunctionType(launch.getKernelOperands().getTypes(), {});
    auto kernel = gpu::GPUFuncOp::create(builder, launch.getLoc(), launch.getKernelName(), type);
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    builder.setInsertionPointToEnd(&kernel.getBody().front());
    gpu::ReturnOp::create(builder, launch.getLoc());
  });
}

/// One of these has the kernels that the other stands in for, or both stand in.
static bool meetAsKernels(Operation *op, Operation *same) {
  return holdsKernels(op) && holdsKernels(same) && (standsIn(op) || standsIn(same));
}

/// Kernels and what sources give each other may have one name: a third source that launches the kernels knows
/// them by it. They get another name in all sources.
static void renameKernels(ArrayRef<IRModule *> sources) {
  llvm::StringSet<> taken, given;
  for (IRModule *source : sources)
    for (SymbolOpInterface symbol : source->get().getOps<SymbolOpInterface>()) {
      taken.insert(symbol.getName());
      if (!holdsKernels(symbol) && roleOf(symbol) != Role::Own)
        given.insert(symbol.getName());
    }
  llvm::StringMap<std::string> renamed;
  for (IRModule *source : sources) {
    SymbolTable symbols(source->get());
    for (SymbolOpInterface symbol : source->get().getOps<SymbolOpInterface>()) {
      if (!holdsKernels(symbol) || !given.contains(symbol.getName()))
        continue;
      std::string &name = renamed[symbol.getName()];
      for (unsigned i = 0; name.empty(); ++i) {
        std::string next = (symbol.getName() + "_" + Twine(i)).str();
        if (taken.insert(next).second)
          name = next;
      }
      if (failed(symbols.rename(symbol, name)))
        source->session->fail("a symbol cannot be renamed");
    }
  }
}

/// Gives what a source keeps to itself another name where the other one has that name, too. Both are apart
/// still: uses of a name are renamed with it. The new one is in none of `all` sources. Where kernels meet a
/// private function of their name, the function is renamed: a third source may launch the kernels.
static void keepApart(IRModule &module, IRModule &other, ArrayRef<SymbolTable *> all, Holders &holders) {
  SymbolTable mine(module.get()), theirs(other.get());
  SmallVector<SymbolTable *> withMine(all), withTheirs(all);
  withMine.push_back(&mine);
  withTheirs.push_back(&theirs);
  for (SymbolOpInterface symbol : other.get().getOps<SymbolOpInterface>()) {
    Operation *same = mine.lookup(symbol.getName());
    if (!same || meetAsKernels(symbol, same))
      continue;
    LogicalResult renamed = success();
    bool isKernelsName = holdsKernels(symbol) && !holdsKernels(same) && roleOf(same) == Role::Own;
    if (roleOf(symbol) == Role::Own && !isKernelsName) {
      if (holdsKernels(symbol) && holdsKernels(same))
        holders.twice.try_emplace(symbol.getName(), same, symbol);
      renamed = theirs.renameToUnique(symbol, withMine);
    } else if (roleOf(same) == Role::Own) {
      renamed = mine.renameToUnique(same, withTheirs);
    }
    if (failed(renamed))
      module.session->fail("a symbol cannot be renamed");
  }
}

static void append(IRModule &module, IRModule &other, ArrayRef<SymbolTable *> all, Holders &holders) {
  keepApart(module, other, all, holders);
  SymbolTable mine(module.get());
  for (Operation &op : llvm::make_early_inc_range(*other.get().getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (Operation *same = symbol ? mine.lookup(symbol.getName()) : nullptr) {
      if (meetAsKernels(&op, same)) {
        holders.launchedElsewhere.insert(symbol.getName());
        if (!resolve(op, same, mine))
          continue;
      } else if (!agree(&op, same)) {
        refuse(&op, symbol.getName(), same);
        module.session->fail("two sources do not agree");
      } else if (roleOf(&op) == Role::Declared) {
        continue;
      } else {
        mine.erase(same); // declared there, defined here
      }
    }
    op.moveBefore(module.get().getBody(), module.get().getBody()->end());
    if (symbol)
      mine.insert(&op);
  }
  for (NamedAttribute attribute : other.get()->getAttrs())
    if (!module.get()->hasAttr(attribute.getName()))
      module.get()->setAttr(attribute.getName(), attribute.getValue());
}

/// Refuses launches that have found no kernel, or may mean one of two.
static void settleLaunches(IRModule &module, const Holders &holders) {
  SymbolTable symbols(module.get());
  module.get().walk([&](gpu::LaunchFuncOp launch) {
    Operation *holder = symbols.lookup(launch.getKernelModuleName());
    if (holder && standsIn(holder))
      launch.emitOpError("starts '") << launch.getKernel()
                                     << "', which no source has: name the file with gpu.module @"
                                     << launch.getKernelModuleName().getValue() << " among the sources, too";
  });
  for (const auto &[name, both] : holders.twice)
    if (holders.launchedElsewhere.contains(name)) {
      auto error = both.second->emitError("gpu.module @")
                   << name
                   << " is in two sources, and another source launches its kernels: rename one of them";
      error.attachNote(both.first->getLoc()) << "the other one";
    }
  module.session->failOnErrors("the sources do not make one program");
  // Each launch was valid beside what stood in for its kernel.
  if (!holders.launchedElsewhere.empty() && failed(verify(module.get())))
    module.session->fail("the sources do not make one program");
}

void join(IRModule &module, const std::vector<std::shared_ptr<IRModule>> &others) {
  SmallVector<IRModule *> sources{&module};
  for (const std::shared_ptr<IRModule> &other : others)
    sources.push_back(other.get());
  renameKernels(sources);
  Holders holders;
  std::vector<std::unique_ptr<SymbolTable>> symbols;
  SmallVector<SymbolTable *> all;
  for (const std::shared_ptr<IRModule> &other : others)
    all.push_back(symbols.emplace_back(std::make_unique<SymbolTable>(other->get())).get());
  for (const std::shared_ptr<IRModule> &other : others)
    append(module, *other, all, holders);
  settleLaunches(module, holders);
}

} // namespace offload
