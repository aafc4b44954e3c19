//===- lowering.h - What the parts of offload-host-to-llvm share ----------===//
//
// Helpers of the patterns that turn the gpu dialect's host operations into calls of the mgpu runtime. Each
// file of this folder owns the patterns of one group of operations; to_llvm.cpp is the pass.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"

namespace offload {

/// A runtime function that leaves the program by its entry point where an allocation has failed.
inline constexpr char kCheckAllocation[] = "mgpuCheckAllocation";
/// And where the sizes of one cannot be, or malloc gave nothing.
inline constexpr char kCheckSizes[] = "mgpuCheckSizes", kCheckMemory[] = "mgpuCheckMemory";

mlir::Type pointerType(mlir::MLIRContext *context);

/// Calls a runtime function, declaring it where it is new. `result` may be null for void.
mlir::Value callRuntime(mlir::OpBuilder &b, mlir::Operation *anchor, llvm::StringRef name, mlir::Type result,
                        mlir::ValueRange arguments);

mlir::Value constant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type, int64_t value);
mlir::Value null(mlir::OpBuilder &b, mlir::Location loc);

/// The address of a constant string; one string per text.
mlir::Value textAddress(mlir::OpBuilder &b, mlir::Operation *anchor, llvm::StringRef text);
/// "file:line", for messages at run time.
std::string placeOf(mlir::Location loc);

/// Space for `count` elements in the entry block of the function around an operation: a use in a loop does
/// not grow the stack.
mlir::Value entryAlloca(mlir::OpBuilder &b, mlir::Operation *op, mlir::Type type, int64_t count);

/// The mgpuScope of the function around an operation.
mlir::Value scopeOf(mlir::Operation *op);

/// Where an operation runs, after its dependencies. With a token: on the first one's stream, or a new one;
/// otherwise on the thread's (NULL).
struct Stream {
  mlir::Value value;
  bool wait; // the host waits for it: the operation has no token
};
Stream streamFor(mlir::OpBuilder &b, mlir::Operation *op, bool hasToken, mlir::ValueRange dependencies);

/// On what has no token: somebody waits for it further on (wait_once.cpp).
inline constexpr char kWaitsLater[] = "offload.waits_later";

/// Makes the host wait where the operation has no token.
void waitFor(mlir::OpBuilder &b, mlir::Operation *op, Stream stream);

/// A pattern of an operation that may have a token.
template <typename Op> struct HostPattern : public mlir::ConvertOpToLLVMPattern<Op> {
  using mlir::ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  static Stream streamOf(mlir::OpBuilder &b, Op op, typename Op::Adaptor adaptor) {
    return streamFor(b, op, op.getAsyncToken() != nullptr, adaptor.getAsyncDependencies());
  }

  /// Replaces the operation by its other results and, where it has one, its token.
  static void finish(mlir::ConversionPatternRewriter &rewriter, Op op, Stream stream,
                     mlir::ValueRange results = {}) {
    llvm::SmallVector<mlir::Value> values(results);
    if (op.getAsyncToken())
      values.push_back(stream.value);
    rewriter.replaceOp(op, values);
  }
};

/// Fails, with errors at them, where host code has operations that kernels alone can have.
mlir::LogicalResult refuseKernelOperations(mlir::ModuleOp module);

/// Makes, in each function that launches kernels, the memory by which its launches pass what they pass.
void addLaunchMemory(mlir::ModuleOp module);

/// Makes the table of modules and one slot per kernel that the host code launches.
void addSlots(mlir::ModuleOp module);

/// The functions that others call, or that are called from elsewhere, and take or return memrefs: name and
/// type before lowering.
using BareFunctions = std::vector<std::pair<std::string, mlir::FunctionType>>;

/// Fails, with errors at the functions, where a plain pointer cannot stand for a memref.
mlir::LogicalResult findBareFunctions(mlir::ModuleOp module, BareFunctions &found);

/// Makes these, lowered, take and return a plain pointer for each memref.
void giveBarePointers(mlir::ModuleOp module, const BareFunctions &functions,
                      const mlir::LLVMTypeConverter &converter);

/// Makes the C interfaces of lowered functions that may fail an assertion or an allocation return with the
/// error.
void guardEntryPoints(mlir::ModuleOp module);

/// Puts a check in front of each allocation with dynamic sizes, and after those of malloc.
void addSizeChecks(mlir::ModuleOp module, const mlir::LLVMTypeConverter &converter);

/// Makes each gpu.dealloc, and what has no token, depend on what uses its memory before it. Returns those in
/// front of which all that is on the function's streams has to be waited for.
llvm::SmallVector<mlir::Operation *> orderUses(mlir::ModuleOp module);

/// Makes functions wait once for kernels without tokens that follow each other.
void waitOnce(mlir::ModuleOp module);

/// Whether a function gets a token: what it puts behind that one it leaves to its callers.
bool getsToken(mlir::Operation *call);

/// Whether a function waits for each token that it makes, whichever way it takes.
bool waitsForAllTokens(mlir::FunctionOpInterface function);

/// Marks copies whose two shapes are the same by construction; the others are compared where they run.
void markEqualShapes(mlir::ModuleOp module);
void populateMemoryPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);
/// `shared`: the names of the globals that kernels use.
void populateGlobalPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns,
                            const llvm::StringSet<> &shared);
void populateAssertPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateLaunchPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns,
                            bool barePointers);
/// Also converts the types of sparse handles.
void populateSparseOperandPatterns(mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateSparseProductPatterns(const mlir::LLVMTypeConverter &converter,
                                   mlir::RewritePatternSet &patterns);

} // namespace offload
