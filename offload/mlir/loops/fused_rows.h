//===- fused_rows.h - Steps on the same rows as one kernel ----------------===//
#pragma once

#include "loops/row_steps.h"
#include "loops/row_threads.h"
#include "loops/wide_rows.h"

#include "llvm/ADT/MapVector.h"

namespace offload {

/// Writes steps as a kernel: fuse_rows.cpp what it is, and how threads go from element to element;
/// fused_pieces.cpp how they take several neighbours at once.
class FusedRows {
public:
  explicit FusedRows(RowSteps &rows);

  void replace();

private:
  void launch();

  /// All threads of a block do one of its rows after the other.
  void writeRowsOfBlock(RowThreads made, mlir::Value count, llvm::ArrayRef<mlir::Value> dimensions);

  void writeRow(RowThreads made, mlir::Value count, llvm::ArrayRef<mlir::Value> dimensions);

  /// A step with the numbers that do not change along the row.
  struct Pending {
    const RowStep *step;
    llvm::SmallVector<mlir::Value> inputs; // null where it is an element of the row
    llvm::SmallVector<mlir::Value> before; // of outputs that are one number for a row
  };

  void add(const RowStep &next);

  /// Whether a step looks at what an output was.
  static bool isRead(const RowStep &each, unsigned output);

  /// What is one number for the row: the last one that a step left, or that which is in memory.
  mlir::Value numberOf(const RowAccess &access);

  static bool writes(const RowStep &each, mlir::Value buffer);

  bool isWritten(mlir::Value buffer) const;

  /// The numbers of loops, or of dimensions of memory, at an element of the row.
  llvm::SmallVector<mlir::Value> at(llvm::ArrayRef<int> roles, mlir::Value number) const;

  /// What a step that does not reduce makes of these.
  llvm::SmallVector<mlir::Value> resultsOfRow(const Pending &made);
  llvm::SmallVector<mlir::Value> results(mlir::OpBuilder &builder, const Pending &made, mlir::Value number,
                                         mlir::ValueRange inputs, mlir::ValueRange before) const;

  /// The threads of a row go through it, and do for each element what the pending steps do.
  void goThrough();

  llvm::SmallVector<mlir::Value> doElements(mlir::ValueRange sums);

  llvm::SmallVector<mlir::Value> doElement(mlir::OpBuilder &body, mlir::Value number, mlir::ValueRange sofar);

  /// Neighbouring elements that a thread takes at once.
  struct Piece {
    mlir::Value first;            // number of an element
    mlir::Value isThere = {};     // null: it is
    std::optional<size_t> number; // of those that the thread keeps
  };

  /// Elements of memory that a thread has in registers.
  struct Held {
    const RowAccess *access;
    llvm::SmallVector<mlir::Value> values;
  };

  /// How many pieces the pending steps take at once, so that enough is on its way, and registers are left.
  size_t piecesAtOnce() const;

  /// As many pieces as can be seen now. A thread without a last one takes another's, and leaves nothing of
  /// it.
  llvm::SmallVector<mlir::Value> doKnownPieces(llvm::SmallVector<mlir::Value> sums);

  /// Any number of pieces: several at once while there are so many, then one by one.
  llvm::SmallVector<mlir::Value> doPieces(llvm::SmallVector<mlir::Value> sums);

  /// Loads what is needed of all of these pieces, and does for each of their elements what the pending steps
  /// do.
  llvm::SmallVector<mlir::Value> doPiecesAtOnce(mlir::OpBuilder &body, llvm::ArrayRef<Piece> some,
                                                llvm::SmallVector<mlir::Value> sums);

  const Held *find(const RowAccess &access, llvm::ArrayRef<Held> held) const;

  llvm::SmallVector<mlir::Value> elementsOf(mlir::OpBuilder &body, const RowAccess &access,
                                            const Piece &piece, llvm::SmallVector<Held> &here);

  void hold(const RowAccess &access, llvm::SmallVector<mlir::Value> values, const Piece &piece,
            llvm::SmallVector<Held> &here);

  llvm::SmallVector<mlir::Value> doPiece(mlir::OpBuilder &body, const Piece &piece,
                                         llvm::SmallVector<Held> &here, llvm::SmallVector<mlir::Value> sums);

  void storePiece(mlir::OpBuilder &body, const Piece &piece, const RowAccess &to, mlir::ValueRange values);

  /// What may be the same memory by another name is loaded again when it is needed.
  void forgetOthers(const RowAccess &written, const Piece &piece, llvm::SmallVector<Held> &here);

  /// Whether a step behind this one writes the same elements, and none before it sees these.
  bool isWrittenLater(const RowStep &step, mlir::Value buffer) const;

  /// The first of a row's threads leaves what is one number for it, when all have read what was there.
  void leave();

  /// Memory between the steps that nothing reads any more.
  void eraseUnread();

  mlir::Value index(mlir::OpBuilder &at, int64_t value) const;

  struct Left {
    mlir::Value value;
    const RowAccess *to;
  };

  RowSteps &rows;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t length;                              // of a row, where that is known
  llvm::SmallVector<mlir::Operation *> unused; // memory that the steps do without
  llvm::SmallDenseSet<mlir::Value> between;    // buffers that nothing else uses
  llvm::SmallVector<mlir::Value> sizes;        // of the rows' dimensions, and along them
  mlir::OpBuilder in{b};                       // the kernel
  RowThreads threads = {};
  std::optional<WideRows> wide; // how the kernel that is being written takes several elements at once
  mlir::Value until, zero;
  llvm::SmallVector<mlir::Value> row;
  llvm::SmallVector<Pending> pending;                 // what is done when the row is gone through next
  llvm::MapVector<mlir::Value, Left> leaving;         // numbers by the buffer that they go to
  llvm::SmallDenseMap<mlir::Value, mlir::Value> read; // numbers that were in memory before
  llvm::SmallVector<llvm::SmallVector<Held>> kept;    // elements, by the number of their piece
};

} // namespace offload
