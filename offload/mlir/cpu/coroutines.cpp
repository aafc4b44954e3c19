//===- coroutines.cpp - A coroutine per thread ----------------------------===//
//
// For kernels whose threads may come to a barrier on different ways: `k.thread` is LLVM's switched-resume
// coroutine, which suspends where the thread waits. Barriers may stand anywhere, in divergent loops too, and
// a switch between threads is two calls. runtime_c's host_block.c decides who goes on.
//
//===----------------------------------------------------------------------===//

#include "codegen/private_memory.h"
#include "cpu/kernel_code.h"
#include "cpu/spmd_order.h"
#include "cpu/thread_loops.h"
#include "names.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Intrinsics.h"

using namespace llvm;

namespace offload {
namespace {

/// (): waits for the threads of the warp that are further back in this iteration of a loop.
constexpr char kMeet[] = "__offload_meet";

bool isWarpWait(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee &&
         (callee->getName() == kExchange || callee->getName() == kActiveLanes || callee->getName() == kMeet);
}

class Coroutine {
public:
  explicit Coroutine(KernelCode &code) : code(code), types(code.types) {}

  Function *build() {
    Function *body = code.cloneBody({types.pointer, types.pointer, types.i32}, ".code");
    auto *type = FunctionType::get(types.pointer, {types.pointer, types.pointer, types.i32}, false);
    auto *thread =
        Function::Create(type, GlobalValue::InternalLinkage, code.kernel.getName() + ".thread", code.module);
    thread->setPresplitCoroutine();
    block = thread->getArg(1);
    linear = thread->getArg(2);

    IRBuilder<> b(BasicBlock::Create(code.context, "entry", thread));
    Value *handle = begin(b);
    Place place = placeOf(b, thread->getArg(0));
    take(thread, body, b, place);

    auto *final = BasicBlock::Create(code.context, "final", thread);
    suspended = BasicBlock::Create(code.context, "suspended", thread);
    for (BasicBlock &part : *thread)
      if (auto *ret = dyn_cast_or_null<ReturnInst>(part.getTerminator())) {
        IRBuilder<>(ret).CreateBr(final);
        ret->eraseFromParent();
      }
    replaceWaits(*thread);
    end(final, handle, thread);
    return thread;
  }

private:
  Value *frame(IRBuilder<> &b, Value *size) {
    auto *type = FunctionType::get(types.pointer, {types.pointer, types.i64}, false);
    return b.CreateCall(type, code.field(b, types.block, block, BlockFrame), {block, size});
  }

  Value *begin(IRBuilder<> &b) {
    Constant *none = ConstantPointerNull::get(types.pointer);
    Value *id = b.CreateIntrinsic(Intrinsic::coro_id, {}, {b.getInt32(64), none, none, none});
    Value *size = b.CreateIntrinsic(Intrinsic::coro_size, {types.i64}, {});
    return b.CreateIntrinsic(Intrinsic::coro_begin, {}, {id, frame(b, size)});
  }

  Place placeOf(IRBuilder<> &b, Value *launch) {
    Place place;
    place.launch = launch;
    place.shared = code.field(b, types.block, block, BlockShared);
    code.loadDims(b, place);
    for (unsigned i = 0; i < 3; ++i)
      place.blockId[i] = code.field(b, types.block, block, BlockId, i);
    Value *rows = b.CreateUDiv(linear, place.blockDim[0]);
    place.threadId[0] = b.CreateURem(linear, place.blockDim[0]);
    place.threadId[1] = b.CreateURem(rows, place.blockDim[1]);
    place.threadId[2] = b.CreateUDiv(rows, place.blockDim[1]);
    return place;
  }

