//===- strided_lanes.cpp - Vectors of elements that lie apart --------------===//

#include "codegen/cpu/strided_lanes.h"

#include "llvm/Analysis/InstSimplifyFolder.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace offload {
namespace {

/// Lane i of a vector is first + i * step; pointers count bytes. No value: the lanes are no such thing.
struct Lanes {
  Value *first = nullptr, *step = nullptr;
  explicit operator bool() const { return first; }
};

/// Makes no instruction for x + 0.
struct Builder : IRBuilder<InstSimplifyFolder> {
  Builder(Instruction *place, const DataLayout &layout)
      : IRBuilder<InstSimplifyFolder>(place->getContext(), InstSimplifyFolder(layout)) {
    SetInsertPoint(place);
  }
};

class StridedLanes {
public:
  StridedLanes(Function &function, const LoopInfo &loops)
      : function(function), loops(loops), layout(function.getDataLayout()) {}

  bool run() {
    SmallVector<IntrinsicInst *> found;
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<IntrinsicInst>(&instruction); call && isWhole(*call))
        found.push_back(call);
    for (IntrinsicInst *call : found)
      takeApart(*call);
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(unused);
    for (WeakTrackingVH &each : phis) // those that nothing uses, or not any more
      if (auto *phi = dyn_cast_or_null<PHINode>(each))
        RecursivelyDeleteDeadPHINode(phi);
    return !found.empty();
  }

private:
  /// A gather or a scatter of all lanes.
  static bool isWhole(const IntrinsicInst &call) {
    return match(&call, m_Intrinsic<Intrinsic::masked_gather>(m_Value(), m_AllOnes(), m_Value())) ||
           match(&call, m_Intrinsic<Intrinsic::masked_scatter>(m_Value(), m_Value(), m_AllOnes()));
  }

  Lanes lanesOf(Value *vector) {
    if (auto [place, isNew] = known.try_emplace(vector); !isNew)
      return place->second;
    asked.push_back(vector);
    Lanes lanes = find(vector);
    known[vector] = lanes;
    return lanes;
  }

  Lanes find(Value *vector) {
    Type *type = vector->getType()->getScalarType();
    if (!type->isIntegerTy(64) && !type->isPointerTy())
      return {};
    if (Value *one = getSplatValue(vector))
      return {one, none};
    if (auto *constant = dyn_cast<ConstantDataVector>(vector))
      return ofConstant(*constant);
    if (auto *phi = dyn_cast<PHINode>(vector))
      return ofPhi(*phi);
    if (auto *address = dyn_cast<GetElementPtrInst>(vector))
      return ofAddress(*address);
    auto *instruction = dyn_cast<Instruction>(vector);
    if (!instruction || instruction->getNumOperands() != 2)
      return {};
    Value *left = instruction->getOperand(0), *right = instruction->getOperand(1);
    Lanes a = lanesOf(left), c = a ? lanesOf(right) : Lanes();
    if (!c)
      return {};
    Builder b(instruction, layout);
    if (match(instruction, m_Add(m_Value(), m_Value())) ||
        match(instruction, m_DisjointOr(m_Value(), m_Value())))
      return {b.CreateAdd(a.first, c.first), b.CreateAdd(a.step, c.step)};
    if (match(instruction, m_Sub(m_Value(), m_Value())))
      return {b.CreateSub(a.first, c.first), b.CreateSub(a.step, c.step)};
    if (match(instruction, m_Shl(m_Value(), m_Value())) && c.step == none)
      return {b.CreateShl(a.first, c.first), b.CreateShl(a.step, c.first)};
    if (a.step == none)
      std::swap(a, c);
    if (match(instruction, m_Mul(m_Value(), m_Value())) && c.step == none)
      return {b.CreateMul(a.first, c.first), b.CreateMul(a.step, c.first)};
    return {};
  }

  static Lanes ofConstant(const ConstantDataVector &vector) {
    uint64_t first = vector.getElementAsInteger(0), step = vector.getElementAsInteger(1) - first;
    for (unsigned i = 1; i < vector.getNumElements(); ++i)
      if (vector.getElementAsInteger(i) - vector.getElementAsInteger(i - 1) != step)
        return {};
    Type *type = vector.getElementType();
    return {ConstantInt::get(type, first), ConstantInt::get(type, step)};
  }

