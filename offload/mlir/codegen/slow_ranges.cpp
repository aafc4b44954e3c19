//===- slow_ranges.cpp - Functions whose ranges LLVM follows for minutes ----===//

#include "codegen/slow_ranges.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Transforms/IPO/SCCP.h"
#include "llvm/Transforms/Scalar/SCCP.h"

using namespace llvm;

namespace offload {
namespace {

/// So many take milliseconds, and what programs write seldom has more.
constexpr unsigned kMostWays = 1 << 13;

/// The logarithm of the steps of a loop that are followed; LLVM's are fewer than twice as many.
constexpr unsigned kSteps = 3;

/// What is known of an integer while a loop's first iterations are followed.
struct Reach {
  ConstantRange range;
  unsigned ways; // that lead to it from what grows; none where it does not
};

class Reaches {
public:
  /// Whether one of the function's integers can be reached in too many ways.
  bool tooManyIn(const Function &function) {
    for (const BasicBlock *block : ReversePostOrderTraversal<const Function *>(&function)) {
      for (const Instruction &instruction : *block)
        if (instruction.getType()->isIntegerTy()) {
          Reach reach = reachOf(instruction);
          if (reach.ways > kMostWays)
            return true;
          if (reach.ways)
            known.try_emplace(&instruction, reach);
        }
      seen.insert(block);
    }
    return false;
  }

private:
  static ConstantRange anything(const Value &value) {
    return ConstantRange::getFull(value.getType()->getIntegerBitWidth());
  }

  Reach of(const Value &value) const {
    if (auto *constant = dyn_cast<ConstantInt>(&value))
      return {constant->getValue(), 0};
    auto found = known.find(&value);
    return found == known.end() ? Reach{anything(value), 0} : found->second;
  }

  /// What grows is followed until it may be anything.
  static Reach made(const ConstantRange &range, unsigned ways) {
    return {range, range.isFullSet() ? 0 : ways};
  }

  Reach reachOf(const Instruction &instruction) const {
    if (auto *phi = dyn_cast<PHINode>(&instruction))
      return reachOf(*phi);
    if (auto *two = dyn_cast<BinaryOperator>(&instruction)) {
      Reach a = of(*two->getOperand(0)), b = of(*two->getOperand(1));
      return made(a.range.binaryOp(two->getOpcode(), b.range), SaturatingAdd(a.ways, b.ways));
    }
    if (auto *cast = dyn_cast<CastInst>(&instruction); cast && cast->getSrcTy()->isIntegerTy()) {
      Reach a = of(*cast->getOperand(0));
      return made(a.range.castOp(cast->getOpcode(), cast->getType()->getIntegerBitWidth()), a.ways);
    }
    if (auto *select = dyn_cast<SelectInst>(&instruction)) {
      Reach a = of(*select->getTrueValue()), b = of(*select->getFalseValue());
      return made(a.range.unionWith(b.range), SaturatingAdd(a.ways, b.ways));
    }
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction);
        call && ConstantRange::isIntrinsicSupported(call->getIntrinsicID())) {
      SmallVector<ConstantRange, 2> ranges;
      unsigned ways = 0;
      for (const Value *argument : call->args()) {
        Reach each = of(*argument);
        ranges.push_back(each.range);
        ways = SaturatingAdd(ways, each.ways);
      }
      return made(ConstantRange::intrinsic(call->getIntrinsicID(), ranges), ways);
    }
    return {anything(instruction), 0};
  }

  /// What a loop changes is followed for some steps from what it begins with.
  Reach reachOf(const PHINode &phi) const {
    const unsigned bits = phi.getType()->getIntegerBitWidth();
    ConstantRange range = ConstantRange::getEmpty(bits);
    unsigned ways = 0;
    bool grows = false;
    for (auto [block, value] : llvm::zip_equal(phi.blocks(), phi.incoming_values())) {
      if (!seen.contains(block)) {
        grows = true;
        continue;
      }
      Reach each = of(*value.get());
      range = range.unionWith(each.range);
      ways = SaturatingAdd(ways, each.ways);
    }
    if (!grows)
      return made(range, ways);
    return made(bits > kSteps ? range.add({APInt(bits, 0), APInt::getOneBitSet(bits, kSteps)}) : range,
                SaturatingAdd(ways, 1U));
  }

  DenseMap<const Value *, Reach> known;
  SmallPtrSet<const BasicBlock *, 16> seen;
};

bool isSlow(const Function &function) { return !function.isDeclaration() && Reaches().tooManyIn(function); }

} // namespace

void skipSlowRanges(PassInstrumentationCallbacks &callbacks) {
  callbacks.registerShouldRunOptionalPassCallback([](StringRef pass, Any ir) {
    if (pass == SCCPPass::name()) {
      auto *function = any_cast<const Function *>(&ir);
      return !function || !isSlow(**function);
    }
    if (pass == IPSCCPPass::name()) {
      auto *module = any_cast<const llvm::Module *>(&ir);
      return !module || llvm::none_of(**module, isSlow);
    }
    return true;
  });
}

} // namespace offload
