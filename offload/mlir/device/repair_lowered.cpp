//===- repair_lowered.cpp - offload-repair-lowered ------------------------===//
//
// What lowerings of MLIR 22 leave in the LLVM dialect that LLVM does not take, or leaves undefined:
//
// Atomic operations: see repair_atomics.cpp.
//
// Dynamic workgroup memory becomes an array without elements of the module's own. NVIDIA's assembler gives it
// a byte, and puts the module's other arrays behind that, where the dynamic memory lies. One that is from
// outside comes last, and may have any size. For AMD GPUs it would have the alignment of a byte, whatever is
// made of it, and begin right behind the others.
//
// The size of a block, where indices have 32 bits, is made of a call that gives 64. And the lowering of
// vectors, which comes first, knows indices and descriptors of 64 bits only: where others meet them, they are
// converted.
//
// Of inline PTX, what the text changes (rw) comes first among the operands and last among the registers; and
// where it is one value and the only one, MLIR does not let what follows use it.
//
// Products of sparse matrices of bf16 get floats, where LLVM's intrinsic has integers.
//
// vector.deinterleave becomes shuffles with a vector of no value, whose elements stay indices.
//
// A float becomes a number of one bit by way of one of 32: LLVM's code generators compare it with 0, 1 or -1
// instead, so that 1.5 was none on AMD GPUs, and NVIDIA's makes 1 of 0 and 0 of 1.
//
// What an author tells LLVM of a loop (`llvm.loop_annotation` on scf.for) ends up on its last branch, under
// that name, and LLVM IR takes it from the branch's own attribute alone.
//
// Constants of several dimensions are arrays of arrays, and LLVM has an object for each row: the weights of
// a network took it ten seconds. They become one array.
//
// A kernel with the name of a function of libm gets it back (see repair_math.cpp), and that function another
// one: spmd.cpp renames it once the kernel's own code is gone.
//
//===----------------------------------------------------------------------===//

#include "device/active_lanes.h"
#include "device/prepare_device.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// Of LLVM, on every GPU.
constexpr unsigned kWorkgroupSpace = 3;

/// As NVIDIA's lowering has it: what any access to this memory may ask for.
constexpr uint64_t kUsualAlignment = 16;

void shuffleOneType(LLVM::ShuffleVectorOp op) {
  Type type = op.getV1().getType();
  if (op.getV2().getType() == type || !op.getV2().getDefiningOp<LLVM::PoisonOp>())
    return;
  OpBuilder b(op);
  op.getV2Mutable().assign(LLVM::PoisonOp::create(b, op.getLoc(), type));
}

/// All dynamic memory of a block is one piece. NVIDIA's assembler begins it for each of its names at that
/// one's alignment: with different ones they would not be the same memory.
void takeFromOutside(Operation *module) {
  SmallVector<LLVM::GlobalOp> all;
  uint64_t alignment = kUsualAlignment;
  if (auto wanted = dyn_cast_or_null<IntegerAttr>(module->removeAttr(kDynamicAlignment)))
    alignment = std::max(alignment, wanted.getValue().getZExtValue());
  module->walk([&](LLVM::GlobalOp global) {
    auto array = dyn_cast<LLVM::LLVMArrayType>(global.getType());
    if (!array || array.getNumElements() != 0 || global.getAddrSpace() != kWorkgroupSpace)
      return;
    all.push_back(global);
    alignment = std::max(alignment, global.getAlignment().value_or(1));
  });
  for (LLVM::GlobalOp global : all) {
    global.setLinkage(LLVM::Linkage::External);
    global.setAlignment(alignment);
  }
}

/// AMD's block and grid sizes.
void widenSize(Operation *op) {
  StringRef name = op->getName().stripDialect();
  if (!(name.starts_with("workgroup.dim.") || name.starts_with("grid.dim.")) || op->getNumResults() != 1 ||
      !op->getResult(0).getType().isInteger(32))
    return;
  OpBuilder b(op);
  Operation *wide = b.clone(*op);
  wide->removeAttr("range");
  wide->getResult(0).setType(b.getI64Type());
  op->replaceAllUsesWith(
      ValueRange(LLVM::TruncOp::create(b, op->getLoc(), b.getI32Type(), wide->getResult(0)).getResult()));
  op->erase();
}