  /// A loop's phi whose lanes all go on by the same.
  Lanes ofPhi(PHINode &phi) {
    const Loop *loop = loops.getLoopFor(phi.getParent());
    if (!loop || loop->getHeader() != phi.getParent() || !loop->getLoopPredecessor() ||
        !loop->getLoopLatch() || phi.getNumIncomingValues() != 2)
      return {};
    Lanes before = lanesOf(phi.getIncomingValueForBlock(loop->getLoopPredecessor()));
    if (!before)
      return {};
    PHINode *first = PHINode::Create(phi.getType()->getScalarType(), 2, "lane", phi.getIterator());
    phis.append({WeakTrackingVH(first), WeakTrackingVH(&phi)});
    first->addIncoming(before.first, loop->getLoopPredecessor());
    size_t here = asked.size();
    known[&phi] = {first, before.step}; // taken to be so until the latch is known
    Lanes after = lanesOf(phi.getIncomingValueForBlock(loop->getLoopLatch()));
    bool holds = after && after.step == before.step;
    first->addIncoming(holds ? after.first : PoisonValue::get(first->getType()), loop->getLoopLatch());
    if (holds)
      return known[&phi];
    for (; asked.size() > here; asked.pop_back()) // what was found while it was taken to be so
      known.erase(asked.back());
    return {};
  }

  Lanes ofAddress(GetElementPtrInst &address) {
    if (address.getNumIndices() != 1)
      return {};
    Value *index = address.getOperand(1), *base = address.getPointerOperand();
    Lanes from = base->getType()->isVectorTy() ? lanesOf(base) : Lanes{base, none};
    Lanes by = index->getType()->isVectorTy() ? lanesOf(index) : Lanes{index, none};
    if (!from || !by || !by.first->getType()->isIntegerTy(64))
      return {};
    Builder b(&address, layout);
    Type *element = address.getSourceElementType();
    Value *apart = b.CreateMul(by.step, b.getInt64(layout.getTypeAllocSize(element)));
    return {b.CreateGEP(element, from.first, by.first), b.CreateAdd(from.step, apart)};
  }

  void takeApart(IntrinsicInst &call) {
    bool gathers = call.getIntrinsicID() == Intrinsic::masked_gather;
    unsigned number = gathers ? 0 : 1;
    Value *addresses = call.getArgOperand(number);
    auto *type = dyn_cast<FixedVectorType>(gathers ? call.getType() : call.getArgOperand(0)->getType());
    Lanes lanes = type ? lanesOf(addresses) : Lanes();
    if (!lanes)
      return;
    Builder b(&call, layout);
    Align align = call.getParamAlign(number).valueOrOne();
    Value *address = lanes.first, *whole = PoisonValue::get(call.getType());
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      if (i)
        address = isa<ConstantInt>(lanes.step)
                      ? b.CreatePtrAdd(lanes.first, b.CreateMul(lanes.step, b.getInt64(i)))
                      : b.CreatePtrAdd(address, lanes.step);
      Instruction *access;
      if (gathers) {
        access = b.CreateAlignedLoad(type->getElementType(), address, align);
        whole = b.CreateInsertElement(whole, access, i);
      } else {
        access = b.CreateAlignedStore(b.CreateExtractElement(call.getArgOperand(0), i), address, align);
      }
      access->setAAMetadata(call.getAAMetadata());
    }
    if (gathers)
      call.replaceAllUsesWith(whole);
    call.eraseFromParent();
    if (auto *made = dyn_cast<Instruction>(addresses); made && made->use_empty())
      unused.push_back(made);
  }

  Function &function;
  const LoopInfo &loops;
  const DataLayout &layout;
  Constant *none = ConstantInt::get(Type::getInt64Ty(function.getContext()), 0);
  DenseMap<Value *, Lanes> known;
  SmallVector<Value *> asked; // the keys, in their order
  SmallVector<WeakTrackingVH> phis, unused;
};

} // namespace

PreservedAnalyses StridedLanesPass::run(Function &function, FunctionAnalysisManager &analyses) {
  if (!function.getName().ends_with(".blocks"))
    return PreservedAnalyses::all();
  if (!StridedLanes(function, analyses.getResult<LoopAnalysis>(function)).run())
    return PreservedAnalyses::all();
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

} // namespace offload
