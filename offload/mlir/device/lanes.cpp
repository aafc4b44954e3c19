//===- lanes.cpp - How the threads of a subgroup see each other, per target //
//
// The only primitive that moves data between threads is reading another lane's word; everything else is built
// on it, once for all targets. This file has it for each vendor, and the cutting of values into words.
//
//===----------------------------------------------------------------------===//

#include "device/lanes.h"
#include "names.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, type, value);
}

Value callIntrinsic(OpBuilder &b, Location loc, Type result, StringRef name, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), arguments).getResult(0);
}

struct NvidiaLanes : Lanes {
  explicit NvidiaLanes(unsigned number) : Lanes(32, 32), number(number) {}

  Value active(OpBuilder &b, Operation *anchor) const override {
    return callIntrinsic(b, anchor->getLoc(), b.getI32Type(), "llvm.nvvm.activemask", {});
  }
  Value read(OpBuilder &b, Operation *anchor, Value word, Value source, Value takingPart) const override {
    Location loc = anchor->getLoc();
    if (!takingPart)
      takingPart = constant(b, loc, b.getI32Type(), -1);
    Value clamp = constant(b, loc, b.getI32Type(), 31);
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), takingPart, word, source, clamp, NVVM::ShflKind::idx,
                                UnitAttr());
  }
  bool readsAcross(gpu::ShuffleMode mode) const override { return mode != gpu::ShuffleMode::IDX; }
  Value readAcross(OpBuilder &b, Operation *anchor, Value word, gpu::ShuffleMode mode,
                   unsigned offset) const override {
    bool up = mode == gpu::ShuffleMode::UP;
    NVVM::ShflKind kind = up                               ? NVVM::ShflKind::up
                          : mode == gpu::ShuffleMode::DOWN ? NVVM::ShflKind::down
                                                           : NVVM::ShflKind::bfly;
    Location loc = anchor->getLoc();
    Type i32 = b.getI32Type();
    Value all = constant(b, loc, i32, -1), distance = constant(b, loc, i32, offset);
    Value clamp = constant(b, loc, i32, up ? 0 : 31);
    return NVVM::ShflOp::create(b, loc, i32, all, word, distance, clamp, kind, UnitAttr());
  }
  bool hasSets() const override { return true; }
  bool reduces(gpu::SubgroupReduceOp op) const override {
    using Kind = gpu::AllReduceOperation;
    Kind kind = op.getOp();
    bool known = kind == Kind::ADD || kind == Kind::MINSI || kind == Kind::MAXSI || kind == Kind::AND ||
                 kind == Kind::OR || kind == Kind::XOR;
    return number >= 80 && known && op.getUniform() && !op.getClusterSize() && op.getType().isInteger(32);
  }
  bool hasClusters() const override { return number >= 90; }
  bool hasAssertions() const override { return true; }
  unsigned mostPrinted() const override { return 32; } // after that CUDA prints the format itself
  bool printsStars() const override { return false; }

  unsigned number; // of the chip: 90 is sm_90
};

/// `generation` is 9 for CDNA and what came before, 10 and more for RDNA.
struct AmdLanes : Lanes {
  AmdLanes(unsigned size, unsigned generation) : Lanes(size, 32), generation(generation) {}

  Value active(OpBuilder &b, Operation *anchor) const override {
    Location loc = anchor->getLoc();
    return ROCDL::BallotOp::create(b, loc, b.getIntegerType(size), constant(b, loc, b.getI1Type(), 1));
  }