  /// Moves the code over: parameters become the loaded arguments.
  void take(Function *thread, Function *body, IRBuilder<> &b, const Place &place) {
    simplifyLoops(*body);
    meetInLoops(*body);
    if (!hoistMemory(*body))
      replaceMovingMemory(*body, [&](IRBuilder<> &in, Value *bytes) { return frame(in, bytes); });
    // The frame of a coroutine is aligned as the memory is that it gets, whatever is in it.
    auto elsewhere = [&](IRBuilder<> &in, uint64_t bytes) { return frame(in, in.getInt64(bytes)); };
    limitStack(*body, Align(kMemoryAlignment), elsewhere);
    for (auto [i, argument] : enumerate(code.loadArguments(b, place.launch)))
      body->getArg(unsigned(i))->replaceAllUsesWith(argument);
    BasicBlock *start = &body->getEntryBlock();
    thread->splice(thread->end(), body);
    b.CreateBr(start);
    for (Instruction &instruction : make_early_inc_range(*start))
      if (isa<AllocaInst>(instruction))
        instruction.moveBefore(thread->getEntryBlock(), thread->getEntryBlock().getFirstInsertionPt());
    if (DISubprogram *source = body->getSubprogram()) {
      body->setSubprogram(nullptr);
      thread->setSubprogram(source);
    }
    body->eraseFromParent();
    code.bind(*thread, place);
  }

  /// The frame is the scheduler's memory: there is nothing to free, neither at the end nor on destruction.
  void end(BasicBlock *final, Value *handle, Function *thread) {
    IRBuilder<> b(final);
    Value *done =
        b.CreateIntrinsic(Intrinsic::coro_suspend, {}, {ConstantTokenNone::get(code.context), b.getTrue()});
    auto *unreachable = BasicBlock::Create(code.context, "resumed_after_end", thread);
    new UnreachableInst(code.context, unreachable);
    SwitchInst *choice = b.CreateSwitch(done, suspended, 2);
    choice->addCase(b.getInt8(0), unreachable);
    choice->addCase(b.getInt8(1), suspended);
    IRBuilder<> leave(suspended);
    leave.CreateIntrinsic(Intrinsic::coro_end, {},
                          {handle, leave.getFalse(), ConstantTokenNone::get(code.context)});
    leave.CreateRet(handle);
  }

  //===--------------------------------------------------------------------===//
  // Waits
  //===--------------------------------------------------------------------===//

  void replaceWaits(Function &thread) {
    DenseMap<CallInst *, uint32_t> sites = numberSites(thread);
    replaceCalls(thread, kBarrier, [&](CallInst &call) -> Value * {
      suspend(&call, kWaitBlock);
      return nullptr;
    });
    replaceCalls(thread, kMeet, [&](CallInst &call) -> Value * {
      waitForWarp(&call, sites[&call]);
      return nullptr;
    });
    replaceCalls(thread, kExchange, [&](CallInst &call) { return exchange(&call, sites[&call]); });
    replaceCalls(thread, kActiveLanes, [&](CallInst &call) { return activeLanes(&call, sites[&call]); });
  }

  /// Ends the thread's turn before `at`: says what it waits for, gives control back, goes on here afterwards.
  void suspend(Instruction *at, uint8_t reason) {
    IRBuilder<> b(at);
    Value *state = code.field(b, types.block, block, BlockState);
    b.CreateStore(b.getInt8(reason), b.CreateInBoundsGEP(types.i8, state, linear));
    Value *result =
        b.CreateIntrinsic(Intrinsic::coro_suspend, {}, {ConstantTokenNone::get(code.context), b.getFalse()});
    BasicBlock *before = at->getParent();
    BasicBlock *after = before->splitBasicBlock(at->getIterator(), "resumed");
    before->getTerminator()->eraseFromParent();
    IRBuilder<> end(before);
    SwitchInst *choice = end.CreateSwitch(result, suspended, 2);
    choice->addCase(end.getInt8(0), after);
    choice->addCase(end.getInt8(1), suspended);
  }

