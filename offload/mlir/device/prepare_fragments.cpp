//===- prepare_fragments.cpp - Element-wise operations on fragments ---------===//
//
// A fragment of a matrix lies in registers, a struct of LLVM: one with several elements holds them as a
// vector or packed in an integer. MLIR 22 ends the process at any other operation than addf, mulf, divf, maxf
// and minf, and makes invalid code of maxf and minf of f16.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace offload {
namespace {

using Operation2 = Value (*)(OpBuilder &, Location, Value, Value);

template <typename Op> Value apply(OpBuilder &b, Location loc, Value x, Value y) {
  return Op::create(b, loc, x, y);
}

Value negated(OpBuilder &b, Location loc, Value x) {
  if (isa<FloatType>(getElementTypeOrSelf(x.getType())))
    return LLVM::FNegOp::create(b, loc, x);
  return LLVM::SubOp::create(b, loc, LLVM::ZeroOp::create(b, loc, x.getType()), x);
}

/// Of two operands; null for the others.
Operation2 operationOf(gpu::MMAElementwiseOp kind) {
  switch (kind) {
  case gpu::MMAElementwiseOp::ADDF:
    return apply<LLVM::FAddOp>;
  case gpu::MMAElementwiseOp::SUBF:
    return apply<LLVM::FSubOp>;
  case gpu::MMAElementwiseOp::MULF:
    return apply<LLVM::FMulOp>;
  case gpu::MMAElementwiseOp::DIVF:
    return apply<LLVM::FDivOp>;
  case gpu::MMAElementwiseOp::MAXF:
    return apply<LLVM::MaximumOp>;
  case gpu::MMAElementwiseOp::MINF:
    return apply<LLVM::MinimumOp>;
  case gpu::MMAElementwiseOp::ADDI:
    return apply<LLVM::AddOp>;
  case gpu::MMAElementwiseOp::SUBI:
    return apply<LLVM::SubOp>;
  case gpu::MMAElementwiseOp::MULI:
    return apply<LLVM::MulOp>;
  case gpu::MMAElementwiseOp::DIVS:
    return apply<LLVM::SDivOp>;
  case gpu::MMAElementwiseOp::DIVU:
    return apply<LLVM::UDivOp>;
  default:
    return nullptr;
  }
}

bool isOfFloats(gpu::MMAElementwiseOp kind) {
  using Kind = gpu::MMAElementwiseOp;
  return llvm::is_contained(
      {Kind::ADDF, Kind::SUBF, Kind::MULF, Kind::DIVF, Kind::MAXF, Kind::MINF, Kind::NEGATEF, Kind::EXTF},
      kind);
}

/// What a register of type `held` holds of elements of type `element`.
Type contentOf(Type held, Type element) {
  Type plain =
      element.isInteger() ? IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth()) : element;
  if (getElementTypeOrSelf(held) == plain)
    return held;
  int64_t count = held.getIntOrFloatBitWidth() / plain.getIntOrFloatBitWidth();
  return count == 1 ? plain : VectorType::get(count, plain);
}

LogicalResult lower(gpu::SubgroupMmaElementwiseOp op) {
  gpu::MMAElementwiseOp kind = op.getOpType();
  auto type = cast<gpu::MMAMatrixType>(op.getType());
  StringRef name = gpu::stringifyMMAElementwiseOp(kind);
  if (kind == gpu::MMAElementwiseOp::EXTF)
    return op.emitError(
        "'extf' has no lowering: which elements a thread holds differs between the types of a "
        "fragment; store the matrix to workgroup memory and extend it there");
  if (isOfFloats(kind) != isa<FloatType>(type.getElementType()))
    return op.emitError("'") << name << "' is not for fragments of " << type.getElementType();
  Operation2 operation = operationOf(kind);
  if (op.getArgs().size() != (operation ? 2 : 1))
    return op.emitError("'") << name << "' takes " << (operation ? "two fragments" : "one fragment")
                             << ", not " << op.getArgs().size();

  OpBuilder b(op);
  Location loc = op.getLoc();
  auto registers = cast<LLVM::LLVMStructType>(convertMMAToLLVMType(type));
  SmallVector<Value> operands;
  for (Value argument : op.getArgs())
    operands.push_back(UnrealizedConversionCastOp::create(b, loc, registers, argument).getResult(0));
  Value result = LLVM::PoisonOp::create(b, loc, registers);
  for (auto [i, held] : llvm::enumerate(registers.getBody())) {
    Type content = contentOf(held, type.getElementType());
    SmallVector<Value> parts;
    for (Value operand : operands)
      parts.push_back(LLVM::BitcastOp::create(
          b, loc, content, LLVM::ExtractValueOp::create(b, loc, operand, ArrayRef<int64_t>(i))));
    Value part = operation ? operation(b, loc, parts[0], parts[1]) : negated(b, loc, parts[0]);
    result = LLVM::InsertValueOp::create(b, loc, result, LLVM::BitcastOp::create(b, loc, held, part),
                                         ArrayRef<int64_t>(i));
  }
  op.replaceAllUsesWith(UnrealizedConversionCastOp::create(b, loc, type, result).getResult(0));
  op.erase();
  return success();
}

} // namespace

LogicalResult lowerFragments(gpu::GPUModuleOp module) {
  WalkResult result = module.walk([](gpu::SubgroupMmaElementwiseOp op) { return WalkResult(lower(op)); });
  return failure(result.wasInterrupted());
}

} // namespace offload
