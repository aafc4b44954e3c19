//===- linalg_steps.h - The steps of a linalg operation that reduces ------===//
#pragma once

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace offload {

/// Steps that one thread has done before it would be worth dividing them among several.
inline constexpr int64_t kFewSteps = 256;

/// The linalg operations of host code that are in no loop that becomes a kernel, in the order of the program.
llvm::SmallVector<mlir::linalg::LinalgOp> hostLinalg(mlir::Operation *root);

/// Those of them that can be launches: in no function that kernels call, whose threads launch none.
llvm::SmallVector<mlir::linalg::LinalgOp> launchableLinalg(mlir::ModuleOp module);

/// Where an operand of a linalg operation on buffers has the element of an iteration, which is a number for
/// each loop.
llvm::SmallVector<mlir::Value> placeOf(mlir::OpBuilder &in, mlir::OpOperand &operand,
                                       mlir::ValueRange iteration);

/// The loop whose steps are neighbours in the memory of an operand, where that is known.
std::optional<unsigned> loopAlong(mlir::OpOperand &operand);

/// The operation as a linalg.generic: a named one would keep attributes that speak of the loops it had, a
/// transpose's permutation. Null where there is no such form of it; new operations go in front of it.
mlir::linalg::GenericOp generalized(mlir::linalg::LinalgOp op, mlir::RewriterBase &rewriter);

/// What an iteration yields where the operands' elements are these; one that is not looked at may be null.
llvm::SmallVector<mlir::Value> yieldedOf(mlir::OpBuilder &in, mlir::linalg::LinalgOp op,
                                         mlir::ValueRange iteration, mlir::ValueRange inputs,
                                         mlir::ValueRange outputs);

/// Whether a thread may do steps of the operation that another one does, too: these write nothing themselves.
bool mayBeRepeated(mlir::linalg::LinalgOp op);

/// Has `launch`, at the builder's place, do the operation where each of these loops has so many steps at
/// least, and where `also` holds unless they are all known. Where that is not known the operation stays, for
/// when one has fewer.
void launchWhereLong(mlir::OpBuilder &b, mlir::linalg::LinalgOp op, mlir::ValueRange sizes,
                     llvm::ArrayRef<std::pair<unsigned, int64_t>> least, llvm::function_ref<void()> launch,
                     mlir::Value also = {});

/// A linalg operation on buffers whose outputs' values each come from one operation that joins a step's value
/// and what was reduced so far, in any order.
class LinalgSteps {
public:
  /// None where there is more to an output than that.
  static std::optional<LinalgSteps> of(mlir::linalg::LinalgOp op);

  /// What an iteration makes of its inputs, for each output.
  llvm::SmallVector<mlir::Value> values(mlir::OpBuilder &in, mlir::ValueRange iteration) const;

  /// The same where the inputs' elements are there already, as they are or as what the steps extend them to.
  llvm::SmallVector<mlir::Value> valuesOf(mlir::OpBuilder &in, mlir::ValueRange iteration,
                                          mlir::ValueRange inputs) const;

  /// What joined with an output's value leaves it as it is.
  mlir::Value neutral(mlir::OpBuilder &in, unsigned output) const;

  /// Two of an output's values as one.
  mlir::Value joined(mlir::OpBuilder &in, unsigned output, mlir::Value one, mlir::Value other) const;

private:
  LinalgSteps(mlir::linalg::LinalgOp op, llvm::SmallVector<mlir::Operation *> combiners)
      : op(op), combiners(std::move(combiners)) {}

  mutable mlir::linalg::LinalgOp op;
  llvm::SmallVector<mlir::Operation *> combiners;
};

} // namespace offload
