//===- plain_names.cpp - Names inside of a device module ------------------===//
//
// Helpers and memory of kernels may have any name in MLIR; the assembly of some targets has names of letters,
// digits, _ and $ alone, and what operations become calls functions of the target's library by their names.
// Nobody outside of the module sees theirs, so they get names that are plain and nobody's.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "device/vendor_rules.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace offload {

static bool isPlain(char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; }

static bool isPlain(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return isPlain(c); });
}

bool isOfDeviceLibrary(StringRef name) {
  return llvm::is_contained({"printf", "fflush", "stdout", "vprintf", "__assertfail"}, name) ||
         name.starts_with("__nv_") || name.starts_with("__ocml_") || name.starts_with("__ockl_");
}

static bool isSeenOutside(Operation *op) {
  if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    return global.getInitializerRegion().empty() && !global.getValueAttr() && global.getAddrSpace() != 3;
  auto function = dyn_cast<FunctionOpInterface>(op);
  return function && (function.isExternal() || op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()));
}

LogicalResult givePlainNames(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  for (Operation &op : *module.getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol || isSeenOutside(&op) || (isPlain(symbol.getName()) && !isOfDeviceLibrary(symbol.getName())))
      continue;
    std::string name = "_";
    for (char c : symbol.getName())
      name += isPlain(c) ? c : '_';
    while (symbols.lookup(name))
      name += '_';
    if (failed(symbols.rename(&op, name)))
      return op.emitError("cannot be renamed to '") << name << "'";
  }
  return success();
}

} // namespace offload
