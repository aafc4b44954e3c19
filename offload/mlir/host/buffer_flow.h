//===- buffer_flow.h - Which values of host code may be the same memory ---===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"

#include <deque>

namespace offload {

/// The buffer that an operation shows part of, or null.
mlir::Value shownBy(mlir::Operation *op);

/// The functions that a call may enter: through a pointer, all of its type whose address is taken. Null
/// stands for one that is not there.
llvm::SmallVector<mlir::func::FuncOp> calleesOf(mlir::Operation *call);

/// Can a driver do the copy? What has no rank is copied by the CPU.
bool isRanked(mlir::memref::CopyOp op);

/// Values of host code that may show the same memory, where that memory comes from and what is done to it.
struct BufferClass {
  llvm::DenseSet<mlir::Value> values;
  llvm::SmallVector<mlir::memref::AllocOp> allocations;
  llvm::SmallVector<mlir::memref::AllocaOp> stack;
  llvm::SmallVector<mlir::memref::GetGlobalOp> globals;
  llvm::SmallVector<mlir::memref::DeallocOp> deallocations;
  bool foreign = false;     // may come from a caller or from an operation that is not known
  bool unknown = false;     // may come from such an operation: it may be any other's memory
  bool device = false;      // may come from gpu.alloc
  bool deviceAlone = false; // and from one whose memory the CPU does not reach
  bool kernel = false;      // a device uses it, or callers get it as a device's
  bool host = false;        // host code reads or writes it
  bool registered = false;  // the author made it reachable

  /// May it be memory that the CPU does not reach? What host code reads or writes is never a device's.
  bool mayBeDevice() const { return kernel || device || (foreign && !host && !registered); }
};

/// Follows memrefs through views, select, branches, regions and calls, without regard to order.
class BufferFlow {
public:
  explicit BufferFlow(mlir::ModuleOp module);

  BufferClass &classOf(mlir::Value value);

  /// Is it memory of allocations of this program, and of nothing else?
  bool isAllocated(mlir::Value value) const;

  std::deque<BufferClass> &classes() { return all; }

private:
  void connect(mlir::Operation *op);
  void connectCall(mlir::Operation *call);
  void connectReturns(mlir::func::FuncOp function);
  void flow(mlir::Value from, mlir::Value to);
  void flow(mlir::ValueRange from, mlir::ValueRange to);
  void record(mlir::Operation *op);
  void recordResults(mlir::func::FuncOp function);

  llvm::EquivalenceClasses<void *> same; // opaque pointers of values
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> sources;
  llvm::DenseMap<void *, BufferClass *> byLeader;
  std::deque<BufferClass> all;
};

} // namespace offload
