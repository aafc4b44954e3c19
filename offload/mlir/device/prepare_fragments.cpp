//===- prepare_fragments.cpp - Elements of fragments ------------------------===//
//
// A fragment of a matrix lies in registers, a struct of LLVM: one with several elements holds them as a
// vector or packed in an integer. MLIR 22 ends the process at any other operation than addf, mulf, divf, maxf
// and minf, and makes invalid code of maxf and minf of f16. A fragment of one register is a struct there,
// while LLVM's function that loads it gives the register itself.
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"
#include "device/prepare_device.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/IR/Intrinsics.h"

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

/// How LLVM holds a fragment: a struct of registers, or the register itself where there is one (f64).
struct Registers {
  explicit Registers(gpu::MMAMatrixType fragment) : type(convertMMAToLLVMType(fragment)) {
    auto several = dyn_cast<LLVM::LLVMStructType>(type);
    llvm::append_range(held, several ? several.getBody() : ArrayRef<Type>(type));
    isStruct = bool(several);
  }
  Value read(OpBuilder &b, Location loc, Value from, size_t i) const {
    return isStruct ? LLVM::ExtractValueOp::create(b, loc, from, ArrayRef<int64_t>(int64_t(i))) : from;
  }
  Value write(OpBuilder &b, Location loc, Value to, Value part, size_t i) const {
    return isStruct ? LLVM::InsertValueOp::create(b, loc, to, part, ArrayRef<int64_t>(int64_t(i))) : part;
  }

  Type type;
  SmallVector<Type> held;
  bool isStruct;
};

LogicalResult lower(gpu::SubgroupMmaElementwiseOp op) {
  if (op.getOpType() == gpu::MMAElementwiseOp::EXTF)
    return op.emitError(
        "'extf' has no lowering: which elements a thread holds differs between the types of a "
        "fragment; store the matrix to workgroup memory and extend it there");
  if (failed(checkElementwise(op)))
    return failure();
  gpu::MMAElementwiseOp kind = op.getOpType();
  auto type = cast<gpu::MMAMatrixType>(op.getType());
  Operation2 operation = operationOf(kind);

  OpBuilder b(op);
  Location loc = op.getLoc();
  Registers registers(type);
  SmallVector<Value> operands;
  for (Value argument : op.getArgs())
    operands.push_back(UnrealizedConversionCastOp::create(b, loc, registers.type, argument).getResult(0));
  Value result = LLVM::PoisonOp::create(b, loc, registers.type);
  for (auto [i, held] : llvm::enumerate(registers.held)) {
    Type content = contentOf(held, type.getElementType());
    SmallVector<Value> parts;
    for (Value operand : operands)
      parts.push_back(LLVM::BitcastOp::create(b, loc, content, registers.read(b, loc, operand, i)));
    Value part = operation ? operation(b, loc, parts[0], parts[1]) : negated(b, loc, parts[0]);
    result = registers.write(b, loc, result, LLVM::BitcastOp::create(b, loc, held, part), i);
  }
  op.replaceAllUsesWith(UnrealizedConversionCastOp::create(b, loc, type, result).getResult(0));
  op.erase();
  return success();
}

/// The registers of a fragment as a value of LLVM, or back.
Value converted(OpBuilder &b, Location loc, Value value, Type type) {
  return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

/// What is done with the element of a thread that has this number: its new value.
using Change = llvm::function_ref<Value(OpBuilder &, unsigned number, Value element)>;

/// Goes through the elements of a thread in the order of its registers; the changed fragment.
Value changeElements(OpBuilder &b, Location loc, Value fragment, Change change) {
  auto type = cast<gpu::MMAMatrixType>(fragment.getType());
  Registers registers(type);
  Value result = converted(b, loc, fragment, registers.type);
  unsigned number = 0;
  for (auto [i, held] : llvm::enumerate(registers.held)) {
    Type content = contentOf(held, type.getElementType());
    Value part = LLVM::BitcastOp::create(b, loc, content, registers.read(b, loc, result, i));
    auto vector = dyn_cast<VectorType>(content);
    for (int64_t j = 0; j < (vector ? vector.getNumElements() : 1); ++j) {
      Value index = vector ? LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(int32_t(j))) : Value();
      Value element = vector ? LLVM::ExtractElementOp::create(b, loc, part, index).getResult() : part;
      Value changed = change(b, number++, element);
      if (changed != element)
        part = vector ? LLVM::InsertElementOp::create(b, loc, part, changed, index).getResult() : changed;
    }
    result = registers.write(b, loc, result, LLVM::BitcastOp::create(b, loc, held, part), i);
  }
  return converted(b, loc, result, type);
}

