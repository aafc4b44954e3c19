//===- fragments.h - Matrices of gpu.subgroup_mma as vectors of lanes -----===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace offload {

/// What multiplies matrices: AMD's instructions for waves of 64 lanes (gfx9), for 32 lanes of gfx11 and of
/// gfx12; or each lane for itself, after lanes have told each other what they have.
enum class MatrixUnits { None, Mfma, Wmma11, Wmma12 };

/// Which elements of a matrix a lane of a group has: of a line (a row, or a column), a few.
struct FragmentLayout {
  bool alongRow;    // the lines are rows
  bool linesFirst;  // neighbouring lanes have different lines, else different parts of one
  int64_t lines;    // of the matrix
  int64_t parts;    // of a line, one for each lane that has it; others have it once more
  int64_t elements; // of a lane
  int64_t between;  // parts: from the first element of one to that of the next
  int64_t step;     // from one element of a lane to the next
};

/// The matrices of one function.
class Fragments {
public:
  /// `lanes` form a group, which holds a matrix: a subgroup, or where that is larger, a part of it.
  Fragments(MatrixUnits units, std::string chip, int64_t lanes)
      : units(units), chip(std::move(chip)), lanes(lanes) {}

  FragmentLayout layoutOf(mlir::gpu::MMAMatrixType type) const;
  /// A lane's part of a matrix: elements without a sign, in a vector.
  mlir::VectorType vectorOf(mlir::gpu::MMAMatrixType type) const;
  /// The caller's lane within its group; an index.
  mlir::Value lane(mlir::OpBuilder &b, mlir::Location loc) const;
  /// C + A * B, of lanes' parts.
  mlir::Value multiplied(mlir::OpBuilder &b, mlir::gpu::SubgroupMmaComputeOp op, mlir::Value left,
                         mlir::Value right, mlir::Value sum) const;

  const MatrixUnits units;
  const std::string chip;
  const int64_t lanes;

private:
  mlir::Value byUnits(mlir::OpBuilder &b, mlir::gpu::SubgroupMmaComputeOp op, mlir::Value left,
                      mlir::Value right, mlir::Value sum) const;
  mlir::Value byLanes(mlir::OpBuilder &b, mlir::gpu::SubgroupMmaComputeOp op, mlir::Value left,
                      mlir::Value right, mlir::Value sum) const;
};

/// Those of a chip of AMD's; None for any other name, and for chips without.
MatrixUnits unitsOf(llvm::StringRef chip);

/// Whether these have an instruction, or two, for the product.
bool haveProduct(MatrixUnits units, mlir::gpu::SubgroupMmaComputeOp op);

/// Whether a matrix has the sides of those that units multiply.
bool haveFragment(mlir::gpu::MMAMatrixType type);

/// Whether NVIDIA's instructions have such a product: what programs for all targets are made of.
bool isKnownProduct(mlir::gpu::SubgroupMmaComputeOp op);

/// fragment_layouts.cpp: why matrices cannot be multiplied as they were loaded, as a sentence with what to
/// do; nothing where they can. Where threads hold the same elements of each, the loads of one matrix may
/// differ.
std::optional<std::string> whyNotLayouts(mlir::gpu::SubgroupMmaComputeOp op, bool loadsMayDiffer);
/// Tells each product how its matrices were loaded.
void settleLayouts(mlir::gpu::GPUModuleOp module);

} // namespace offload
