//===- check_types.cpp - Types that no program can have -------------------===//
//
// Types and memory spaces that no lowering of MLIR 22 has a form for, on any target. What single targets lack
// stands in device/check_kernels.cpp.
//
//===----------------------------------------------------------------------===//

#include "input/check_types.h"
#include "device/vendor_rules.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace offload {
namespace {

template <typename T> std::string spelled(T item) {
  std::string text;
  llvm::raw_string_ostream(text) << item;
  return text;
}

/// Calls `visit` with each type of an operation: of its operands, results, block arguments, and those that
/// its attributes name (a function's signature, a global's memory).
void eachType(Operation *op, function_ref<void(Type)> visit) {
  llvm::for_each(op->getOperandTypes(), visit);
  llvm::for_each(op->getResultTypes(), visit);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::for_each(block.getArgumentTypes(), visit);
  for (NamedAttribute attribute : op->getAttrs())
    if (auto type = dyn_cast<TypeAttr>(attribute.getValue()))
      visit(type.getValue());
}

/// Numbers are those of LLVM's code generators; the last is that of strided buffers.
constexpr int64_t kLastSpace = 9;

std::optional<std::string> whyNotSpace(Attribute space, Operation *op) {
  if (!space || isa<gpu::AddressSpaceAttr>(space))
    return std::nullopt;
  if (auto number = dyn_cast<IntegerAttr>(space)) {
    if (number.getValue().isNonNegative() && number.getValue().sle(kLastSpace))
      return std::nullopt;
  } else if (!ownerOf(space.getDialect().getNamespace()).empty() &&
             (op->getParentOfType<gpu::GPUModuleOp>() || op->getParentOfType<gpu::LaunchOp>())) {
    return std::nullopt;
  }
  return "memory space " + spelled(space) +
         " is unknown here: write #gpu.address_space<global>, <workgroup> or <private>, or their numbers 1, "
         "3 and 5, or none";
}

std::optional<std::string> whyNot(Type type, Operation *op) {
  if (isa<TensorType>(type)) {
    auto ranked = dyn_cast<RankedTensorType>(type);
    bool sparse =
        ranked && ranked.getEncoding() && ranked.getEncoding().getDialect().getNamespace() == "sparse_tensor";
    // Others of host code have memory by now, unless there is one with an encoding, which is the one to name.
    if (ranked && !ranked.getEncoding() && !op->getParentOfType<gpu::GPUModuleOp>())
      return std::nullopt;
    return sparse
               ? "sparse tensors are not given memory here: bufferize the program first, for instance with "
                 "mlir-opt --linalg-generalize-named-ops "
                 "--sparsification-and-bufferization=parallelization-strategy=any-storage-outer-loop "
                 "--sparse-storage-specifier-to-llvm; where shapes are static, --sparse-assembler before "
                 "these makes "
                 "arrays of a function's sparse arguments"
               : "tensors of kernels, and those with an encoding, are not given memory here: use memrefs";
  }
  if (isa<TupleType, NoneType>(type))
    return "has a value of type " + spelled(type) +
           ", which code for processors cannot have: pass the parts one by one";
  if (isa<FloatTF32Type, Float128Type, LLVM::LLVMPPCFP128Type, LLVM::LLVMX86AMXType>(type))
    return "has a value of type " + spelled(type) +
           ", which code for processors cannot have: convert to f32 or f64";
  if (type.getDialect().getNamespace() == "quant")
    return "has a value of type " + spelled(type) +
           ", which is not lowered here: make it numbers of its storage type first, for instance with "
           "mlir-opt "
           "--lower-quant-ops --strip-func-quant-types";
  if (auto memref = dyn_cast<BaseMemRefType>(type))
    if (auto why = whyNotSpace(memref.getMemorySpace(), op))
      return why;
  int64_t offset;
  SmallVector<int64_t> strides;
  if (auto memref = dyn_cast<MemRefType>(type); memref && failed(memref.getStridesAndOffset(strides, offset)))
    return "a memref has a layout without strides, which has no descriptor: normalize the program first, for "
           "instance with mlir-opt --normalize-memrefs";
  return std::nullopt;
}

} // namespace

std::optional<std::string> whyNotTyped(Operation *op) {
  std::optional<std::string> found;
  eachType(op, [&](Type type) {
    if (!found)
      type.walk([&](Type each) {
        found = whyNot(each, op);
        return found ? WalkResult::interrupt() : WalkResult::advance();
      });
  });
  return found;
}

} // namespace offload
