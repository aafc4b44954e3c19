//===- unverified.cpp - Before MLIR verifies a program --------------------===//
//
// Verifiers of MLIR 22 ask for the width of types that have none: of an index, a complex number, a vector.
// That ends the process. amdgpu.dpp takes any type; vectors and numbers of other widths than those of
// registers become exchanges of words, as its lowering does with swizzle_bitmode. Operations that move memory
// to or from that of a block move integers and floats of whole bytes, and are refused for others.
//
//===----------------------------------------------------------------------===//

#include "device/unverified.h"
#include "device/lanes.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace offload {
namespace {

/// What the lowering moves as it is.
bool isRegister(Type type) {
  return type.isIntOrFloat() && llvm::is_contained({8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth());
}

LogicalResult cutIntoWords(amdgpu::DPPOp op) {
  Type type = op->getResult(0).getType();
  MLIRContext *context = op->getContext();
  context->getOrLoadDialect<arith::ArithDialect>();
  context->getOrLoadDialect<complex::ComplexDialect>();
  context->getOrLoadDialect<vector::VectorDialect>();
  OpBuilder b(op);
  std::unique_ptr<Lanes> lanes = makeLanes("rocdl", 64, "");
  SmallVector<Value> old;
  Value kept = throughWords(b, op.getLoc(), *lanes, op->getOperand(0), [&](Value word) {
    old.push_back(word);
    return word;
  });
  if (!kept)
    return op->emitError("'amdgpu.dpp' moves numbers and vectors of numbers, and no ") << type;
  size_t next = 0;
  Value result = throughWords(b, op.getLoc(), *lanes, op->getOperand(1), [&](Value word) {
    Operation *exchange = b.clone(*op);
    exchange->setOperands({old[next++], word});
    exchange->getResult(0).setType(word.getType());
    return exchange->getResult(0);
  });
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return success();
}

bool isOfBytes(Type type, int64_t count = 1) {
  return type.isIntOrFloat() && count * type.getIntOrFloatBitWidth() % 8 == 0;
}

/// A type that the operation does not move: one that has no width, which it asks for, or a part of a byte. In
/// memory of these every element takes a whole one, and what is moved counts bits.
Type notMoved(Operation *op) {
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types) {
      if (auto map = dyn_cast<nvgpu::TensorMapDescriptorType>(type))
        type = map.getTensor();
      if (auto memory = dyn_cast<MemRefType>(type); memory && !isOfBytes(memory.getElementType()))
        return memory.getElementType();
    }
  for (NamedAttribute attribute : op->getAttrs())
    if (auto type = dyn_cast<TypeAttr>(attribute.getValue())) {
      auto vector = dyn_cast<VectorType>(type.getValue());
      if (vector ? !isOfBytes(vector.getElementType(), vector.getNumElements()) : !isOfBytes(type.getValue()))
        return vector ? vector.getElementType() : type.getValue();
    }
  return {};
}

} // namespace

LogicalResult settleUnverified(ModuleOp module) {
  SmallVector<amdgpu::DPPOp> exchanges;
  WalkResult walked = module.walk([&](Operation *op) {
    if (auto exchange = dyn_cast<amdgpu::DPPOp>(op)) {
      // Types that differ, and what is missing, are the verifier's.
      if (op->getNumOperands() == 2 && op->getNumResults() == 1 && !isRegister(op->getResult(0).getType()) &&
          llvm::all_equal(
              {op->getOperand(0).getType(), op->getOperand(1).getType(), op->getResult(0).getType()}))
        exchanges.push_back(exchange);
      return WalkResult::advance();
    }
    if (!isa<amdgpu::GatherToLDSOp, amdgpu::TransposeLoadOp, nvgpu::LdMatrixOp, nvgpu::DeviceAsyncCopyOp,
             nvgpu::TmaAsyncLoadOp, nvgpu::TmaAsyncStoreOp, nvgpu::WarpgroupGenerateDescriptorOp>(op))
      return WalkResult::advance();
    Type type = notMoved(op);
    if (!type)
      return WalkResult::advance();
    op->emitError("'") << op->getName() << "' moves integers and floats of whole bytes, and no " << type
                       << ": let the memory have elements of such a type";
    return WalkResult::interrupt();
  });
  if (walked.wasInterrupted())
    return failure();
  for (amdgpu::DPPOp exchange : exchanges)
    if (failed(cutIntoWords(exchange)))
      return failure();
  return success();
}

} // namespace offload
