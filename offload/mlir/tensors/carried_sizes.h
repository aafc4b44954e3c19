//===- carried_sizes.h - Sizes of what loops and branches hand on ---------===//
#pragma once

#include "input/size_origin.h"

namespace offload {

/// Where the size of a dimension comes from, of tensors and memory that loops hand on, too: all of a loop's
/// iterations have what the first one has where that follows, and branches what both ways have.
SizeOrigin carriedOriginOf(mlir::Value shaped, int64_t dimension);

SizeOrigin carriedOriginOf(mlir::OpFoldResult number);

/// All that may be where the size comes from: of a branch of two sizes, both.
llvm::SmallVector<SizeOrigin> carriedOriginsOf(mlir::Value shaped, int64_t dimension);

/// Are two tensors, or memory, of one rank known to have the same sizes?
bool haveOneSize(mlir::Value a, mlir::Value b);

} // namespace offload