template <typename Conversion> void convertThroughWord(Conversion op) {
  Type type = op.getType();
  if (!getElementTypeOrSelf(type).isInteger(1))
    return;
  OpBuilder b(op);
  Type wide = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    wide = vector.clone(wide);
  Value converted = Conversion::create(b, op.getLoc(), wide, op.getArg());
  op.replaceAllUsesWith(LLVM::TruncOp::create(b, op.getLoc(), type, converted).getResult());
  op.erase();
}

/// From gfx950 on MLIR gives all of AMD's products bf16 as floats, and these, which are older, take its bits.
void takeBits(Operation *op) {
  StringRef name = op->getName().stripDialect();
  if (name != "smfmac.f32.16x16x32.bf16" && name != "smfmac.f32.32x32x16.bf16")
    return;
  OpBuilder b(op);
  for (OpOperand &operand : op->getOpOperands())
    if (auto vector = dyn_cast<VectorType>(operand.get().getType());
        vector && vector.getElementType().isBF16())
      operand.set(LLVM::BitcastOp::create(b, op->getLoc(), vector.clone(b.getI16Type()), operand.get()));
}

/// See offload-name-changed, which has named what the text changes.
void giveChanged(LLVM::InlineAsmOp text) {
  SmallVector<Value> changed, operands;
  for (Value operand : text.getOperands()) {
    auto named = operand.getDefiningOp<LLVM::InlineAsmOp>();
    (named && named->hasAttr(kChanged) ? changed : operands).push_back(operand);
  }
  if (changed.empty())
    return;
  operands.append(changed);
  text->setOperands(operands);
  // MLIR replaces several values, and one beside results.
  if (text->getResultTypes() == TypeRange(changed.front().getType()))
    changed.front().replaceAllUsesExcept(text->getResult(0), text);
  for (Value each : changed) {
    auto named = each.getDefiningOp<LLVM::InlineAsmOp>();
    each.replaceAllUsesWith(named.getOperand(0));
    named.erase();
  }
}

bool isIndex(Type type) { return isa<BaseMemRefType>(type) || getElementTypeOrSelf(type).isIndex(); }

/// A number, a vector of numbers, or a descriptor of such with other widths. Null where the types differ in
/// more than that.
Value withWidths(OpBuilder &b, Location loc, Value from, Type to) {
  Type type = from.getType();
  if (type == to)
    return from;
  if (LLVM::isCompatibleVectorType(type) == LLVM::isCompatibleVectorType(to) &&
      getElementTypeOrSelf(type).isSignlessInteger() && getElementTypeOrSelf(to).isSignlessInteger()) {
    if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() < getElementTypeOrSelf(to).getIntOrFloatBitWidth())
      return LLVM::SExtOp::create(b, loc, to, from);
    return LLVM::TruncOp::create(b, loc, to, from);
  }
  auto parts = [](Type whole) {
    SmallVector<Type> found;
    if (auto fields = dyn_cast<LLVM::LLVMStructType>(whole))
      llvm::append_range(found, fields.getBody());
    else if (auto array = dyn_cast<LLVM::LLVMArrayType>(whole))
      found.assign(array.getNumElements(), array.getElementType());
    return found;
  };
  SmallVector<Type> old = parts(type), wanted = parts(to);
  if (old.empty() || old.size() != wanted.size())
    return {};
  Value result = LLVM::PoisonOp::create(b, loc, to);
  for (auto [i, each] : llvm::enumerate(wanted)) {
    Value part = LLVM::ExtractValueOp::create(b, loc, from, ArrayRef<int64_t>{int64_t(i)});
    if (!(part = withWidths(b, loc, part, each)))
      return {};
    result = LLVM::InsertValueOp::create(b, loc, result, part, ArrayRef<int64_t>{int64_t(i)});
  }
  return result;
}

/// From one form of an index or a memref to another; memrefs of i1 become memrefs of i8 on the way.
void joinWidths(UnrealizedConversionCastOp op) {
  Type to = op.getNumResults() == 1 ? op.getResult(0).getType() : Type();
  if (op.getNumOperands() != 1 || !to || !LLVM::isCompatibleType(to))
    return;
  Value from = op.getOperand(0);
  while (isIndex(from.getType())) {
    auto made = from.getDefiningOp<UnrealizedConversionCastOp>();
    if (!made || made.getNumOperands() != 1)
      return;
    from = made.getOperand(0);
  }
  OpBuilder b(op);
  Value joined = LLVM::isCompatibleType(from.getType()) ? withWidths(b, op.getLoc(), from, to) : Value();
  if (!joined)
    return;
  op.getResult(0).replaceAllUsesWith(joined);
  op.erase();
}

