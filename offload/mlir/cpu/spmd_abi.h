//===- spmd_abi.h - runtime_c/host/host_abi.h as LLVM types ---------------===//
#pragma once

#include "llvm/IR/DerivedTypes.h"

namespace offload {

// Must agree with host_abi.h.
constexpr uint32_t kAbiVersion = 7;
constexpr uint8_t kWaitWarp = 1, kWaitBlock = 2;
/// Attribute of a kernel: the sizes of every block, "256,1,1".
inline constexpr char kKnownBlock[] = "offload-block";
/// And those of every cluster, in blocks.
inline constexpr char kKnownCluster[] = "offload-cluster";
/// Of a function that runs blocks: the size of the workgroup memory that its second parameter points to,
/// where it may have its own instead.
inline constexpr char kWorkgroupBytes[] = "offload-workgroup";
/// Attribute of a kernel: its arrays, "1:2,9:1": the number of the parameter with the address, and the rank.
/// An offset follows the address, then sizes.
inline constexpr char kArrays[] = "offload-arrays";
/// Metadata of the load of such an address: the number of that parameter, the rank, the bits of a size.
inline constexpr char kArray[] = "offload.array";
enum LaunchField {
  LaunchGrid,
  LaunchBlock,
  LaunchCluster,
  LaunchDynamicShared,
  LaunchParams,
  LaunchFail,
  LaunchMemory,
  LaunchLarge
};
enum BlockField {
  BlockId,
  BlockReserved,
  BlockShared,
  BlockState,
  BlockSite,
  BlockExchange,
  BlockFrame,
  BlockActive
};

struct Types {
  explicit Types(llvm::LLVMContext &c)
      : i1(llvm::Type::getInt1Ty(c)), i8(llvm::Type::getInt8Ty(c)), i32(llvm::Type::getInt32Ty(c)),
        i64(llvm::Type::getInt64Ty(c)), voidType(llvm::Type::getVoidTy(c)),
        pointer(llvm::PointerType::get(c, 0)), dim(llvm::ArrayType::get(i32, 3)),
        launch(llvm::StructType::get(c, {dim, dim, dim, i32, pointer, pointer, pointer, i64})),
        block(llvm::StructType::get(c, {dim, i32, pointer, pointer, pointer, pointer, pointer, pointer})),
        kernel(llvm::StructType::get(c, {i32, i32, i64, pointer, pointer, pointer, i64, i32, dim, dim})) {}
  llvm::IntegerType *i1, *i8, *i32, *i64;
  llvm::Type *voidType;
  llvm::PointerType *pointer;
  llvm::ArrayType *dim;
  llvm::StructType *launch, *block, *kernel;
};

} // namespace offload
