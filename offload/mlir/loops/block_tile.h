//===- block_tile.h - A block's tile of a product of matrices -------------===//
#pragma once

#include "loops/linalg_steps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace offload {

inline constexpr int64_t kTileThreads = 16; // of a block, along x and along y

/// A product's loops: of the rows of a tile, of its columns, and the one that reduces.
struct Product {
  unsigned row, column, depth;
  mlir::OpOperand *left, *right; // the inputs that have the rows, the columns
  int64_t leastSteps;            // of the loop that reduces
};

/// Numbers of places and sizes, as code at one place computes them.
struct Numbers {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value of(int64_t value) const;
  mlir::Value plus(mlir::Value one, mlir::Value other) const;
  mlir::Value plus(mlir::Value one, int64_t other) const { return plus(one, of(other)); }
  mlir::Value times(mlir::Value one, int64_t by) const;
  mlir::Value over(mlir::Value one, int64_t by) const;
  mlir::Value rest(mlir::Value one, int64_t by) const;
  mlir::Value isBelow(mlir::Value one, mlir::Value other) const;
};

/// The tile of the output that a block computes, as its threads see it.
struct BlockTile {
  mutable mlir::linalg::LinalgOp op;
  Product product;
  int64_t side;                         // its rows, and columns
  llvm::SmallVector<mlir::Value> sizes; // of the operation's loops
  llvm::SmallVector<mlir::Value> first; // iteration of the tile's first element
  mlir::Value x, y;                     // the thread

  mlir::Location loc() const { return op.getLoc(); }
  mlir::OpOperand &output() const;
  /// Whether each tile has all its steps of a loop of the output.
  bool areAll(unsigned loop) const;
  /// A builder for what is done where an iteration has a step of that loop.
  mlir::OpBuilder whereItIs(mlir::OpBuilder &in, mlir::ValueRange iteration, unsigned loop) const;
  /// The thread's number in the block.
  mlir::Value thread(mlir::OpBuilder &in) const;
};

/// Whether addresses of a memory's rows, and of pieces in them, are multiples of a piece's bytes.
mlir::Value areMultiples(mlir::OpBuilder &in, mlir::Location loc, mlir::Value memory, int64_t bytes);

/// What a tile needs of an input for a few steps, as the threads of a block bring it: in rows along which the
/// elements are neighbours in memory, and of these a few at a time.
class TileFactor {
public:
  /// `own`: the input's loop of the output. What does not depend on the steps is computed at `in`.
  TileFactor(mlir::OpBuilder &in, const BlockTile &tile, mlir::OpOperand *input, unsigned own, int64_t depth);

  /// A thread's piece: its row and first column in the block's memory, the iteration of its first element,
  /// and how many elements there are. What there are not count as zeros.
  struct Piece {
    mlir::Value row, column;
    llvm::SmallVector<mlir::Value> iteration;
    mlir::Value count; // null: all
  };
  /// Of the steps from `from` on, of which there are all if `allSteps`; `number` is below `pieces`.
  Piece piece(mlir::OpBuilder &in, mlir::Value from, int64_t number, bool allSteps = false) const;
  /// All pieces of a thread, in registers.
  llvm::SmallVector<mlir::Value> loaded(mlir::OpBuilder &in, mlir::Value from) const;
  /// A piece in registers, element by element.
  mlir::Value gathered(mlir::OpBuilder &in, const Piece &piece) const;

  mlir::MemRefType memory() const { return mlir::cast<mlir::MemRefType>(input->get().getType()); }
  mlir::Type element() const { return memory().getElementType(); }
  int64_t rows() const { return alongOwn ? depth : tile.side; }
  int64_t columns() const { return alongOwn ? tile.side : depth; }

  const BlockTile &tile;
  mlir::OpOperand *input;
  unsigned own;
  int64_t depth; // steps at a time
  bool alongOwn; // whether neighbours in memory are steps of the own loop, else of the one that reduces
  int64_t width, pieces; // elements of a piece; pieces of a thread
  mlir::Value isAligned; // whether a whole piece may be copied at once; null: it never may

private:
  mlir::Value row, column; // of the thread's first piece
};

/// The tile by matrix units, of which the code knows the registers (those of nvgpu.mma.sync): of elements of
/// 16 bits, or of bytes that have their neighbours along the steps.
void multiplyByRegisters(mlir::OpBuilder &in, mlir::gpu::LaunchOp launch, const BlockTile &tile);

/// The tile by matrix units, as fragments of gpu.subgroup_mma in subgroups of so many threads.
void multiplyByFragments(mlir::OpBuilder &in, mlir::gpu::LaunchOp launch, const BlockTile &tile,
                         int64_t subgroup);

/// The tile by threads of GPUs, who load four numbers at once: elements of inputs have 32 bits.
void multiplyByFours(mlir::OpBuilder &in, mlir::gpu::LaunchOp launch, const BlockTile &tile,
                     const LinalgSteps &steps);

} // namespace offload
