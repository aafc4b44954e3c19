//===- program.cpp - Splitting a program into host and device -------------===//

#include "program.h"
#include "input/library_names.h"
#include "names.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace offload {

static gpu::GPUModuleOp findDeviceModule(const IRModule &module, const std::string &name) {
  for (auto candidate : module.get().getOps<gpu::GPUModuleOp>())
    if (candidate.getName() == name)
      return candidate;
  throw Failure("no gpu.module named " + name, {});
}

bool isLocal(LLVM::Linkage linkage) {
  return linkage == LLVM::Linkage::Internal || linkage == LLVM::Linkage::Private;
}

bool isVisible(FunctionOpInterface function) {
  auto lowered = dyn_cast<LLVM::LLVMFuncOp>(function.getOperation());
  return !lowered ||
         (lowered.getVisibility_() != LLVM::Visibility::Hidden &&
          (lowered.getLinkage() == LLVM::Linkage::External || lowered.getLinkage() == LLVM::Linkage::Weak ||
           lowered.getLinkage() == LLVM::Linkage::WeakODR));
}

std::vector<std::string> exportedSymbols(const IRModule &module) {
  std::vector<std::string> names;
  for (auto function : module.get().getOps<FunctionOpInterface>())
    if (function.isPublic() && !function.isExternal() && isVisible(function)) {
      if (!takesLibraryName(function))
        names.push_back(function.getName().str());
      if (isa<func::FuncOp>(function))
        names.push_back(kInterface + function.getName().str());
    }
  return names;
}

std::vector<std::string> deviceModules(const IRModule &module) {
  std::vector<std::string> names;
  for (Operation &op : *module.get().getBody())
    if (isa<gpu::GPUModuleOp, gpu::BinaryOp>(op))
      names.push_back(cast<SymbolOpInterface>(op).getName().str());
  return names;
}

std::vector<std::string> kernelsOf(const IRModule &module, const std::string &name) {
  std::vector<std::string> names;
  if (isa_and_nonnull<gpu::BinaryOp>(SymbolTable::lookupSymbolIn(module.get(), name)))
    return names;
  for (auto function : findDeviceModule(module, name).getOps<FunctionOpInterface>())
    if (function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
      names.push_back(function.getName().str());
  return names;
}

std::vector<AttachedTargets> attachedTargets(const IRModule &module) {
  std::vector<AttachedTargets> found;
  for (auto device : module.get().getOps<gpu::GPUModuleOp>()) {
    ArrayAttr targets = device.getTargetsAttr();
    if (!targets)
      continue;
    AttachedTargets &attached = found.emplace_back();
    attached.module = device.getName().str();
    attached.position = resolveLocation(device.getLoc());
    for (Attribute target : targets) {
      llvm::raw_string_ostream stream(attached.targets.emplace_back());
      stream << target;
    }
  }
  return found;
}

std::shared_ptr<IRModule> deviceModule(const IRModule &module, const std::string &name,
                                       const std::string &attributes) {
  gpu::GPUModuleOp source = findDeviceModule(module, name);
  OwningOpRef<ModuleOp> holder = ModuleOp::create(source.getLoc());
  auto copy = cast<gpu::GPUModuleOp>(source->clone());
  holder->push_back(copy);
  if (!attributes.empty()) {
    auto targets = dyn_cast_or_null<ArrayAttr>(parseAttribute(attributes, &module.session->context()));
    if (!targets)
      module.session->fail("not an array of target attributes: " + attributes);
    copy.setTargetsAttr(targets);
  }
  return std::make_shared<IRModule>(module.session, std::move(holder));
}

bool hasAttribute(FunctionOpInterface function, const std::vector<std::string> &names) {
  if (llvm::any_of(names, [&](StringRef name) { return function->hasAttr(name); }))
    return true;
  auto passed = function->getAttrOfType<ArrayAttr>("passthrough");
  return passed && llvm::any_of(passed, [&](Attribute attribute) { // "name" or ["name", "value"]
           auto pair = dyn_cast<ArrayAttr>(attribute);
           auto first = dyn_cast<StringAttr>(pair && !pair.empty() ? pair[0] : attribute);
           return first && llvm::is_contained(names, first.getValue());
         });
}

void setKernelAttribute(IRModule &module, const std::string &name, const std::string &value,
                        const std::vector<std::string> &unless) {
  Attribute attribute = parseAttribute(value, &module.session->context());
  if (!attribute)
    module.session->fail("not an attribute: " + value);
  module.get().walk([&](FunctionOpInterface function) {
    bool excused = hasAttribute(function, {name}) || hasAttribute(function, unless);
    if (function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) && !excused)
      function->setAttr(name, attribute);
  });
}

/// Private functions that kernels alone call: their copies are in the kernels' modules, and they may hold
/// what host code cannot.
static void eraseKernelFunctions(ModuleOp host, const llvm::StringSet<> &ofKernels) {
  SymbolTableCollection tables;
  SymbolUserMap users(tables, host);
  llvm::MapVector<Operation *, SmallVector<func::FuncOp>> usedBy;
  SmallVector<func::FuncOp> open;
  for (auto function : host.getOps<func::FuncOp>())
    if (function.isPrivate() && ofKernels.contains(function.getSymName())) {
      open.push_back(function);
      for (Operation *user : users.getUsers(function))
        usedBy[user->getParentOfType<func::FuncOp>()].push_back(function);
    }
  llvm::SetVector<Operation *> unused;
  auto isUnused = [&](func::FuncOp function) {
    return llvm::all_of(users.getUsers(function), [&](Operation *user) {
      return unused.contains(user->getParentOfType<func::FuncOp>());
    });
  };
  while (!open.empty()) { // one may call another
    func::FuncOp function = open.pop_back_val();
    if (!unused.contains(function) && isUnused(function)) {
      unused.insert(function);
      llvm::append_range(open, usedBy.lookup(function));
    }
  }
  for (Operation *function : unused)
    function->erase();
}

std::shared_ptr<IRModule> hostModule(const IRModule &module) {
  std::shared_ptr<IRModule> host = module.clone();
  llvm::StringSet<> ofKernels;
  OpBuilder builder(&module.session->context());
  for (auto device : host->get().getOps<gpu::GPUModuleOp>()) {
    for (Operation &op : llvm::make_early_inc_range(*device.getBody())) {
      if (!op.hasAttr(gpu::GPUDialect::getKernelFuncAttrName())) {
        if (auto symbol = dyn_cast<SymbolOpInterface>(op))
          ofKernels.insert(symbol.getName());
        op.erase();
      } else if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op)) {
        // Attributions stay: they are arguments of the entry block.
        Block &entry = kernel.getBody().front();
        for (Block &block : kernel.getBody())
          block.dropAllDefinedValueUses(), block.dropAllReferences();
        while (&kernel.getBody().back() != &entry)
          kernel.getBody().back().erase();
        entry.clear();
        builder.setInsertionPointToEnd(&entry);
        gpu::ReturnOp::create(builder, kernel.getLoc());
      } else if (auto lowered = dyn_cast<LLVM::LLVMFuncOp>(op)) {
        lowered.eraseBody();
        lowered.setLinkage(LLVM::Linkage::External);
      }
    }
  }
  eraseKernelFunctions(host->get(), ofKernels);
  for (auto function : host->get().getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(), builder.getUnitAttr());
  return host;
}

} // namespace offload
