//===- check_described.cpp - What programs say of their functions ---------===//
//
// The attributes that become signatures of Python. Anything else in them would get lost without a word.
//
//===----------------------------------------------------------------------===//

#include "input/check_described.h"
#include "names.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

/// An argument that is left out is an empty array: that takes a size which may be 0, and no other array has
/// to be told from it.
std::optional<std::string> whyNotOptional(Attribute optional, Type type) {
  if (!isa<UnitAttr>(optional))
    return std::string(kOptional) + " has a value: write it alone";
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getNumDynamicDims() == 0)
    return "an argument that may be None becomes an empty array: it has to be a memref with a dynamic size, "
           "as memref<?xf32>";
  return std::nullopt;
}

} // namespace

std::optional<std::string> whyNotDescribed(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return std::nullopt;
  if (Attribute doc = op->getAttr(kDoc); doc && !isa<StringAttr>(doc))
    return std::string(kDoc) + " has to be a string";
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i) {
    std::string place = "argument " + std::to_string(i) + ": ";
    if (Attribute name = function.getArgAttr(i, kArgumentName); name && !isa<StringAttr>(name))
      return place + kArgumentName + " has to be a string";
    if (Attribute optional = function.getArgAttr(i, kOptional))
      if (std::optional<std::string> why = whyNotOptional(optional, function.getArgumentTypes()[i]))
        return place + *why;
  }
  return std::nullopt;
}

} // namespace offload
