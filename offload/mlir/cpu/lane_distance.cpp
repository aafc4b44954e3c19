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

std::optional<uint64_t> LaneDistance::of(Value *value, unsigned depth) const {
  if (!flow.differs(value))
    return 0;
  if (value == lane)
    return 1;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || depth > kDeep)
    return std::nullopt;
  auto operand = [&](unsigned number) { return of(instruction->getOperand(number), depth + 1); };
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
  case Instruction::ZExt:
  case Instruction::SExt: // of the thread's id, which is small
    return isThreadId(instruction->getOperand(0)) ? operand(0) : std::nullopt;
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

/// The lane, or the strip's first x and the lane.
bool LaneDistance::isThreadId(Value *value) const {
  auto *sum = dyn_cast<BinaryOperator>(value);
  return value == lane || (sum && sum->getOpcode() == Instruction::Add && isa<Argument>(sum->getOperand(0)) &&
                           sum->getOperand(1) == lane && sum->hasNoUnsignedWrap());
}

bool LaneDistance::isTogether(Value *address, uint64_t bytes, const DataLayout &layout) const {
  uint64_t total = 0;
  while (auto *element = dyn_cast<GEPOperator>(address)) {
    for (Value *index : element->indices()) {
      if (!flow.differs(index))
        continue;
      if (element->getNumIndices() != 1 || isLookedUp(index))
        return true;
      std::optional<uint64_t> distance = of(index);
      if (!distance)
        return false;
      total += *distance * layout.getTypeAllocSize(element->getSourceElementType()).getFixedValue();
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
