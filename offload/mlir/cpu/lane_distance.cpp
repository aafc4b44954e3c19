//===- lane_distance.cpp - How far apart neighbouring threads are -----------===//

#include "cpu/lane_distance.h"
#include "cpu/kernel_code.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace offload {
namespace {

constexpr unsigned kDeep = 8, kLookedUp = 12; // operands of operands

/// Whether the value was computed from what was read.
bool isLookedUp(Value *value, unsigned depth = 0) {
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || isa<PHINode>(instruction) || depth > kLookedUp)
    return false;
  return isa<LoadInst>(instruction) ||
         any_of(instruction->operands(), [&](Value *operand) { return isLookedUp(operand, depth + 1); });
}

} // namespace

std::optional<uint64_t> LaneDistance::distance(Value *value, bool likely, unsigned depth) const {
  if (!flow.differs(value))
    return 0;
  if (value == lane)
    return 1;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || depth > kDeep)
    return std::nullopt;
  auto operand = [&](unsigned number) {
    return distance(instruction->getOperand(number), likely, depth + 1);
  };
  switch (instruction->getOpcode()) {
  case Instruction::Add: {
    auto a = operand(0), b = operand(1);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  case Instruction::Mul:
  case Instruction::Shl: {
    auto *factor = dyn_cast<ConstantInt>(instruction->getOperand(1));
    auto a = operand(0);
    bool shifts = instruction->getOpcode() == Instruction::Shl;
    if (!factor || !a || factor->getValue().ugt(shifts ? 20 : kMost))
      return std::nullopt;
    return shifts ? *a << factor->getZExtValue() : *a * factor->getZExtValue();
  }
  case Instruction::Trunc: // distances are small, wherever the values are
    return value->getType()->getIntegerBitWidth() >= 32 ? operand(0) : std::nullopt;
  case Instruction::ZExt:
  case Instruction::SExt:
    return likely || isExact(instruction->getOperand(0), isa<SExtInst>(instruction)) ? operand(0)
                                                                                     : std::nullopt;
  default:
    return std::nullopt;
  }
}

Value *LaneDistance::inLane(Value *value, uint32_t number, IRBuilderBase &b) const {
  if (!flow.differs(value))
    return value;
  if (value == lane)
    return ConstantInt::get(lane->getType(), number);
  Instruction *copy = cast<Instruction>(value)->clone();
  for (Use &operand : copy->operands())
    operand.set(inLane(operand.get(), number, b));
  return b.Insert(copy);
}

bool LaneDistance::isExact(Value *value, bool isSigned, unsigned depth) const {
  if (!flow.differs(value) || value == lane)
    return true;
  auto *made = dyn_cast<OverflowingBinaryOperator>(value);
  return made && depth <= kDeep && (isSigned ? made->hasNoSignedWrap() : made->hasNoUnsignedWrap()) &&
         all_of(made->operands(), [&](Value *operand) { return isExact(operand, isSigned, depth + 1); });
}

bool LaneDistance::isTogether(Value *address, uint64_t bytes, const DataLayout &layout) const {
  uint64_t total = 0;
  while (auto *element = dyn_cast<GEPOperator>(address)) {
    for (Value *index : element->indices()) {
      if (!flow.differs(index))
        continue;
      if (element->getNumIndices() != 1 || isLookedUp(index))
        return true;
      std::optional<uint64_t> apart = distance(index, /*likely=*/true);
      if (!apart)
        return false;
      total += *apart * layout.getTypeAllocSize(element->getSourceElementType()).getFixedValue();
    }
    address = element->getPointerOperand();
  }
  return total == 0 || total == bytes;
}

bool LaneDistance::suits(const llvm::Loop &loop) const {
  const DataLayout &layout = loop.getHeader()->getDataLayout();
  return all_of(loop.blocks(), [&](BasicBlock *block) {
    return all_of(*block, [&](Instruction &instruction) {
      Value *address = getLoadStorePointerOperand(&instruction);
      Type *type = address ? getLoadStoreType(&instruction) : nullptr;
      return !address || instruction.hasMetadata(kInBlock) ||
             isTogether(address, layout.getTypeAllocSize(type).getFixedValue(), layout);
    });
  });
}

} // namespace offload
