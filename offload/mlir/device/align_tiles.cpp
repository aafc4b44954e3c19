//===- align_tiles.cpp - offload-align-tiles ------------------------------===//
//
// Workgroup memory lies where NVIDIA's instructions on whole tiles can reach it: what they ask for is raised
// from what they are given to the memory that it is a part of. Without that a tile has its element's
// alignment, and dynamic memory begins right behind barriers of 8 bytes: a misaligned address on the device.
//
// TMA wants 128 bytes, and a swizzled tile, which products of warpgroups read in the same pattern, the bytes
// after which the pattern repeats (CUDA's programming guide, "Asynchronous data copies using the Tensor
// Memory Accelerator"). Copies want as many bytes as they copy, matrices by rows 16 (PTX, "cp.async",
// "ldmatrix"), fragments of gpu.subgroup_mma 32 (CUDA's programming guide, "Warp matrix functions").
//
// Dynamic memory is one piece with one alignment, that of its most demanding use: the module is marked with
// it.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct Tile {
  Value memory;
  int64_t alignment; // bytes
};

int64_t alignmentOf(nvgpu::TensorMapSwizzleKind swizzle) {
  switch (swizzle) {
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE:
    return 128;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_32B:
    return 256;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_64B:
    return 512;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_128B:
    return 1024;
  }
  return 1024;
}

/// What an operation reads or writes as a whole.
std::optional<Tile> tileOf(Operation *op) {
  constexpr int64_t kRow = 16, kFragment = 32;
  auto swizzled = [](Value memory, Value map) {
    return Tile{memory, alignmentOf(cast<nvgpu::TensorMapDescriptorType>(map.getType()).getSwizzle())};
  };
  if (auto load = dyn_cast<nvgpu::TmaAsyncLoadOp>(op))
    return swizzled(load.getDst(), load.getTensorMapDescriptor());
  if (auto store = dyn_cast<nvgpu::TmaAsyncStoreOp>(op))
    return swizzled(store.getSrc(), store.getTensorMapDescriptor());
  if (auto operand = dyn_cast<nvgpu::WarpgroupGenerateDescriptorOp>(op))
    return swizzled(operand.getTensor(), operand.getTensorMap());
  if (auto copy = dyn_cast<nvgpu::DeviceAsyncCopyOp>(op)) {
    int64_t bits = copy.getDst().getType().getElementTypeBitWidth();
    return Tile{copy.getDst(), copy.getDstElements().getSExtValue() * bits / 8};
  }
  if (auto rows = dyn_cast<nvgpu::LdMatrixOp>(op))
    return Tile{rows.getSrcMemref(), kRow};
  if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(op))
    return Tile{load.getSrcMemref(), kFragment};
  if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(op))
    return Tile{store.getDstMemref(), kFragment};
  return std::nullopt;
}

/// The workgroup memory of one gpu.module.
class Memory {
public:
  explicit Memory(gpu::GPUModuleOp module) : module(module) {}

  /// Raises the alignment of all that the tile may be a part of.
  void align(Tile tile) {
    SmallVector<Value> left = {tile.memory};
    SmallPtrSet<Value, 8> seen;
    while (!left.empty()) {
      Value memory = left.pop_back_val();
      if (!seen.insert(memory).second)
        continue;
      Operation *op = memory.getDefiningOp();
      if (auto view = dyn_cast_or_null<ViewLikeOpInterface>(op))
        left.push_back(view.getViewSource());
      else if (auto parts = dyn_cast_or_null<memref::ExtractStridedMetadataOp>(op))
        left.push_back(parts.getSource());
      else if (auto choice = dyn_cast_or_null<arith::SelectOp>(op))
        left.append({choice.getTrueValue(), choice.getFalseValue()});
      else if (auto get = dyn_cast_or_null<memref::GetGlobalOp>(op))
        alignGlobal(SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(get, get.getNameAttr()),
                    tile.alignment);
      else if (isa_and_nonnull<gpu::DynamicSharedMemoryOp>(op))
        alignDynamic(tile.alignment);
      else if (!alignAttribution(memory, tile.alignment))
        alignAll(tile.alignment); // a loop's, a branch's, a caller's
    }
  }

private:
  static int64_t larger(Attribute has, int64_t wanted) {
    auto number = dyn_cast_or_null<IntegerAttr>(has);
    return number ? std::max(number.getInt(), wanted) : wanted;
  }

  IntegerAttr attribute(Attribute has, int64_t wanted) {
    return IntegerAttr::get(IntegerType::get(module.getContext(), 64), larger(has, wanted));
  }

  void alignDynamic(int64_t alignment) {
    module->setAttr(kDynamicAlignment, attribute(module->getAttr(kDynamicAlignment), alignment));
  }

  void alignGlobal(memref::GlobalOp global, int64_t alignment) {
    if (!global || !isWorkgroup(global.getType().getMemorySpace()))
      return;
    if (global.getType().getNumElements() == 0)
      alignDynamic(alignment);
    else
      global.setAlignmentAttr(attribute(global.getAlignmentAttr(), alignment));
  }

  bool alignAttribution(Value memory, int64_t alignment) {
    auto argument = dyn_cast<BlockArgument>(memory);
    auto kernel = argument ? dyn_cast<gpu::GPUFuncOp>(argument.getOwner()->getParentOp()) : gpu::GPUFuncOp();
    if (!kernel)
      return false;
    ArrayRef<BlockArgument> all = kernel.getWorkgroupAttributions();
    const auto *found = llvm::find(all, argument);
    if (found == all.end())
      return false;
    alignAttribution(kernel, int(found - all.begin()), alignment);
    return true;
  }

  void alignAttribution(gpu::GPUFuncOp kernel, int index, int64_t alignment) {
    StringRef name = LLVM::LLVMDialect::getAlignAttrName();
    kernel.setWorkgroupAttributionAttr(index, name,
                                       attribute(kernel.getWorkgroupAttributionAttr(index, name), alignment));
  }

  void alignAll(int64_t alignment) {
    alignDynamic(alignment);
    for (auto global : module.getOps<memref::GlobalOp>())
      alignGlobal(global, alignment);
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      for (int index = 0, count = int(kernel.getNumWorkgroupAttributions()); index < count; ++index)
        alignAttribution(kernel, index, alignment);
  }

  gpu::GPUModuleOp module;
};

struct AlignTiles : public PassWrapper<AlignTiles, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AlignTiles)

  StringRef getArgument() const final { return "offload-align-tiles"; }
  StringRef getDescription() const final { return "Align workgroup memory for instructions on whole tiles"; }

  void runOnOperation() final {
    Memory memory(getOperation());
    getOperation().walk([&](Operation *op) {
      std::optional<Tile> tile = tileOf(op);
      if (tile && isWorkgroup(cast<BaseMemRefType>(tile->memory.getType()).getMemorySpace()))
        memory.align(*tile);
    });
  }
};

} // namespace

void registerAlignTilesPass() { PassRegistration<AlignTiles>(); }

} // namespace offload