/// Whether each element of the matrix is one thread's, and has a type that others can compute with.
LogicalResult checkOwned(Operation *op, gpu::MMAMatrixType type, ValueRange indices) {
  unsigned count = 0;
  for (Type held : Registers(type).held) {
    auto vector = dyn_cast<VectorType>(contentOf(held, type.getElementType()));
    count += vector ? unsigned(vector.getNumElements()) : 1;
  }
  if (indices.size() != 1)
    return op->emitError("'") << op->getName()
                              << "' takes one index here, the number of an element that a thread holds";
  if (count * 32 != unsigned(type.getShape()[0] * type.getShape()[1]) ||
      (type.getElementType().isInteger() && !type.getElementType().isSignlessInteger()))
    return op->emitError("'")
           << op->getName() << "' has no lowering for " << type
           << ": threads hold its elements more than once, or of a type that no operation takes; "
              "a result (COp) of f16, f32 or i32 has one";
  return success();
}

Value isNumber(OpBuilder &b, Location loc, Value index, unsigned number) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index,
                               arith::ConstantIndexOp::create(b, loc, number));
}

LogicalResult lower(gpu::SubgroupMmaExtractThreadLocalOp op) {
  auto type = cast<gpu::MMAMatrixType>(op.getMatrix().getType());
  if (failed(checkOwned(op, type, op.getIndices())))
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value index = op.getIndices().front(), found;
  changeElements(b, loc, op.getMatrix(), [&](OpBuilder &b, unsigned number, Value element) {
    found = found
                ? arith::SelectOp::create(b, loc, isNumber(b, loc, index, number), element, found).getResult()
                : element;
    return element;
  });
  op.replaceAllUsesWith(found);
  op.erase();
  return success();
}

LogicalResult lower(gpu::SubgroupMmaInsertThreadLocalOp op) {
  auto type = cast<gpu::MMAMatrixType>(op.getMatrix().getType());
  if (failed(checkOwned(op, type, op.getIndices())))
    return failure();
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value index = op.getIndices().front();
  op.replaceAllUsesWith(
      changeElements(b, loc, op.getMatrix(), [&](OpBuilder &b, unsigned number, Value element) {
        return arith::SelectOp::create(b, loc, isNumber(b, loc, index, number), op.getValue(), element)
            .getResult();
      }));
  op.erase();
  return success();
}

} // namespace

LogicalResult checkElementwise(gpu::SubgroupMmaElementwiseOp op) {
  gpu::MMAElementwiseOp kind = op.getOpType();
  Type element = cast<gpu::MMAMatrixType>(op.getType()).getElementType();
  StringRef name = gpu::stringifyMMAElementwiseOp(kind);
  if (isOfFloats(kind) != isa<FloatType>(element))
    return op.emitError("'") << name << "' is not for fragments of " << element;
  bool extends = kind == gpu::MMAElementwiseOp::EXTF;
  for (Value argument : op.getArgs()) {
    auto given = cast<gpu::MMAMatrixType>(argument.getType());
    auto made = cast<gpu::MMAMatrixType>(op.getType());
    bool isWider = isa<FloatType>(given.getElementType()) &&
                   given.getElementType().getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth();
    if (given.getShape() != made.getShape() || given.getOperand() != made.getOperand() ||
        (extends ? !isWider : given.getElementType() != element))
      return op.emitError("'") << name << "' makes " << made << " of " << given
                               << ": shape and operand have to be the same, and the elements "
                               << (extends ? "wider" : "too");
  }
  bool isOfTwo = operationOf(kind);
  if (op.getArgs().size() != (isOfTwo ? 2 : 1))
    return op.emitError("'") << name << "' takes " << (isOfTwo ? "two fragments" : "one fragment") << ", not "
                             << op.getArgs().size();
  return success();
}

LogicalResult lowerFragments(gpu::GPUModuleOp module) {
  settleLayouts(module); // by operations that are lowered here
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    if (auto each = dyn_cast<gpu::SubgroupMmaElementwiseOp>(op))
      return lower(each);
    if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(op))
      return lower(extract);
    if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(op))
      return lower(insert);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void settleFragmentLoads(Operation *root) {
  root->walk([](NVVM::WMMALoadOp op) {
    auto registers = dyn_cast<LLVM::LLVMStructType>(op.getType());
    if (!registers || registers.getBody().size() != 1)
      return;
    llvm::Intrinsic::ID id = NVVM::WMMALoadOp::getIntrinsicID(int(op.getM()), int(op.getN()), int(op.getK()),
                                                              op.getLayout(), op.getEltype(), op.getFrag());
    OpBuilder b(op);
    auto load = LLVM::CallIntrinsicOp::create(b, op.getLoc(), registers.getBody().front(),
                                              b.getStringAttr(llvm::Intrinsic::getBaseName(id)),
                                              ValueRange{op.getPtr(), op.getStride()});
    Value result = LLVM::PoisonOp::create(b, op.getLoc(), registers);
    op.replaceAllUsesWith(
        LLVM::InsertValueOp::create(b, op.getLoc(), result, load.getResult(0), ArrayRef<int64_t>{0})
            .getResult());
    op.erase();
  });
}

} // namespace offload
