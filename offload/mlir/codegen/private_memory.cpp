//===- private_memory.cpp - Where the memory of a thread's own is ----------===//
//
// memref.alloca in a loop becomes LLVM's alloca in it, which takes memory each time it comes by and gives it
// back when the function returns. The memory that a GPU reserves for a thread is of the size of the
// functions' frames: a loop would soon write over that of others.
//
//===----------------------------------------------------------------------===//

#include "codegen/private_memory.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace offload {
namespace {

/// Whether the block can be run again in one call of its function.
bool repeats(BasicBlock *block) {
  DenseSet<BasicBlock *> seen;
  SmallVector<BasicBlock *> open(successors(block));
  while (!open.empty()) {
    BasicBlock *next = open.pop_back_val();
    if (next == block)
      return true;
    if (seen.insert(next).second)
      append_range(open, successors(next));
  }
  return false;
}

/// Whether an address may be in use after its memory has been made again: it goes through a phi or memory.
bool passesOn(const Instruction *address) {
  return any_of(address->users(), [&](const User *user) {
    if (auto *store = dyn_cast<StoreInst>(user))
      return store->getValueOperand() == address;
    if (isa<GetElementPtrInst, AddrSpaceCastInst>(user))
      return passesOn(cast<Instruction>(user));
    return !isa<LoadInst, CallInst, ICmpInst, AtomicRMWInst, AtomicCmpXchgInst>(user);
  });
}

/// LLVM wants the memory itself there, and no address of it in another space.
void markLifetimes(AllocaInst &old, AllocaInst &placed) {
  for (User *user : make_early_inc_range(old.users()))
    if (auto *mark = dyn_cast<LifetimeIntrinsic>(user)) {
      IRBuilder<> builder(mark);
      if (mark->getIntrinsicID() == Intrinsic::lifetime_start)
        builder.CreateLifetimeStart(&placed);
      else
        builder.CreateLifetimeEnd(&placed);
      mark->eraseFromParent();
    }
}

/// Where the stack ends, as an address in the space of the stack.
void placeStackEnd(IntrinsicInst &call, unsigned space) {
  IRBuilder<> builder(&call);
  Type *pointer = builder.getPtrTy(space);
  if (call.getIntrinsicID() == Intrinsic::stacksave && call.getType() != pointer) {
    Value *end = builder.CreateIntrinsic(Intrinsic::stacksave, {pointer}, {});
    call.replaceAllUsesWith(builder.CreateAddrSpaceCast(end, call.getType()));
    call.eraseFromParent();
  } else if (call.getIntrinsicID() == Intrinsic::stackrestore &&
             call.getArgOperand(0)->getType() != pointer) {
    Value *end = builder.CreateAddrSpaceCast(call.getArgOperand(0), pointer);
    builder.CreateIntrinsic(Intrinsic::stackrestore, {pointer}, {end});
    call.eraseFromParent();
  }
}

} // namespace

void placeMemory(Module &module) {
  unsigned space = module.getDataLayout().getAllocaAddrSpace();
  for (Function &function : module) {
    SmallVector<AllocaInst *> elsewhere;
    SmallVector<IntrinsicInst *> calls;
    for (Instruction &instruction : instructions(function)) {
      if (auto *memory = dyn_cast<AllocaInst>(&instruction); memory && memory->getAddressSpace() != space)
        elsewhere.push_back(memory);
      else if (auto *call = dyn_cast<IntrinsicInst>(&instruction))
        calls.push_back(call);
    }
    for (IntrinsicInst *call : calls)
      if (!isa<LifetimeIntrinsic>(call))
        placeStackEnd(*call, space);
    for (AllocaInst *old : elsewhere) {
      IRBuilder<> builder(old);
      AllocaInst *placed = builder.CreateAlloca(old->getAllocatedType(), space, old->getArraySize());
      placed->setAlignment(old->getAlign());
      markLifetimes(*old, *placed);
      old->replaceAllUsesWith(builder.CreateAddrSpaceCast(placed, old->getType()));
      old->eraseFromParent();
    }
  }
}

