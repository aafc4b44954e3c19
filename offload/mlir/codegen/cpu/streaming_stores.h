//===- streaming_stores.h - Stores that go around the caches --------------===//
#pragma once

#include "llvm/IR/PassManager.h"

namespace offload {

/// An array that is written from end to end and larger than a cache need not be read first, line by line, as
/// plain stores do. In loops of `k.blocks` (host_abi.h) that write vectors one behind the other, these passes
/// make the stores non-temporal where the array is large and the addresses are aligned; each such
/// loop is there twice, then. Kernels with atomic operations are left alone: other stores may rely on their
/// order. For x86, after the vectorizer.
void addStreamingStores(llvm::FunctionPassManager &passes);

} // namespace offload
