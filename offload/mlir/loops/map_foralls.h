//===- map_foralls.h - Loops that their author maps to blocks -------------===//
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace offload {

/// Whether the loop's author maps it to blocks.
bool isOverBlocks(mlir::scf::ForallOp loop);

/// On a memref.alloca in such a loop: memory of the block.
inline constexpr char kOfBlock[] = "offload.of_block";

} // namespace offload