  Value read(OpBuilder &b, Operation *anchor, Value word, Value source, Value) const override {
    Location loc = anchor->getLoc();
    Type i32 = b.getI32Type();
    if (size == 32 || generation < 10) {
      Value address = arith::ShLIOp::create(b, loc, source, constant(b, loc, i32, 2));
      return ROCDL::DsBpermuteOp::create(b, loc, i32, address, word);
    }
    // Waves of 64 threads run as two halves there, and ds_bpermute stays within a half.
    if (generation >= 11)
      return callIntrinsic(b, loc, i32, "llvm.amdgcn.wave.shuffle", {word, source});
    // No instruction exchanges the halves, and what LLVM 22 makes of that intrinsic crashes it.
    Value result = word;
    for (unsigned i = 0; i < size; ++i) {
      Value number = constant(b, loc, i32, i);
      Value there = ROCDL::ReadlaneOp::create(b, loc, i32, word, number);
      Value wanted = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, source, number);
      result = arith::SelectOp::create(b, loc, wanted, there, result);
    }
    return result;
  }

  /// LLVM refuses what the lowering makes of 48 or 72 bits, a cast to words, and reads vectors of halves and
  /// words from a lane, but of no bytes, and no single one.
  bool exchangesWords(Operation *op) const override {
    auto vector = op->getNumOperands() ? dyn_cast<VectorType>(op->getOperand(0).getType()) : VectorType();
    Type element = vector ? vector.getElementType() : Type();
    if (isa<amdgpu::SwizzleBitModeOp, amdgpu::PermlaneSwapOp>(op)) {
      Type type = vector ? element : op->getOperand(0).getType();
      uint64_t bits = uint64_t(vector ? vector.getNumElements() : 1) * type.getIntOrFloatBitWidth();
      return bits > wordBits && bits % wordBits;
    }
    if (!vector || !isa<ROCDL::ReadlaneOp, ROCDL::ReadfirstlaneOp>(op))
      return false;
    unsigned width = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
    return width < 16 || vector.getNumElements() == 1 || vector.getNumElements() * width % wordBits;
  }

  unsigned generation;
};

/// Calls of the functions of names.h. Warps have the size that the target's option says, whatever the
/// processor.
struct HostLanes : Lanes {
  explicit HostLanes(unsigned size) : Lanes(size, 64) {}

  static Value call(OpBuilder &b, Operation *anchor, StringRef name, Type result, ValueRange arguments) {
    auto module = anchor->getParentOfType<gpu::GPUModuleOp>();
    FailureOr<LLVM::LLVMFuncOp> callee =
        LLVM::lookupOrCreateFn(b, module, name, llvm::to_vector(arguments.getTypes()), result);
    return LLVM::CallOp::create(b, anchor->getLoc(), *callee, arguments).getResult();
  }

  Value active(OpBuilder &b, Operation *anchor) const override {
    return call(b, anchor, kActiveLanes, b.getIntegerType(size), {});
  }
  Value read(OpBuilder &b, Operation *anchor, Value word, Value source, Value) const override {
    return call(b, anchor, kExchange, b.getI64Type(), {word, source});
  }
  bool hasClusters() const override { return true; }
  bool printsByLibrary() const override { return true; }
};

} // namespace

Value Lanes::lane(OpBuilder &b, Operation *anchor) const {
  Location loc = anchor->getLoc();
  Value lane = gpu::LaneIdOp::create(b, loc, b.getIndexType(), /*upper_bound=*/b.getIndexAttr(size));
  return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), lane);
}

void addVendorDialect(DialectRegistry &registry, StringRef target) {
  if (target == "nvvm")
    registry.insert<NVVM::NVVMDialect>();
  else if (target == "rocdl")
    registry.insert<ROCDL::ROCDLDialect>();
}

std::unique_ptr<Lanes> makeLanes(StringRef target, unsigned size, StringRef chip) {
  unsigned number = 0;
  if (target == "host" && (size == 32 || size == 64))
    return std::make_unique<HostLanes>(size);
  if (target == "nvvm" && size == 32) {
    chip.consume_front("sm_");
    chip.take_while(llvm::isDigit).getAsInteger(10, number);
    return std::make_unique<NvidiaLanes>(number);
  }
  if (target == "rocdl" && (size == 32 || size == 64)) {
    // gfx942 is 9, gfx1100 is 11, gfx12-generic is 12.
    chip.consume_front("gfx");
    StringRef digits = chip.take_while(llvm::isHexDigit);
    bool generic = chip.contains("generic");
    (generic ? digits : digits.drop_back(2)).getAsInteger(10, number);
    return std::make_unique<AmdLanes>(size, number);
  }
  return nullptr;
}

