//===- prepare_vectors.h - Rules of offload-prepare-vectors ---------------===//
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace offload {

/// Accesses with a mask or with places of their own, where neighbours of the last dimension of a memref are
/// apart in memory: element by element. MLIR's lowerings take memory from there on as it lies, or take none.
void addStridedAccesses(mlir::RewritePatternSet &patterns);

/// Products of vectors that MLIR's lowerings leave: of elements narrower than the sum's, in batches, with
/// other sums than of additions. They are tried after those.
void addOtherContractions(mlir::RewritePatternSet &patterns);

} // namespace offload
