//===- wide_rows.cpp - Rows of memory, several neighbours at once ---------===//
//
// A GPU's memory gives most where each thread asks for 16 bytes at a time. That takes elements that are
// neighbours, and memory that begins at a multiple of 16 bytes, as all arrays do that are not a part of
// another one: it shows when a kernel runs.
//
// Where rows are long, all threads of a block work on one. Then few rows are on their way at the same time,
// and what is left of one in a cache or in registers is there when its threads come back to it.
//
//===----------------------------------------------------------------------===//

#include "loops/wide_rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kBytes = 16;     // that a thread takes of one array at once
constexpr int64_t kMostWidth = 8;  // elements
constexpr int64_t kMostPieces = 8; // of a row that a thread keeps for when it comes back to it
constexpr int64_t kMostOnce = 16;  // of one that it goes through once; also of several rows that it keeps
constexpr int64_t kMostCost = 512; // of the elements taken at once, and four times as much of all

int64_t bytesOf(Type type) { return canBeHandedOn(type) ? int64_t(type.getIntOrFloatBitWidth() / 8) : 0; }

/// Calls what is given with each access to elements along the rows.
void forEachAlong(const RowSteps &rows, function_ref<void(const RowAccess &)> call) {
  for (const RowStep &step : rows.steps)
    for (const auto *accesses : {&step.inputs, &step.outputs})
      for (const RowAccess &access : *accesses)
        if (access.memory && access.isAlongRow())
          call(access);
}

/// Whether it may turn out that all pieces of the memory's rows begin at a multiple of a piece's size.
bool mayFit(const RowAccess &access, int64_t width) {
  auto type = cast<MemRefType>(access.memory.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  auto isOff = [&](int64_t count) { return !ShapedType::isDynamic(count) && count % width != 0; };
  if (isOff(offset))
    return false;
  for (auto [role, stride] : llvm::zip_equal(access.place, strides))
    if (role >= 0 && isOff(stride))
      return false;
  return true;
}

/// About as many instructions as an operation becomes.
int64_t costOf(Operation &op) {
  if (!isa_and_nonnull<math::MathDialect>(op.getDialect()) ||
      isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::FmaOp, math::SqrtOp, math::RsqrtOp>(op))
    return 1;
  bool isLong = isa<math::PowFOp, math::SinOp, math::CosOp, math::TanOp, math::SincosOp>(op) ||
                llvm::any_of(op.getOperandTypes(), [](Type type) { return type.isF64(); });
  return isLong ? 200 : 40;
}

/// About as many instructions as an element takes; none where a step does more than to compute.
std::optional<int64_t> costOf(const RowSteps &rows) {
  int64_t cost = 0;
  for (const RowStep &step : rows.steps)
    if (auto op = dyn_cast<linalg::LinalgOp>(step.op))
      for (Operation &each : *op.getBlock()) {
        if (each.getNumRegions())
          return std::nullopt;
        cost += costOf(each);
      }
  return cost;
}

} // namespace

std::optional<WideRows> WideRows::of(const RowSteps &rows, int64_t length, const RowThreads &threads) {
  int64_t largest = 1;
  bool areFit = true;
  llvm::MapVector<Value, unsigned> arrays;
  forEachAlong(rows, [&](const RowAccess &access) {
    auto type = cast<MemRefType>(access.memory.getType());
    int64_t bytes = bytesOf(type.getElementType());
    areFit &= bytes != 0 && !type.getMemorySpace();
    largest = std::max(largest, bytes);
    ++arrays[access.buffer];
  });
  int64_t width = std::min(kBytes / largest, kMostWidth);
  std::optional<int64_t> cost = costOf(rows);
  if (!areFit || width < 2 || !cost || *cost * width > kMostCost)
    return std::nullopt;
  forEachAlong(rows, [&](const RowAccess &access) { areFit &= mayFit(access, width); });
  if (!areFit)
    return std::nullopt;
  int64_t block = threads.lanes * threads.together;
  // A block that has several rows makes up for the waiting with two pieces for each thread.
  WideRows wide{width, block, true, block * width * (threads.together > 1 ? 2 : 1), std::nullopt};
  if (ShapedType::isDynamic(length))
    return wide;
  if (length % width != 0)
    return std::nullopt;
  if (length < wide.least) {
    if (threads.lanes != kRowLanes || length < kRowLanes * width)
      return std::nullopt;
    wide.lanes = kRowLanes;
    wide.areBlocks = false;
  }
  wide.least = 0;
  int64_t pieces = llvm::divideCeil(length / width, wide.lanes);
  // Lanes that have no piece and subgroups that have no row do their work with another one's elements.
  if ((!wide.areBlocks || pieces * wide.lanes * width != length) &&
      !llvm::all_of(rows.steps, isSpeculatableStep))
    return wide.areBlocks ? std::optional(wide) : std::nullopt;
  int64_t again = llvm::count_if(arrays, [](const auto &array) { return array.second > 1; });
  if (pieces <= (again ? kMostPieces : kMostOnce) && pieces * again <= kMostOnce &&
      *cost * width * pieces <= 4 * kMostCost)
    wide.pieces = pieces;
  return wide;
}

Value WideRows::fit(OpBuilder &b, Location loc, const RowSteps &rows, Value length) const {
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  auto isWhole = [&](Value number, int64_t of) -> Value {
    Value rest = arith::AndIOp::create(b, loc, number, index(of - 1));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, index(0));
  };
  Value fits;
  auto needs = [&](Value also) {
    fits = fits ? arith::AndIOp::create(b, loc, fits, also).getResult() : also;
  };
  if (least) {
    needs(isWhole(length, width));
    needs(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, length, index(least)));
  }
  llvm::SmallPtrSet<Value, 8> known;
  forEachAlong(rows, [&](const RowAccess &access) {
    if (!known.insert(access.memory).second)
      return;
    auto type = cast<MemRefType>(access.memory.getType());
    Value begin = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, access.memory);
    needs(isWhole(begin, width * bytesOf(type.getElementType())));
    auto [strides, offset] = type.getStridesAndOffset();
    bool areKnown = !ShapedType::isDynamic(offset);
    for (auto [role, stride] : llvm::zip_equal(access.place, strides))
      areKnown &= role < 0 || !ShapedType::isDynamic(stride);
    if (areKnown)
      return;
    auto parts = memref::ExtractStridedMetadataOp::create(b, loc, access.memory);
    if (ShapedType::isDynamic(offset))
      needs(isWhole(parts.getOffset(), width));
    for (auto [i, role] : llvm::enumerate(access.place))
      if (role >= 0 && ShapedType::isDynamic(strides[i]))
        needs(isWhole(parts.getStrides()[i], width));
  });
  return fits;
}

SmallVector<Value> WideRows::load(OpBuilder &b, Location loc, Value memory, ValueRange place) const {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value vector =
      vector::LoadOp::create(b, loc, VectorType::get(width, element), memory, place, /*nontemporal=*/false,
                             llvm::Align(uint64_t(width * bytesOf(element))));
  SmallVector<Value> values;
  for (int64_t i = 0; i < width; ++i)
    values.push_back(vector::ExtractOp::create(b, loc, vector, i));
  return values;
}

void WideRows::store(OpBuilder &b, Location loc, ValueRange values, Value memory, ValueRange place) const {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value vector = vector::FromElementsOp::create(b, loc, VectorType::get(width, element), values);
  vector::StoreOp::create(b, loc, vector, memory, place, /*nontemporal=*/false,
                          llvm::Align(uint64_t(width * bytesOf(element))));
}

} // namespace offload
