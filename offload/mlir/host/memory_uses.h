//===- memory_uses.h - What host code does to memory through the runtime --===//
#pragma once

#include "host/buffer_flow.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"

namespace offload {

/// The memory that something uses.
struct Touched {
  llvm::SmallDenseSet<BufferClass *, 4> buffers;
  bool open = false; // callers or globals may have it under another name
  bool any = false;  // it may be all there is: a pointer, what describes memory for TMA or as a matrix

  void add(const Touched &other);
  bool isNothing() const { return buffers.empty() && !any; }
  /// May both use the same memory?
  bool mayMeet(const Touched &other) const;
};

/// Is it to run when those before it are done, whatever it depends on? A free, and what has no token.
bool comesInOrder(mlir::gpu::AsyncOpInterface op);

class MemoryUses {
public:
  explicit MemoryUses(mlir::ModuleOp module) : flow(module) {}

  Touched of(mlir::gpu::AsyncOpInterface op);
  /// What the operations do that a call may come to; of these that come in order, or of all.
  Touched of(mlir::CallOpInterface call, bool inOrder);

private:
  /// What a function does itself, and whom it calls.
  struct Body {
    Touched inOrder, all;
    llvm::SmallVector<mlir::CallOpInterface> calls;
  };
  const Body &bodyOf(mlir::FunctionOpInterface function);
  llvm::SmallVector<mlir::FunctionOpInterface> enteredBy(mlir::CallOpInterface call);

  BufferFlow flow;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Body>> bodies;
};

} // namespace offload
