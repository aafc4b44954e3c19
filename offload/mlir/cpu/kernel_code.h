//===- kernel_code.h - One thread's code on its way to running whole blocks -===//
#pragma once

#include "codegen/llvm_module.h"
#include "cpu/spmd_abi.h"

#include "llvm/IR/IRBuilder.h"

#include <array>

namespace offload {

inline constexpr const char *kAxes[] = {"x", "y", "z"};

/// The thread's view of where it is. A thread id is null where it is not known yet.
struct Place {
  llvm::Value *launch = nullptr;
  std::array<llvm::Value *, 3> threadId{}, blockId{}, blockDim{}, gridDim{}, clusterDim{};
  llvm::Value *shared = nullptr; // start of the block's workgroup memory
};

/// A kernel as the author wrote it, and what every way to run it needs: its code as a function with more
/// parameters, and values in place of the functions of names.h.
class KernelCode {
public:
  KernelCode(llvm::Function &kernel, uint32_t maxThreads, const HostWay &way);

  /// Whether threads wait for each other.
  bool waits() const;
  /// Bytes of each parameter as loadArguments reads it, in a table of the module.
  llvm::Constant *parameterSizes();

  /// Reads a field of a struct of host_abi.h; of an array, one element.
  llvm::Value *field(llvm::IRBuilder<> &b, llvm::StructType *type, llvm::Value *base, unsigned index,
                     unsigned element = 0) const;
  /// Loads the kernel's arguments; params[i] points to the i-th.
  llvm::SmallVector<llvm::Value *> loadArguments(llvm::IRBuilder<> &b, llvm::Value *launch) const;
  void loadDims(llvm::IRBuilder<> &b, Place &place) const;

  /// The kernel's code as a function of its arguments and, behind them, `extra` parameters. It takes over the
  /// kernel's line information.
  llvm::Function *cloneBody(llvm::ArrayRef<llvm::Type *> extra, const llvm::Twine &suffix);
  /// Drops a clone that came to nothing.
  void drop(llvm::Function *body);
  /// A block's size that does not depend on the launch; null where it does.
  llvm::Constant *knownSize(unsigned axis) const;
  /// Whether the kernel calls this function of names.h.
  bool usesStandIn(llvm::StringRef name) const;
  /// Replaces ids, sizes and workgroup memory in `body`.
  void bind(llvm::Function &body, const Place &place) const;

  llvm::Function &kernel;
  llvm::Module &module;
  llvm::LLVMContext &context;
  Types types;
  const uint32_t maxThreads; // of a block; 0 where the kernel sets no limit
  const uint32_t warpSize;
  const bool strips;                      // whether neighbouring threads go through their loops together
  uint64_t sharedBytes = 0;               // static workgroup memory
  std::array<uint32_t, 3> knownBlock{};   // the sizes of every block; zeros where others may come
  std::array<uint32_t, 3> knownCluster{}; // and of every cluster

private:
  /// Metadata kArray for the loads of addresses.
  void markArrays(llvm::ArrayRef<llvm::Value *> arguments) const;
  void layoutSharedMemory();
  void bindSharedMemory(llvm::Function &body, llvm::Value *shared) const;
  llvm::Value *fail(llvm::CallInst &call, const Place &place) const;

  llvm::DISubprogram *const subprogram; // line information, null without it
  llvm::SmallVector<std::pair<llvm::GlobalVariable *, uint64_t>> sharedOffsets;
};

/// Replaces the calls of a function in `in` by what `make` builds in front of each; null for nothing.
void replaceCalls(llvm::Function &in, const llvm::Twine &name,
                  llvm::function_ref<llvm::Value *(llvm::CallInst &)> make);

/// block_loops.cpp: loops over blocks and threads; `blocks` of host_abi.h. Null where threads wait for each
/// other and may not all come to a barrier together, and where private memory has no place in a frame.
llvm::Function *buildBlocks(KernelCode &code);

/// coroutines.cpp: a coroutine per thread; `thread` of host_abi.h.
llvm::Function *buildThread(KernelCode &code);

/// Metadata of loads and stores that are not independent of those of other threads.
inline constexpr char kOrdered[] = "offload.ordered";
/// Metadata of loads and stores of the block's workgroup memory.
inline constexpr char kInBlock[] = "offload.block";
/// workgroup_atomics.cpp: makes atomic operations on workgroup memory, which starts at `shared`, and on
/// private memory plain ones.
void makeBlockAtomicsPlain(llvm::Function &body, llvm::Value *shared);

// stack.cpp

/// What a kernel may take of the stack for its arrays, in bytes; and how what it gets elsewhere is aligned.
inline constexpr uint64_t kStackBytes = 64 << 10, kMemoryAlignment = 64;

/// Puts what is over kStackBytes of the frame, the largest first, and what has to be aligned to more than
/// `aligned` into memory that `allocate` gives for a number of bytes at the begin of the entry block. Whether
/// there was any.
bool limitStack(llvm::Function &code, llvm::Align aligned,
                llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &, uint64_t)> allocate);
/// Replaces the memory for which hoistMemory is false by what `allocate` gives for a number of bytes.
void replaceMovingMemory(llvm::Function &code,
                         llvm::function_ref<llvm::Value *(llvm::IRBuilder<> &, llvm::Value *)> allocate);

} // namespace offload
