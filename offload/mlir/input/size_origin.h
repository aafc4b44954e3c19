//===- size_origin.h - Where the size of a dimension comes from -----------===//
#pragma once

#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace offload {

/// A number, or the size of a dimension of a memref or tensor, or a value that is an index.
struct SizeOrigin {
  std::optional<int64_t> known;
  mlir::Value value;      // where it is not known
  int64_t dimension = -1; // of the value; -1: the value is the size
};

/// Follows a number to the size that it is, if it is one.
SizeOrigin originOf(mlir::OpFoldResult number);

/// Follows a dimension of a memref or ranked tensor to what has told its size: an argument, say. All of a
/// loop's iterations have what the first one has where that follows, and branches what both ways have.
SizeOrigin originOf(mlir::Value shaped, int64_t dimension);

/// The same into loops and branches that have made it: what is found there is a value of theirs.
SizeOrigin carriedOriginOf(mlir::Value shaped, int64_t dimension);
SizeOrigin carriedOriginOf(mlir::OpFoldResult number);

/// All that may be where the size comes from: of a branch of two sizes, both.
llvm::SmallVector<SizeOrigin> carriedOriginsOf(mlir::Value shaped, int64_t dimension);

/// Are two tensors, or memory, of one rank known to have the same sizes?
bool haveOneSize(mlir::Value a, mlir::Value b);

/// Are two sizes known to be the same?
bool isOne(const SizeOrigin &one, const SizeOrigin &other);

/// Are they known to be the same, if it is only because both are computed in the same way?
bool areOne(const SizeOrigin &one, const SizeOrigin &other);

/// Is a number known to be zero or more?
bool isPositive(mlir::OpFoldResult number);

/// Is a part known to be within a dimension of that size, whatever it is?
bool isWithin(mlir::OpFoldResult offset, mlir::OpFoldResult size, const SizeOrigin &whole);

/// An arith.select that takes one of two values as a whole: of arrays, one of any size.
bool choosesWhole(mlir::Operation *op);

} // namespace offload
