//===- check_described.cpp - What programs say of their functions ---------===//
//
// The attributes that become signatures of Python. Anything else in them would get lost without a word.
//
//===----------------------------------------------------------------------===//

#include "input/check_described.h"
#include "names.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
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

/// The first of our attributes that means nothing where it stands, misspelt for instance.
std::optional<std::string> whyNotKnown(ArrayRef<NamedAttribute> attributes, StringRef where,
                                       ArrayRef<StringRef> known) {
  for (NamedAttribute attribute : attributes)
    if (StringRef name = attribute.getName();
        name.starts_with("offload.") && !llvm::is_contained(known, name))
      return (name + " has no meaning on " + where + ": a function has " + kDoc + ", an argument " +
              kArgumentName + " and " + kOptional)
          .str();
  return std::nullopt;
}

std::optional<std::string> whyNotKnown(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function && !isa<ModuleOp, gpu::GPUModuleOp, gpu::LaunchOp>(op))
    return std::nullopt;
  std::string where = "'" + op->getName().getStringRef().str() + "'";
  SmallVector<StringRef> known = {kDoc, kOnTensors, kEqualSizes, kResultSizes};
  if (!function)
    known = {kReady}; // this one, kOnTensors, kEqualSizes, kResultSizes and kReadOnly are our own, in the
                      // text of a stage
  if (auto why = whyNotKnown(llvm::to_vector(op->getDiscardableAttrs()), where, known))
    return why;
  for (unsigned i = 0, e = function ? function.getNumArguments() : 0; i < e; ++i)
    if (auto why = whyNotKnown(function.getArgAttrs(i), "an argument", {kArgumentName, kOptional, kReadOnly}))
      return why;
  for (unsigned i = 0, e = function ? function.getNumResults() : 0; i < e; ++i)
    if (auto why = whyNotKnown(function.getResultAttrs(i), "a result", {}))
      return why;
  return std::nullopt;
}

} // namespace

std::optional<std::string> whyNotDescribed(Operation *op) {
  if (std::optional<std::string> why = whyNotKnown(op))
    return why;
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
