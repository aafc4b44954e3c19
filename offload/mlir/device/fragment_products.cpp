//===- fragment_products.cpp - Products of matrices that lanes hold -------===//
//
// Where elements lie follows AMD's manuals, "Matrix Arithmetic Instructions" of the CDNA 3 and "Wave Matrix
// Multiply Accumulate" of the RDNA 3 and RDNA 4 instruction sets: a lane has steps of the loop that reduces
// of one row of A and of one column of B, and of one column of the sum some rows. Which steps is free, as
// long as A and B agree: here they are neighbours, and one load brings them.
//
// Without matrix units a lane has neighbours of a row, of A, of B and of the sum. It asks the lanes that have
// its row of A, and for each step those that have its columns of B.
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"
#include "names.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kSide = 16; // of the matrices that AMD's instructions multiply

struct Shape {
  explicit Shape(gpu::SubgroupMmaComputeOp op)
      : m(left(op).getShape()[0]), n(right(op).getShape()[1]), k(left(op).getShape()[1]) {}
  static gpu::MMAMatrixType left(gpu::SubgroupMmaComputeOp op) {
    return cast<gpu::MMAMatrixType>(op.getOpA().getType());
  }
  static gpu::MMAMatrixType right(gpu::SubgroupMmaComputeOp op) {
    return cast<gpu::MMAMatrixType>(op.getOpB().getType());
  }
  bool is(int64_t rows, int64_t columns, int64_t steps) const {
    return m == rows && n == columns && k == steps;
  }

  int64_t m, n, k;
};

Type elementOf(Value matrix) { return cast<gpu::MMAMatrixType>(matrix.getType()).getElementType(); }

bool isUnsigned(Value matrix) { return elementOf(matrix).isUnsignedInteger(); }

Value resized(OpBuilder &b, Location loc, Value vector, Type element, bool isUnsigned) {
  Type has = getElementTypeOrSelf(vector.getType());
  if (has == element)
    return vector;
  Type type = cast<VectorType>(vector.getType()).clone(element);
  if (isa<FloatType>(element))
    return element.getIntOrFloatBitWidth() > has.getIntOrFloatBitWidth()
               ? arith::ExtFOp::create(b, loc, type, vector).getResult()
               : arith::TruncFOp::create(b, loc, type, vector).getResult();
  if (isUnsigned)
    return arith::ExtUIOp::create(b, loc, type, vector);
  return arith::ExtSIOp::create(b, loc, type, vector);
}

Value part(OpBuilder &b, Location loc, Value vector, int64_t from, int64_t count) {
  return vector::ExtractStridedSliceOp::create(b, loc, vector, ArrayRef<int64_t>{from},
                                               ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1});
}

Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

} // namespace

MatrixUnits unitsOf(StringRef name) {
  FailureOr<amdgpu::Chipset> chip = amdgpu::Chipset::parse(name);
  if (failed(chip))
    return MatrixUnits::None;
  if (chip->majorVersion == 9) {
    bool is908 = chip->minorVersion == 0 && chip->steppingVersion == 8;
    bool is90a = chip->minorVersion == 0 && chip->steppingVersion == 10;
    return is908 || is90a || chip->minorVersion >= 4 ? MatrixUnits::Mfma : MatrixUnits::None;
  }
  if (chip->majorVersion == 11)
    return MatrixUnits::Wmma11;
  return chip->majorVersion == 12 && chip->minorVersion == 0 ? MatrixUnits::Wmma12 : MatrixUnits::None;
}

bool isKnownProduct(gpu::SubgroupMmaComputeOp op) {
  Shape shape(op);
  Type left = elementOf(op.getOpA()), sum = elementOf(op.getOpC());
  if (left != elementOf(op.getOpB()))
    return false;
  if (left.isF64())
    return sum.isF64() && shape.is(8, 8, 4);
  if (left.isF32())
    return sum.isF32() && shape.is(16, 16, 8);
  bool isTile = shape.is(16, 16, 16) || shape.is(32, 8, 16) || shape.is(8, 32, 16);
  if (left.isF16())
    return isTile && (sum.isF16() || sum.isF32());
  return left.isInteger(8) && isTile && sum.isInteger(32);
}

