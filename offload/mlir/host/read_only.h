//===- read_only.h - Arguments whose memory a program only reads ----------===//
#pragma once

#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace offload {

/// What a program only reads. It looks at each memory once: the program has to stay as it is.
class OnlyRead {
public:
  /// Does all that is done with the memory of an argument, in its function and in what that calls or
  /// launches, only read it? False where that is not known.
  bool isOnlyRead(mlir::BlockArgument argument);

private:
  void look(mlir::Value memory);
  bool reads(mlir::OpOperand &use);
  bool enter(mlir::Operation *op, mlir::SymbolRefAttr callee, unsigned number, mlir::Value memory);
  void follow(mlir::Value next, mlir::Value memory);
  void mayBeWritten(mlir::Value memory);

  mlir::SymbolTableCollection symbols;
  llvm::SmallVector<mlir::Value> open;
  llvm::DenseSet<mlir::Value> seen, written;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> from; // what each is the same memory as
};

} // namespace offload
