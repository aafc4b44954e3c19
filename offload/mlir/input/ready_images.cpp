//===- ready_images.cpp - Compiled code that a program carries ------------===//

#include "input/ready_images.h"
#include "names.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

static std::string asText(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << attribute;
  return text;
}

static std::string formatName(gpu::CompilationTarget format) {
  switch (format) {
  case gpu::CompilationTarget::Offload:
    return "offload";
  case gpu::CompilationTarget::Assembly:
    return "isa";
  case gpu::CompilationTarget::Binary:
    return "bin";
  case gpu::CompilationTarget::Fatbin:
    return "fatbin";
  }
  llvm_unreachable("a format of another MLIR");
}

/// The objects that the author wants: all of them, or the one that #gpu.select_object<…> names. Empty after
/// an error.
static SmallVector<gpu::ObjectAttr> chosenObjects(gpu::BinaryOp binary) {
  SmallVector<gpu::ObjectAttr> all;
  for (Attribute object : binary.getObjects())
    all.push_back(cast<gpu::ObjectAttr>(object));
  Attribute handler = binary.getOffloadingHandlerAttr();
  auto select = dyn_cast_or_null<gpu::SelectObjectAttr>(handler);
  if (handler && !select) {
    binary.emitError("the offloading handler ") << handler << " is unknown here: leave it out, or choose one "
                                                << "object with <#gpu.select_object<…>>";
    return {};
  }
  if (!select || !select.getTarget())
    return all;
  if (auto index = dyn_cast<IntegerAttr>(select.getTarget())) {
    if (index.getInt() >= 0 && uint64_t(index.getInt()) < all.size())
      return {all[index.getInt()]};
    binary.emitError("#gpu.select_object chooses object ")
        << index.getInt() << ", but there are " << all.size() << ", counted from 0";
    return {};
  }
  for (gpu::ObjectAttr object : all)
    if (object.getTarget() == select.getTarget())
      return {object};
  binary.emitError("#gpu.select_object chooses ")
      << select.getTarget() << ", but no object is for that target";
  return {};
}

static void takeObjects(gpu::BinaryOp binary, std::vector<ReadyObject> &found) {
  for (gpu::ObjectAttr object : chosenObjects(binary)) {
    ReadyObject ready;
    ready.module = binary.getName().str();
    ready.position = resolveLocation(binary.getLoc());
    ready.target = asText(object.getTarget());
    ready.format = formatName(object.getFormat());
    ready.data = object.getObject().getValue().str();
    if (gpu::KernelTableAttr table = object.getKernels()) {
      ready.kernels.emplace();
      for (gpu::KernelMetadataAttr kernel : table)
        ready.kernels->push_back(kernel.getName().getValue().str());
    }
    if (DictionaryAttr properties = object.getProperties())
      if (auto level = properties.getAs<IntegerAttr>("O"))
        ready.jitLevel = level.getInt();
    found.push_back(std::move(ready));
  }
}

static void takeAttribute(gpu::GPUModuleOp device, StringRef name, std::vector<ReadyObject> &found) {
  Attribute attribute = device->getDiscardableAttr(name);
  if (!attribute)
    return;
  auto data = dyn_cast<StringAttr>(attribute);
  if (!data) {
    device.emitError("the attribute '") << name << "' should hold compiled code, as a string";
    return;
  }
  ReadyObject ready;
  ready.module = device.getName().str();
  ready.position = resolveLocation(device.getLoc());
  ready.annotation = name.str();
  ready.data = data.getValue().str();
  found.push_back(std::move(ready));
  device->removeDiscardableAttr(name);
  device->setDiscardableAttr(kReady, UnitAttr::get(device.getContext()));
}

bool mayHoldReadyObjects(const IRModule &module) {
  return llvm::any_of(*module.get().getBody(), [](Operation &op) {
    return isa<gpu::BinaryOp>(op) || (isa<gpu::GPUModuleOp>(op) && !op.getDiscardableAttrs().empty());
  });
}

std::vector<ReadyObject> takeReadyObjects(IRModule &module, const std::vector<std::string> &annotations) {
  std::vector<ReadyObject> found;
  for (Operation &op : *module.get().getBody()) {
    if (auto binary = dyn_cast<gpu::BinaryOp>(op))
      takeObjects(binary, found);
    else if (auto device = dyn_cast<gpu::GPUModuleOp>(op))
      for (const std::string &name : annotations)
        takeAttribute(device, name, found);
  }
  std::vector<Diagnostic> diagnostics = module.session->takeDiagnostics();
  for (const Diagnostic &diagnostic : diagnostics)
    if (diagnostic.severity == "error")
      throw Failure("compiled code in the program cannot be used", diagnostics);
  return found;
}

std::vector<LaunchSite> launchesOf(const IRModule &module, const std::string &name) {
  std::vector<LaunchSite> sites;
  module.get().walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() == name)
      sites.push_back({launch.getKernelName().str(), resolveLocation(launch.getLoc())});
  });
  return sites;
}

Diagnostic positionOf(const IRModule &module, const std::string &name) {
  Operation *op = SymbolTable::lookupSymbolIn(module.get(), name);
  return op ? resolveLocation(op->getLoc()) : Diagnostic();
}

bool hasSource(const IRModule &module, const std::string &name) {
  auto device = dyn_cast_or_null<gpu::GPUModuleOp>(SymbolTable::lookupSymbolIn(module.get(), name));
  if (!device)
    return false;
  bool any = false;
  for (auto function : device.getOps<FunctionOpInterface>())
    if (function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName())) {
      if (function.isExternal())
        return false;
      any = true;
    }
  return any;
}

} // namespace offload