bool haveProduct(MatrixUnits units, gpu::SubgroupMmaComputeOp op) {
  Shape shape(op);
  Type element = elementOf(op.getOpA());
  if (units == MatrixUnits::None || !isKnownProduct(op) || shape.m != kSide || shape.n != kSide)
    return false;
  if (units == MatrixUnits::Mfma)
    return element.isF16() || element.isF32() || element.isSignedInteger(8);
  return element.isF16() || element.isInteger(8);
}

bool haveFragment(gpu::MMAMatrixType type) {
  bool isOfRows = type.getOperand() == "BOp" || type.getShape()[0] == kSide;
  bool isOfColumns = type.getOperand() == "AOp" || type.getShape()[1] == kSide;
  int64_t steps = type.getOperand() == "AOp" ? type.getShape()[1] : type.getShape()[0];
  return isOfRows && isOfColumns && (steps == kSide || steps == kSide / 2);
}

FragmentLayout Fragments::layoutOf(gpu::MMAMatrixType type) const {
  int64_t rows = type.getShape()[0], columns = type.getShape()[1];
  if (units == MatrixUnits::None) {
    int64_t elements = rows * columns / lanes;
    return {/*alongRow=*/true,
            /*linesFirst=*/false, rows, columns / elements, elements, elements, 1};
  }
  bool isLeft = type.getOperand() == "AOp", isSum = type.getOperand() == "COp";
  int64_t length = isLeft ? columns : rows;
  int64_t parts = units == MatrixUnits::Wmma11 && !isSum ? 1 : lanes / kSide;
  FragmentLayout found{isLeft, /*linesFirst=*/true, kSide, parts, length / parts, length / parts, 1};
  if (units == MatrixUnits::Wmma11 && isSum) { // even rows in the first lanes, odd ones in the others
    found.between = 1;
    found.step = parts;
  }
  return found;
}

VectorType Fragments::vectorOf(gpu::MMAMatrixType type) const {
  Type element = type.getElementType();
  if (element.isInteger())
    element = IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
  return VectorType::get(layoutOf(type).elements, element);
}

Value Fragments::lane(OpBuilder &b, Location loc) const {
  Value lane = gpu::LaneIdOp::create(b, loc, b.getIndexType(), /*upper_bound=*/IntegerAttr());
  return arith::RemUIOp::create(b, loc, lane, index(b, loc, lanes));
}

Value Fragments::multiplied(OpBuilder &b, gpu::SubgroupMmaComputeOp op, Value left, Value right,
                            Value sum) const {
  // Halves are added up as words, which rounds once: also where units could add them up as halves.
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(sum.getType());
  if (op->hasAttr(kBFloats))
    for (Value *factor : {&left, &right}) {
      auto type = cast<VectorType>(factor->getType()).clone(b.getBF16Type());
      *factor = vector::BitCastOp::create(b, loc, cast<VectorType>(type), *factor);
    }
  Value wide = resized(b, loc, sum, element.isF16() ? b.getF32Type() : element, false);
  Value result =
      units == MatrixUnits::None ? byLanes(b, op, left, right, wide) : byUnits(b, op, left, right, wide);
  return resized(b, loc, result, element, false);
}

Value Fragments::byUnits(OpBuilder &b, gpu::SubgroupMmaComputeOp op, Value left, Value right,
                         Value sum) const {
  Location loc = op.getLoc();
  if (units != MatrixUnits::Mfma)
    return amdgpu::WMMAOp::create(b, loc, sum.getType(), kSide, kSide, kSide, left, right, sum, 0,
                                  isUnsigned(op.getOpA()), isUnsigned(op.getOpB()));
  auto product = [&](Value one, Value other, uint32_t steps) {
    sum = amdgpu::MFMAOp::create(b, loc, sum.getType(), kSide, kSide, steps, 1, one, other, sum);
  };
  Type element = getElementTypeOrSelf(left.getType());
  if (element.isF32()) // four steps each, one in a lane
    for (int64_t i = 0; i < 2; ++i) {
      Value one = vector::ExtractOp::create(b, loc, left, i);
      product(one, vector::ExtractOp::create(b, loc, right, i), 4);
    }
  else if (element.isBF16() && StringRef(chip) == "gfx908") // eight steps each
    for (int64_t i = 0; i < 4; i += 2) {
      Value one = part(b, loc, left, i, 2);
      product(one, part(b, loc, right, i, 2), kSide / 2);
    }
  else if (isa<FloatType>(element) || StringRef(chip) == "gfx908" || StringRef(chip) == "gfx90a")
    product(left, right, kSide);
  else { // of bytes gfx940 and later have twice the steps: the others are zero
    auto type = VectorType::get(2 * cast<VectorType>(left.getType()).getNumElements(), b.getI8Type());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    auto padded = [&](Value from) {
      return vector::InsertStridedSliceOp::create(b, loc, from, zero, ArrayRef<int64_t>{0},
                                                  ArrayRef<int64_t>{1});
    };
    Value one = padded(left);
    product(one, padded(right), 2 * kSide);
  }
  return sum;
}