Value throughWords(OpBuilder &b, Location loc, const Lanes &lanes, Value value,
                   llvm::function_ref<Value(Value)> each) {
  Type type = value.getType();
  if (auto vector = dyn_cast<VectorType>(type)) {
    Type element = vector.getElementType();
    int64_t count = vector.getNumElements();
    if (vector.isScalable() || !element.isIntOrIndexOrFloat())
      return {};
    auto flat = VectorType::get({count}, element);
    Value row = vector.getRank() == 1 ? value : vector::ShapeCastOp::create(b, loc, flat, value).getResult();
    uint64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
    unsigned word = (uint64_t(count) * bits) % lanes.wordBits ? 32 : lanes.wordBits;
    bool packs =
        (bits == 8 || bits == 16 || bits == 32) && bits < word && (uint64_t(count) * bits) % word == 0;
    auto packed =
        packs ? VectorType::get({int64_t(uint64_t(count) * bits / word)}, b.getIntegerType(word)) : flat;
    Value from = packs ? vector::BitCastOp::create(b, loc, packed, row).getResult() : row, to = from;
    for (int64_t i = 0; i < packed.getDimSize(0); ++i) {
      Value part = throughWords(b, loc, lanes, vector::ExtractOp::create(b, loc, from, i), each);
      to = vector::InsertOp::create(b, loc, part, to, i);
    }
    to = packs ? vector::BitCastOp::create(b, loc, flat, to).getResult() : to;
    return vector.getRank() == 1 ? to : vector::ShapeCastOp::create(b, loc, vector, to).getResult();
  }
  if (auto number = dyn_cast<ComplexType>(type)) {
    Type part = number.getElementType();
    Value re = throughWords(b, loc, lanes, complex::ReOp::create(b, loc, part, value), each);
    Value im = throughWords(b, loc, lanes, complex::ImOp::create(b, loc, part, value), each);
    return complex::CreateOp::create(b, loc, type, re, im);
  }
  if (type.isIndex()) {
    Value number = arith::IndexCastUIOp::create(b, loc, b.getI64Type(), value);
    return arith::IndexCastUIOp::create(b, loc, type, throughWords(b, loc, lanes, number, each));
  }
  if (isa<FloatType>(type)) {
    Value number = arith::BitcastOp::create(b, loc, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
    return arith::BitcastOp::create(b, loc, type, throughWords(b, loc, lanes, number, each));
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return {};
  Type word = b.getIntegerType(lanes.wordBits);
  if (integer == word)
    return each(value);
  if (integer.getWidth() < lanes.wordBits)
    return arith::TruncIOp::create(b, loc, integer, each(arith::ExtUIOp::create(b, loc, word, value)));
  unsigned words = (integer.getWidth() + lanes.wordBits - 1) / lanes.wordBits;
  Type wide = b.getIntegerType(words * lanes.wordBits);
  Value from = wide == integer ? value : arith::ExtUIOp::create(b, loc, wide, value).getResult(), to;
  for (unsigned i = 0; i < words; ++i) {
    Value place = constant(b, loc, wide, int64_t(i) * lanes.wordBits);
    Value part = arith::TruncIOp::create(b, loc, word, arith::ShRUIOp::create(b, loc, from, place));
    part = arith::ShLIOp::create(b, loc, arith::ExtUIOp::create(b, loc, wide, each(part)), place);
    to = to ? arith::OrIOp::create(b, loc, to, part).getResult() : part;
  }
  return wide == integer ? to : arith::TruncIOp::create(b, loc, integer, to).getResult();
}

} // namespace offload
