//===- bulk_stores.h - Addresses of st.bulk in registers ------------------===//
#pragma once

#include "llvm/IR/Module.h"

namespace offload {

/// For NVIDIA's chips: LLVM 22 writes the name of a variable, or a register and an offset, where ptxas wants
/// a register.
void holdBulkAddresses(llvm::Module &module);

} // namespace offload