Value Fragments::byLanes(OpBuilder &b, gpu::SubgroupMmaComputeOp op, Value left, Value right,
                         Value sum) const {
  Location loc = op.getLoc();
  Shape shape(op);
  Type element = getElementTypeOrSelf(sum.getType());
  int64_t ofLeft = cast<VectorType>(left.getType()).getNumElements();
  int64_t ofRight = cast<VectorType>(right.getType()).getNumElements();
  auto type = cast<VectorType>(sum.getType());
  int64_t ofSum = type.getNumElements();
  Value own = lane(b, loc), parts = index(b, loc, shape.n / ofSum);
  Value row = arith::DivUIOp::create(b, loc, own, parts);
  Value place = arith::RemUIOp::create(b, loc, own, parts);
  Value column = arith::MulIOp::create(b, loc, place, index(b, loc, ofSum));
  Value width = arith::ConstantIntOp::create(b, loc, b.getI32Type(), lanes);
  auto of = [&](Value vector, Value lane) -> Value {
    Value from = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), lane);
    return gpu::ShuffleOp::create(b, loc, vector, from, width, gpu::ShuffleMode::IDX).getShuffleResult();
  };

  // The row of A.
  SmallVector<Value> lefts;
  Value first = arith::MulIOp::create(b, loc, row, index(b, loc, shape.k / ofLeft));
  for (int64_t i = 0; i < shape.k / ofLeft; ++i)
    lefts.push_back(resized(b, loc, of(left, arith::AddIOp::create(b, loc, first, index(b, loc, i))), element,
                            isUnsigned(op.getOpA())));
  // For each step the columns of B: of several lanes, of one, or a part of what one has.
  Value lane = arith::DivUIOp::create(b, loc, column, index(b, loc, ofRight));
  Value within = arith::RemUIOp::create(b, loc, column, index(b, loc, ofRight));
  for (int64_t step = 0; step < shape.k; ++step) {
    Value there = arith::AddIOp::create(b, loc, lane, index(b, loc, step * (shape.n / ofRight)));
    Value others;
    if (ofRight < ofSum) {
      others =
          arith::ConstantOp::create(b, loc, b.getZeroAttr(type.clone(getElementTypeOrSelf(right.getType()))));
      for (int64_t i = 0; i < ofSum / ofRight; ++i)
        others = vector::InsertStridedSliceOp::create(
            b, loc, of(right, arith::AddIOp::create(b, loc, there, index(b, loc, i))), others,
            ArrayRef<int64_t>{i * ofRight}, ArrayRef<int64_t>{1});
    } else {
      Value all = of(right, there);
      for (int64_t from = 0; from < ofRight; from += ofSum) {
        Value each = ofRight == ofSum ? all : part(b, loc, all, from, ofSum);
        if (!others) {
          others = each;
          continue;
        }
        Value isIt = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, within, index(b, loc, from));
        others = arith::SelectOp::create(b, loc, isIt, each, others);
      }
    }
    others = resized(b, loc, others, element, isUnsigned(op.getOpB()));
    Value one = vector::ExtractOp::create(b, loc, lefts[size_t(step / ofLeft)], step % ofLeft);
    one = vector::BroadcastOp::create(b, loc, type, one);
    if (isa<FloatType>(element))
      sum = arith::AddFOp::create(b, loc, sum, arith::MulFOp::create(b, loc, one, others));
    else
      sum = arith::AddIOp::create(b, loc, sum, arith::MulIOp::create(b, loc, one, others));
  }
  return sum;
}

} // namespace offload