  /// Numbers the places where threads wait for their warp, two for each: the scheduler lets those at the
  /// lowest go on, and they meet the others where their ways join.
  static DenseMap<CallInst *, uint32_t> numberSites(Function &thread) {
    DenseMap<CallInst *, uint32_t> sites;
    for (BasicBlock *part : meetingOrder(thread))
      for (Instruction &instruction : *part)
        if (isWarpWait(instruction))
          sites.try_emplace(cast<CallInst>(&instruction), 2 * uint32_t(sites.size()));
    return sites;
  }

  /// Lets the threads of a warp begin each iteration of a loop together. Where one is further round an inner
  /// loop than another, or in a branch that the other one left, the other would come to the same place in the
  /// next iteration and be taken for its neighbour.
  void meetInLoops(Function &body) {
    DominatorTree tree(body);
    LoopInfo loops(tree);
    SmallVector<BasicBlock *> order = meetingOrder(body);
    for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
      BasicBlock *last = nullptr;
      for (BasicBlock *block : order)
        if (loop->contains(block) && any_of(*block, isWarpWait))
          last = block;
      BasicBlock *latch = loop->getLoopLatch();
      if (!last || !latch || (loops.getLoopFor(last) == loop && tree.dominates(last, latch)))
        continue; // the last wait, which all come to, does it
      IRBuilder<> b(latch->getTerminator());
      b.CreateCall(code.module.getOrInsertFunction(kMeet, types.voidType), {});
    }
  }

  void waitForWarp(CallInst *at, uint32_t site) {
    IRBuilder<> b(at);
    Value *known = code.field(b, types.block, block, BlockSite);
    b.CreateStore(b.getInt32(site), b.CreateInBoundsGEP(types.i32, known, linear));
    suspend(at, kWaitWarp);
  }

  /// Publishes a value, waits for those of the warp that come here too, reads another lane's, and waits again
  /// before the words are reused. The own value where the other lane is not here.
  Value *exchange(CallInst *call, uint32_t site) {
    Value *own = call->getArgOperand(0), *lane = call->getArgOperand(1);
    IRBuilder<> b(call);
    Value *words = code.field(b, types.block, block, BlockExchange);
    b.CreateStore(own, b.CreateInBoundsGEP(types.i64, words, linear));
    waitForWarp(call, site);
    b.SetInsertPoint(call);
    // The caller's state is not "waiting" any more, so it does not find itself; its own value is at hand.
    Value *first = b.CreateAnd(linear, b.getInt32(~(code.warpSize - 1)));
    Value *other = b.CreateOr(first, b.CreateAnd(lane, b.getInt32(code.warpSize - 1)));
    auto of = [&](Type *type, BlockField field) {
      return b.CreateLoad(type, b.CreateInBoundsGEP(type, code.field(b, types.block, block, field), other));
    };
    Value *state = of(types.i8, BlockState), *place = of(types.i32, BlockSite);
    Value *here = b.CreateAnd(b.CreateICmpEQ(state, b.getInt8(kWaitWarp)),
                              b.CreateICmpEQ(b.CreateAnd(place, b.getInt32(~1u)), b.getInt32(site)));
    Value *value = b.CreateSelect(here, of(types.i64, BlockExchange), own);
    waitForWarp(call, site + 1);
    return value;
  }

  Value *activeLanes(CallInst *call, uint32_t site) {
    waitForWarp(call, site);
    IRBuilder<> b(call);
    auto *type = FunctionType::get(types.i64, {types.pointer, types.i32}, false);
    Value *lanes = b.CreateCall(type, code.field(b, types.block, block, BlockActive), {block, linear});
    Value *mask = b.CreateTrunc(lanes, call->getType());
    waitForWarp(call, site + 1);
    return mask;
  }

  KernelCode &code;
  const Types &types;
  Value *block = nullptr, *linear = nullptr; // parameters of the coroutine
  BasicBlock *suspended = nullptr;           // where a turn ends
};

} // namespace

Function *buildThread(KernelCode &code) { return Coroutine(code).build(); }

} // namespace offload