LogicalResult giveNamesBack(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  for (auto function : llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>())) {
    StringRef name = function.getName();
    if (!function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) || !name.consume_back(kOwnFunction))
      continue;
    std::string own = name.str();
    Operation *libm = symbols.lookup(own);
    if ((libm && failed(symbols.rename(libm, kLibmFunction + own))) || failed(symbols.rename(function, own)))
      return failure();
  }
  return success();
}

void flattenConstant(LLVM::GlobalOp global) {
  auto value = dyn_cast_or_null<ElementsAttr>(global.getValueAttr());
  // MLIR's translation divides by the number of elements of a resource.
  if (isa_and_nonnull<DenseResourceElementsAttr>(value) && value.getNumElements() == 0)
    return global.setValueAttr(DenseElementsAttr::get(value.getShapedType(), ArrayRef<Attribute>()));
  if (!value || value.getShapedType().getRank() < 2 || value.isSplat())
    return;
  Type element = global.getType();
  for (int64_t i = 0; i < value.getShapedType().getRank(); ++i) {
    auto array = dyn_cast<LLVM::LLVMArrayType>(element);
    if (!array)
      return;
    element = array.getElementType();
  }
  ShapedType flat = value.getShapedType().clone({value.getNumElements()});
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    global.setValueAttr(dense.reshape(flat));
  else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    global.setValueAttr(DenseResourceElementsAttr::get(flat, resource.getRawHandle()));
  else
    return;
  global.setGlobalType(LLVM::LLVMArrayType::get(element, uint64_t(value.getNumElements())));
}

template <typename Branch> void takeAnnotation(Branch branch) {
  constexpr char kAnnotation[] = "llvm.loop_annotation";
  auto annotation = branch->template getAttrOfType<LLVM::LoopAnnotationAttr>(kAnnotation);
  if (!annotation)
    return;
  branch->removeAttr(kAnnotation);
  branch.setLoopAnnotationAttr(annotation);
}

struct RepairLowered : public PassWrapper<RepairLowered, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RepairLowered)

  RepairLowered() = default;
  RepairLowered(const RepairLowered &other) : PassWrapper(other) {}

  Option<std::string> deviceScope{*this, "device-scope", llvm::cl::desc("LLVM's name of a device's threads")};
  Option<std::string> blockScope{*this, "block-scope",
                                 llvm::cl::desc("and of a block's; neither for the CPU")};
  ListOption<std::string> atomics{*this, "atomics", llvm::cl::desc("attributes of atomic operations")};
  Option<bool> fences{*this, "fences", llvm::cl::desc("order atomic operations by fences")};

  StringRef getArgument() const final { return "offload-repair-lowered"; }
  StringRef getDescription() const final { return "Mend what lowerings of MLIR leave wrong"; }

  void runOnOperation() final {
    repairAtomics(getOperation(), {deviceScope, blockScope, *atomics, fences});
    takeFromOutside(getOperation());
    getOperation()->walk(widenSize);
    getOperation()->walk(joinWidths);
    getOperation()->walk(takeBits);
    getOperation()->walk(flattenConstant);
    getOperation()->walk(giveChanged);
    getOperation()->walk(shuffleOneType);
    getOperation()->walk(convertThroughWord<LLVM::FPToSIOp>);
    getOperation()->walk(convertThroughWord<LLVM::FPToUIOp>);
    getOperation()->walk(takeAnnotation<LLVM::BrOp>);
    getOperation()->walk(takeAnnotation<LLVM::CondBrOp>);
    settleFragmentLoads(getOperation());
    removeMarks(getOperation());
    if (auto module = dyn_cast<gpu::GPUModuleOp>(getOperation()); module && failed(giveNamesBack(module)))
      signalPassFailure();
  }
};

} // namespace

void registerRepairLoweredPass() { PassRegistration<RepairLowered>(); }

} // namespace offload