/// ptxas (13.0 and 13.5) takes what the turns of a loop that it has unrolled put into dynamic memory for one place.
static void keepRolled(Function &function) {
  DominatorTree tree(function);
  LoopInfo loops(tree);
  for (BasicBlock &block : function)
    if (any_of(block, [](Instruction &instruction) {
          auto *memory = dyn_cast<AllocaInst>(&instruction);
          return memory && !memory->isStaticAlloca();
        }))
      for (Loop *loop = loops.getLoopFor(&block); loop; loop = loop->getParentLoop())
        loop->setLoopAlreadyUnrolled();
}

bool hoistMemory(Function &code) {
  if (code.isDeclaration())
    return true;
  BasicBlock &entry = code.getEntryBlock();
  bool all = true;
  for (Instruction &instruction : make_early_inc_range(instructions(code))) {
    auto *memory = dyn_cast<AllocaInst>(&instruction);
    if (!memory || memory->isStaticAlloca())
      continue;
    if (isa<ConstantInt>(memory->getArraySize()) && !(passesOn(memory) && repeats(memory->getParent())))
      memory->moveBefore(entry, entry.getFirstInsertionPt());
    else
      all = false;
  }
  return all;
}

void addressDynamicMemory(Module &module, unsigned lanes) {
  for (Function &function : module)
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *memory = dyn_cast<AllocaInst>(&instruction);
      if (!memory || memory->isStaticAlloca() || memory->use_empty())
        continue;
      IRBuilder<> builder(memory->getNextNode());
      Value *ofWave = builder.CreatePtrToInt(memory, builder.getInt32Ty());
      Value *ofLane = builder.CreateIntToPtr(builder.CreateLShr(ofWave, lanes), memory->getType());
      memory->replaceUsesWithIf(ofLane, [&](Use &use) { return use.getUser() != ofWave; });
    }
}

void keepMemoryLoopsRolled(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration())
      keepRolled(function);
}

void hideMemorySizes(Module &module) {
  const DataLayout &layout = module.getDataLayout();
  Type *number = Type::getInt64Ty(module.getContext());
  InlineAsm *move =
      InlineAsm::get(FunctionType::get(number, {number}, false), "mov.b64 $0, $1;", "=l,n", false);
  for (Function &function : module) {
    SmallVector<AllocaInst *> all;
    for (Instruction &instruction : instructions(function))
      if (auto *memory = dyn_cast<AllocaInst>(&instruction))
        all.push_back(memory);
    // ptxas (13.0 and 13.5) puts arrays of the frame into registers also where an address may be theirs or that
    // of dynamic memory, and then writes nothing to the latter. With dynamic memory, there is no other.
    if (all_of(all, [](AllocaInst *memory) { return memory->isStaticAlloca(); }))
      continue;
    for (AllocaInst *memory : all) {
      if (!isa<ConstantInt>(memory->getArraySize()))
        continue;
      IRBuilder<> builder(memory);
      uint64_t bytes = memory->getAllocationSize(layout)->getFixedValue();
      Value *size = builder.CreateCall(move, builder.getInt64(bytes));
      AllocaInst *hidden = builder.CreateAlloca(builder.getInt8Ty(), memory->getAddressSpace(), size);
      hidden->setAlignment(memory->getAlign());
      memory->replaceAllUsesWith(hidden);
      memory->eraseFromParent();
    }
  }
}

void writeAlignments(Module &module) {
  for (GlobalVariable &variable : module.globals())
    if (!variable.getAlign() && variable.isStrongDefinitionForLinker())
      variable.setAlignment(module.getDataLayout().getPreferredAlign(&variable));
}

PreservedAnalyses HoistMemoryPass::run(Function &function, FunctionAnalysisManager &) {
  hoistMemory(function);
  PreservedAnalyses kept;
  kept.preserveSet<CFGAnalyses>();
  return kept;
}

} // namespace offload
