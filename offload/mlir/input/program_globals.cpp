//===- program_globals.cpp - offload-program-globals ----------------------===//
//
// Variables of the ml_program dialect, which programs of PyTorch have for seeds and running means, become
// memory: ml_program.global is memref.global. A load is a copy, because a later store must not change what
// was loaded, and bufferization 22 gives both the variable's own memory; a store copies the tensor, of which
// bufferization 22 stores a new buffer that nothing has written where the tensor is used again. What never
// changes is a constant.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Of a variable; none where it cannot be memory.
MemRefType memoryOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.hasStaticShape() && !tensor.getEncoding()
               ? MemRefType::get(tensor.getShape(), tensor.getElementType())
               : MemRefType();
  return MemRefType::isValidElementType(type) && !isa<TensorType>(type) ? MemRefType::get({}, type)
                                                                        : MemRefType();
}

/// What a variable begins with, as memref.global has it; none where nothing in this program says so.
ElementsAttr beginning(ml_program::GlobalOp global) {
  auto value = dyn_cast_if_present<TypedAttr>(global.getValueAttr());
  if (!value || value.getType() != global.getType())
    return {};
  if (auto elements = dyn_cast<ElementsAttr>(value))
    return elements;
  auto scalar = RankedTensorType::get({}, global.getType());
  return isa<IntegerAttr, FloatAttr>(value) ? DenseElementsAttr::get(scalar, value) : ElementsAttr();
}

LogicalResult check(ml_program::GlobalOp global) {
  if (!memoryOf(global.getType()))
    return global.emitError("a variable of type ")
           << global.getType()
           << " has no memory of its own: give it a tensor of static shape, a number or an integer";
  if (!beginning(global))
    return global.emitError("a variable without a value of its own type is not defined here: give it one");
  return success();
}

struct ProgramGlobals : public PassWrapper<ProgramGlobals, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ProgramGlobals)

  StringRef getArgument() const final { return "offload-program-globals"; }
  StringRef getDescription() const final { return "Make memory of variables of the ml_program dialect"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, bufferization::BufferizationDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    SmallVector<ml_program::GlobalOp> globals;
    SmallVector<Operation *> uses;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::GPUModuleOp>(op))
        return WalkResult::skip();
      if (auto global = dyn_cast<ml_program::GlobalOp>(op))
        globals.push_back(global);
      else if (isa<ml_program::GlobalLoadOp, ml_program::GlobalLoadConstOp, ml_program::GlobalStoreOp>(op))
        uses.push_back(op);
      return WalkResult::advance();
    });
    for (ml_program::GlobalOp global : globals)
      if (failed(check(global)))
        return signalPassFailure();
    SymbolTableCollection symbols;
    for (Operation *use : uses)
      rewrite(use, symbols);
    for (ml_program::GlobalOp global : globals) {
      OpBuilder b(global);
      memref::GlobalOp::create(b, global.getLoc(), global.getSymName(), global.getSymVisibilityAttr(),
                               memoryOf(global.getType()), beginning(global), !global.getIsMutable(),
                               /*alignment=*/IntegerAttr());
      global.erase();
    }
  }

private:
  void rewrite(Operation *op, SymbolTableCollection &symbols) {
    auto name = op->getAttrOfType<SymbolRefAttr>("global");
    auto global = symbols.lookupNearestSymbolFrom<ml_program::GlobalOp>(op, name);
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (op->getNumResults() && !global.getIsMutable()) {
      ElementsAttr value = beginning(global);
      bool whole = isa<TensorType>(global.getType());
      auto constant = cast<TypedAttr>(whole ? Attribute(value) : global.getValueAttr());
      op->replaceAllUsesWith(arith::ConstantOp::create(b, loc, constant));
      return op->erase();
    }
    MemRefType type = memoryOf(global.getType());
    Value memory = memref::GetGlobalOp::create(b, loc, type, name.getLeafReference());
    auto tensor = dyn_cast<RankedTensorType>(global.getType());
    if (auto store = dyn_cast<ml_program::GlobalStoreOp>(op)) {
      if (tensor) {
        auto layout = StridedLayoutAttr::get(&getContext(), ShapedType::kDynamic,
                                             SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic));
        auto any = MemRefType::get(type.getShape(), type.getElementType(), layout);
        Value value = bufferization::ToBufferOp::create(b, loc, any, store.getValue(), /*read_only=*/true);
        memref::CopyOp::create(b, loc, value, memory);
      } else {
        memref::StoreOp::create(b, loc, store.getValue(), memory, ValueRange());
      }
    } else if (tensor) {
      Value now = bufferization::ToTensorOp::create(b, loc, tensor, memory, /*restrict=*/true);
      op->replaceAllUsesWith(
          bufferization::AllocTensorOp::create(b, loc, tensor, ValueRange(), /*copy=*/now));
    } else {
      op->replaceAllUsesWith(memref::LoadOp::create(b, loc, memory, ValueRange()));
    }
    op->erase();
  }
};

} // namespace

void registerProgramGlobalsPass() { PassRegistration<ProgramGlobals>(); }

} // namespace offload
