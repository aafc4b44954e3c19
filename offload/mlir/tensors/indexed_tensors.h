//===- indexed_tensors.h - tensor.gather and tensor.scatter ---------------===//
#pragma once

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace offload {

/// Replaces it by a linalg.generic whose body reads the element. The rewriter stands at the operation.
void lowerGather(mlir::tensor::GatherOp op, mlir::RewriterBase &rewriter);

/// Replaces it by an scf.forall over the source's elements, which puts each in its place.
void lowerScatter(mlir::tensor::ScatterOp op, mlir::RewriterBase &rewriter);

} // namespace offload
