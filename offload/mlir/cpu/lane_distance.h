//===- lane_distance.h - How far apart neighbouring threads are -------------===//
#pragma once

#include "cpu/uniform_flow.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"

#include <optional>

namespace offload {

/// Values in the code of a strip, by what they are in one lane and in the next.
class LaneDistance {
public:
  static constexpr uint64_t kMost = 1 << 20;

  /// `lane` is the call that gives a thread's place in the strip.
  LaneDistance(const UniformFlow &flow, llvm::CallInst *lane) : flow(flow), lane(lane) {}

  /// How much more the value is in each next lane; none where that is not one number.
  std::optional<uint64_t> of(llvm::Value *value) const { return distance(value, /*likely=*/false); }
  /// Such a value as it is in the lane with this number, computed anew.
  llvm::Value *inLane(llvm::Value *value, uint32_t number, llvm::IRBuilderBase &b) const;
  /// Says so of a loop's variable.
  void set(llvm::PHINode *variable, uint64_t distance) { known[variable] = distance; }

  /// Whether lanes that take a step of the loop together use memory together: the same place, places side by
  /// side, or places that were looked up. Rows of their own, one per lane, are better read one after the
  /// other; but in workgroup memory, which the nearest cache holds.
  bool suits(const llvm::Loop &loop) const;

private:
  /// `likely`: if no sum runs over that is widened later.
  std::optional<uint64_t> distance(llvm::Value *value, bool likely, unsigned depth = 0) const;
  bool isTogether(llvm::Value *address, uint64_t bytes, const llvm::DataLayout &layout) const;
  /// Whether nothing runs over that makes the value of the lane.
  bool isExact(llvm::Value *value, bool isSigned, unsigned depth = 0) const;

  const UniformFlow &flow;
  llvm::CallInst *lane;
  llvm::DenseMap<llvm::Value *, uint64_t> known;
};

} // namespace offload
