//===- spmd.cpp - From one GPU thread's code to code that runs blocks -----===//
//
// Input: LLVM IR of a device module of the host target, where a kernel is the code of one thread and GPU
// operations are calls to the functions of names.h. Output: what host_abi.h describes. For each kernel `k`
// the global `k.info` with either
//
//  * `k.blocks`: loops over blocks and threads around the inlined thread code, marked free of dependences
//    between iterations, which lets the vectorizer take threads together. Where the kernel has barriers, a
//    loop over the threads for each piece between them (regions.cpp); or
//  * `k.thread`, where threads may come to a barrier on different ways: a coroutine per thread that suspends
//    there. Barriers may stand anywhere, in divergent loops too, and a switch between threads is two calls.
//
// Functions that a kernel calls are inlined first, so recursion is refused.
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm_module.h"
#include "cpu/spmd_abi.h"
#include "cpu/spmd_order.h"
#include "cpu/thread_loops.h"
#include "names.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace offload {
namespace {

constexpr const char *kAxes[] = {"x", "y", "z"};

/// The thread's view of where it is.
struct Place {
  Value *launch = nullptr;
  Value *threadId[3], *blockId[3], *blockDim[3], *gridDim[3], *clusterDim[3];
  Value *shared = nullptr; // start of the block's workgroup memory
};

class KernelLowering {
public:
  KernelLowering(Module &module, Function &kernel, uint32_t maxThreads)
      : module(module), kernel(kernel), context(module.getContext()), types(context), maxThreads(maxThreads) {
  }

  /// Replaces the kernel by what host_abi.h describes; returns its resources. `coroutines`: whenever threads
  /// wait for each other.
  Resources run(bool coroutines) {
    layoutSharedMemory();
    bool waits = usesStandIn(kBarrier) || usesStandIn(kExchange) || usesStandIn(kActiveLanes);
    Function *entry = waits && coroutines ? nullptr : buildBlocks(waits);
    bool suspends = !entry;
    if (suspends)
      entry = buildThread();
    Constant *none = ConstantPointerNull::get(types.pointer);
    auto *info = ConstantStruct::get(
        types.kernel,
        {ConstantInt::get(types.i32, kAbiVersion), ConstantInt::get(types.i32, kernel.arg_size()),
         ConstantInt::get(types.i64, sharedBytes), suspends ? none : entry, suspends ? entry : none,
         parameterSizes(), ConstantInt::get(types.i64, maxThreads)});
    std::string name = kernel.getName().str();
    new GlobalVariable(module, types.kernel, /*isConstant=*/true, GlobalValue::ExternalLinkage, info,
                       name + ".info");
    kernel.deleteBody();
    kernel.eraseFromParent();
    return {{"shared_bytes", int64_t(sharedBytes)}, {"coroutine", suspends}};
  }

private:
  /// Bytes of each parameter as loadArguments reads it, in a table of the module.
  Constant *parameterSizes() {
    SmallVector<uint32_t> sizes;
    for (Argument &argument : kernel.args())
      sizes.push_back(uint32_t(module.getDataLayout().getTypeStoreSize(argument.getType())));
    Constant *table = ConstantDataArray::get(context, sizes);
    return new GlobalVariable(module, table->getType(), /*isConstant=*/true, GlobalValue::InternalLinkage,
                              table, kernel.getName() + ".sizes");
  }

  bool usesStandIn(StringRef name) {
    Function *standIn = module.getFunction(name);
    return standIn && any_of(standIn->users(), [&](User *user) {
             auto *call = dyn_cast<CallInst>(user);
             return call && call->getFunction() == &kernel;
           });
  }

  /// Gives each workgroup global that the kernel uses a place in the block's workgroup memory.
  void layoutSharedMemory() {
    SmallVector<Constant *> globals;
    for (GlobalVariable &global : module.globals())
      if (global.getName().starts_with(kSharedPrefix))
        globals.push_back(&global);
    convertUsersOfConstantsToInstructions(globals, &kernel);
    for (Constant *constant : globals) {
      auto *global = cast<GlobalVariable>(constant);
      bool used = any_of(global->users(), [&](User *user) {
        auto *instruction = dyn_cast<Instruction>(user);
        return instruction && instruction->getFunction() == &kernel;
      });
      if (!used)
        continue;
      uint64_t alignment = std::max<uint64_t>(64, global->getAlign().valueOrOne().value());
      sharedBytes = alignTo(sharedBytes, alignment);
      sharedOffsets.push_back({global, sharedBytes});
      sharedBytes += module.getDataLayout().getTypeAllocSize(global->getValueType());
    }
    sharedBytes = alignTo(sharedBytes, 64);
  }

  Value *field(IRBuilder<> &b, StructType *type, Value *base, unsigned index, unsigned element) {
    Value *address = b.CreateConstInBoundsGEP2_32(type, base, 0, index);
    if (isa<ArrayType>(type->getElementType(index)))
      return b.CreateLoad(types.i32, b.CreateConstInBoundsGEP1_32(types.i32, address, element));
    return b.CreateLoad(type->getElementType(index), address);
  }

  /// Loads the kernel's arguments; params[i] points to the i-th.
  SmallVector<Value *> loadArguments(IRBuilder<> &b, Value *launch) {
    Value *params = field(b, types.launch, launch, LaunchParams, 0);
    SmallVector<Value *> values;
    for (Argument &argument : kernel.args()) {
      Value *slot = b.CreateConstInBoundsGEP1_32(types.pointer, params, argument.getArgNo());
      values.push_back(
          b.CreateLoad(argument.getType(), b.CreateLoad(types.pointer, slot), argument.getName()));
    }
    return values;
  }

  void loadDims(IRBuilder<> &b, Place &place) {
    // launch.c and host.c let no other launch through. That products of these do not overflow is what lets loops over
    // threads be clamped to the bounds that kernels check.
    MDBuilder ranges(context);
    auto atMost = [&](Value *size, uint32_t most) {
      cast<Instruction>(size)->setMetadata(LLVMContext::MD_range,
                                           ranges.createRange(APInt(32, 1), APInt(32, most + 1)));
      return size;
    };
    for (unsigned i = 0; i < 3; ++i) {
      place.blockDim[i] = atMost(field(b, types.launch, place.launch, LaunchBlock, i), i == 2 ? 64 : 1024);
      place.gridDim[i] = atMost(field(b, types.launch, place.launch, LaunchGrid, i), i == 0 ? INT32_MAX : 65535);
      place.clusterDim[i] = field(b, types.launch, place.launch, LaunchCluster, i);
    }
  }

  static void replaceCalls(Function &in, const Twine &name, function_ref<Value *(CallInst &)> make) {
    Function *standIn = in.getParent()->getFunction(name.str());
    if (!standIn)
      return;
    for (User *user : make_early_inc_range(standIn->users())) {
      auto *call = dyn_cast<CallInst>(user);
      if (!call || call->getFunction() != &in)
        continue;
      if (Value *value = make(*call))
        call->replaceAllUsesWith(value);
      call->eraseFromParent();
    }
  }

  /// Replaces ids, sizes and workgroup memory in `body`.
  void bind(Function &body, const Place &place) {
    for (unsigned i = 0; i < 3; ++i) {
      if (place.threadId[i])
        replaceCalls(body, Twine(kThreadId) + kAxes[i], [&](CallInst &) { return place.threadId[i]; });
      replaceCalls(body, Twine(kBlockId) + kAxes[i], [&](CallInst &) { return place.blockId[i]; });
      replaceCalls(body, Twine(kBlockDim) + kAxes[i], [&](CallInst &) { return place.blockDim[i]; });
      replaceCalls(body, Twine(kGridDim) + kAxes[i], [&](CallInst &) { return place.gridDim[i]; });
      replaceCalls(body, Twine(kClusterDim) + kAxes[i], [&](CallInst &) { return place.clusterDim[i]; });
    }
    replaceCalls(body, kFail, [&](CallInst &call) { return fail(call, place); });
    replaceCalls(body, kDynamicShared, [&](CallInst &call) -> Value * {
      return IRBuilder<>(&call).CreateConstInBoundsGEP1_64(types.i8, place.shared, sharedBytes);
    });
    for (auto &[global, offset] : sharedOffsets) {
      SmallVector<Use *> uses;
      for (Use &use : global->uses())
        if (auto *user = dyn_cast<Instruction>(use.getUser()); user && user->getFunction() == &body)
          uses.push_back(&use);
      for (Use *use : uses) {
        auto *user = cast<Instruction>(use->getUser());
        Instruction *before = user;
        if (auto *phi = dyn_cast<PHINode>(user))
          before = phi->getIncomingBlock(*use)->getTerminator();
        use->set(IRBuilder<>(before).CreateConstInBoundsGEP1_64(types.i8, place.shared, offset));
      }
    }
  }

  /// Ends the launch. What comes behind the call is cut off, so that it costs the rest of the kernel nothing.
  Value *fail(CallInst &call, const Place &place) {
    IRBuilder<> b(&call);
    SmallVector<Value *> arguments{place.launch, call.getArgOperand(0)};
    append_range(arguments, place.blockId);
    for (unsigned i = 0; i < 3; ++i)
      arguments.push_back(place.threadId[i] ? place.threadId[i] : threadId(b, i));
    SmallVector<Type *> parameters;
    for (Value *argument : arguments)
      parameters.push_back(argument->getType());
    auto *type = FunctionType::get(types.voidType, parameters, false);
    CallInst *end = b.CreateCall(type, field(b, types.launch, place.launch, LaunchFail, 0), arguments);
    end->setDoesNotReturn();
    end->addFnAttr(Attribute::Cold);
    return nullptr;
  }

  /// An id that has no value yet.
  Value *threadId(IRBuilder<> &b, unsigned axis) {
    return b.CreateCall(module.getOrInsertFunction((Twine(kThreadId) + kAxes[axis]).str(), types.i32), {});
  }

  /// The kernel's code as a function of its arguments and, behind them, `extra` parameters.
  Function *cloneBody(ArrayRef<Type *> extra, const Twine &suffix, Type *result) {
    SmallVector<Type *> parameters;
    for (Argument &argument : kernel.args())
      parameters.push_back(argument.getType());
    append_range(parameters, extra);
    auto *type = FunctionType::get(result, parameters, false);
    auto *body = Function::Create(type, GlobalValue::InternalLinkage, kernel.getName() + suffix, module);
    ValueToValueMapTy map;
    for (Argument &argument : kernel.args())
      map[&argument] = body->getArg(argument.getArgNo());
    SmallVector<ReturnInst *> returns;
    CloneFunctionInto(body, &kernel, map, CloneFunctionChangeType::LocalChangesOnly, returns);
    body->setDSOLocal(true);       // the clone took over the external kernel's property
    kernel.setSubprogram(nullptr); // line information describes one function, and this is the one that stays
    return body;
  }

  //===--------------------------------------------------------------------===//
  // Without barriers: loops
  //===--------------------------------------------------------------------===//

  /// Null where threads wait for each other and may not all come to a barrier together.
  Function *buildBlocks(bool waits) {
    SmallVector<Type *> extra(12, types.i32); // block, block size, grid size, cluster size: three each
    extra.append(2, types.pointer);           // workgroup memory, launch
    if (!waits)
      extra.append(3, types.i32); // thread
    Function *body = cloneBody(extra, ".body", types.voidType);
    body->addFnAttr(Attribute::AlwaysInline);
    unsigned base = unsigned(kernel.arg_size());
    Place inside;
    for (unsigned i = 0; i < 3; ++i) {
      inside.blockId[i] = body->getArg(base + i);
      inside.blockDim[i] = body->getArg(base + 3 + i);
      inside.gridDim[i] = body->getArg(base + 6 + i);
      inside.clusterDim[i] = body->getArg(base + 9 + i);
      inside.threadId[i] = waits ? nullptr : body->getArg(base + 14 + i);
    }
    inside.shared = body->getArg(base + 12);
    inside.launch = body->getArg(base + 13);
    bind(*body, inside);
    if (waits && !makeRegions(*body, inside.blockDim, maxThreads)) {
      kernel.setSubprogram(body->getSubprogram());
      body->eraseFromParent();
      return nullptr;
    }
    MDNode *group = waits ? nullptr : markIndependent(*body);

    auto *type =
        FunctionType::get(types.voidType, {types.pointer, types.pointer, types.i64, types.i64}, false);
    auto *blocks = Function::Create(type, GlobalValue::InternalLinkage, kernel.getName() + ".blocks", module);
    Value *launch = blocks->getArg(0), *shared = blocks->getArg(1);
    blocks->addParamAttr(1, Attribute::get(context, Attribute::Alignment, 64));
    IRBuilder<> b(BasicBlock::Create(context, "entry", blocks));
    Place place;
    place.launch = launch;
    place.shared = shared;
    loadDims(b, place);
    SmallVector<Value *> arguments = loadArguments(b, launch);

    Loop block = beginLoop(b, blocks->getArg(2), blocks->getArg(3), "block");
    Value *gx = b.CreateZExt(place.gridDim[0], types.i64), *gy = b.CreateZExt(place.gridDim[1], types.i64);
    Value *rows = b.CreateUDiv(block.variable, gx);
    place.blockId[0] = b.CreateTrunc(b.CreateURem(block.variable, gx), types.i32);
    place.blockId[1] = b.CreateTrunc(b.CreateURem(rows, gy), types.i32);
    place.blockId[2] = b.CreateTrunc(b.CreateUDiv(rows, gy), types.i32);
    std::optional<ThreadLoops> threads;
    if (!waits)
      threads = beginThreads(b, place.blockDim);
    append_range(arguments, place.blockId);
    append_range(arguments, place.blockDim);
    append_range(arguments, place.gridDim);
    append_range(arguments, place.clusterDim);
    arguments.push_back(shared);
    arguments.push_back(launch);
    if (threads)
      for (Loop *loop : {&threads->x, &threads->y, &threads->z})
        arguments.push_back(loop->variable);
    CallInst *call = b.CreateCall(body, arguments);
    if (DISubprogram *source = body->getSubprogram()) {
      // The loops are the kernel's own function; inlining needs to know where the call stands.
      DISubprogram *loops = describeLoops(*source, blocks->getName());
      blocks->setSubprogram(loops);
      call->setDebugLoc(DILocation::get(context, source->getLine(), 0, loops));
    }
    if (threads) {
      endThreads(b, *threads);
      markParallel(threads->x.backEdge, group);
    }
    endLoop(b, block);
    b.CreateRetVoid();
    return blocks;
  }

  DISubprogram *describeLoops(const DISubprogram &source, StringRef name) {
    return DISubprogram::getDistinct(context, source.getScope(), name, name, source.getFile(),
                                     source.getLine(), source.getType(), source.getScopeLine(), nullptr, 0, 0,
                                     DINode::FlagArtificial, source.getSPFlags(), source.getUnit());
  }

  /// Puts the thread's accesses to shared data into one access group. Threads of a kernel without barriers
  /// are not ordered, so no access of one may depend on another's. Private memory is left out: after
  /// inlining, all iterations share the same alloca.
  MDNode *markIndependent(Function &body) {
    MDNode *group = MDNode::getDistinct(context, {});
    for (Instruction &instruction : instructions(body)) {
      if (instruction.isAtomic() || !instruction.mayReadOrWriteMemory())
        continue;
      Value *address = nullptr;
      if (auto *load = dyn_cast<LoadInst>(&instruction))
        address = load->getPointerOperand();
      else if (auto *store = dyn_cast<StoreInst>(&instruction))
        address = store->getPointerOperand();
      if (address && !isa<AllocaInst>(getUnderlyingObject(address)))
        instruction.setMetadata(LLVMContext::MD_access_group, group);
    }
    return group;
  }

  //===--------------------------------------------------------------------===//
  // With barriers: a coroutine per thread
  //===--------------------------------------------------------------------===//

  Function *buildThread() {
    SmallVector<Type *> extra = {types.pointer, types.pointer, types.i32};
    Function *body = cloneBody(extra, ".code", types.voidType);
    auto *type = FunctionType::get(types.pointer, {types.pointer, types.pointer, types.i32}, false);
    auto *thread = Function::Create(type, GlobalValue::InternalLinkage, kernel.getName() + ".thread", module);
    thread->setPresplitCoroutine();
    Value *launch = thread->getArg(0), *block = thread->getArg(1), *linear = thread->getArg(2);

    IRBuilder<> b(BasicBlock::Create(context, "entry", thread));
    Constant *none = ConstantPointerNull::get(types.pointer);
    Value *id = b.CreateIntrinsic(Intrinsic::coro_id, {}, {b.getInt32(64), none, none, none});
    Value *size = b.CreateIntrinsic(Intrinsic::coro_size, {types.i64}, {});
    Value *allocate = field(b, types.block, block, BlockFrame, 0);
    auto *allocateType = FunctionType::get(types.pointer, {types.pointer, types.i64}, false);
    Value *memory = b.CreateCall(allocateType, allocate, {block, size});
    Value *handle = b.CreateIntrinsic(Intrinsic::coro_begin, {}, {id, memory});

    Place place;
    place.launch = launch;
    place.shared = field(b, types.block, block, BlockShared, 0);
    loadDims(b, place);
    for (unsigned i = 0; i < 3; ++i)
      place.blockId[i] = field(b, types.block, block, BlockId, i);
    Value *rows = b.CreateUDiv(linear, place.blockDim[0]);
    place.threadId[0] = b.CreateURem(linear, place.blockDim[0]);
    place.threadId[1] = b.CreateURem(rows, place.blockDim[1]);
    place.threadId[2] = b.CreateUDiv(rows, place.blockDim[1]);
    SmallVector<Value *> arguments = loadArguments(b, launch);

    // Move the code over: parameters become the loaded arguments.
    for (unsigned i = 0; i < arguments.size(); ++i)
      body->getArg(i)->replaceAllUsesWith(arguments[i]);
    BasicBlock *start = &body->getEntryBlock();
    thread->splice(thread->end(), body);
    b.CreateBr(start);
    hoistAllocas(*start, thread->getEntryBlock());
    if (DISubprogram *source = body->getSubprogram()) {
      body->setSubprogram(nullptr);
      thread->setSubprogram(source);
    }
    body->eraseFromParent();
    bind(*thread, place);

    auto *final = BasicBlock::Create(context, "final", thread);
    auto *suspended = BasicBlock::Create(context, "suspended", thread);
    for (BasicBlock &part : *thread)
      if (auto *ret = dyn_cast_or_null<ReturnInst>(part.getTerminator())) {
        IRBuilder<>(ret).CreateBr(final);
        ret->eraseFromParent();
      }
    DenseMap<CallInst *, uint32_t> sites = numberSites(*thread);
    replaceCalls(*thread, kBarrier, [&](CallInst &call) -> Value * {
      suspend(&call, block, linear, kWaitBlock, suspended);
      return nullptr;
    });
    replaceCalls(*thread, kExchange, [&](CallInst &call) -> Value * {
      return exchange(&call, block, linear, sites[&call], suspended);
    });
    replaceCalls(*thread, kActiveLanes, [&](CallInst &call) -> Value * {
      return activeLanes(&call, block, linear, sites[&call], suspended);
    });

    IRBuilder<> end(final);
    Value *done =
        end.CreateIntrinsic(Intrinsic::coro_suspend, {}, {ConstantTokenNone::get(context), end.getTrue()});
    auto *unreachable = BasicBlock::Create(context, "resumed_after_end", thread);
    new UnreachableInst(context, unreachable);
    SwitchInst *choice = end.CreateSwitch(done, suspended, 2);
    choice->addCase(end.getInt8(0), unreachable);
    choice->addCase(end.getInt8(1), suspended);

    // The frame is the scheduler's memory: there is nothing to free, neither at the end nor on destruction.
    IRBuilder<> leave(suspended);
    leave.CreateIntrinsic(Intrinsic::coro_end, {},
                          {handle, leave.getFalse(), ConstantTokenNone::get(context)});
    leave.CreateRet(handle);
    return thread;
  }

  static void hoistAllocas(BasicBlock &from, BasicBlock &to) {
    for (Instruction &instruction : make_early_inc_range(from))
      if (auto *alloca = dyn_cast<AllocaInst>(&instruction);
          alloca && isa<ConstantInt>(alloca->getArraySize()))
        alloca->moveBefore(to, to.getFirstInsertionPt());
  }

  /// Ends the thread's turn before `at`: says what it waits for, gives control back, goes on here afterwards.
  void suspend(Instruction *at, Value *block, Value *linear, uint8_t reason, BasicBlock *suspended) {
    IRBuilder<> b(at);
    Value *state = field(b, types.block, block, BlockState, 0);
    b.CreateStore(b.getInt8(reason), b.CreateInBoundsGEP(types.i8, state, linear));
    Value *result =
        b.CreateIntrinsic(Intrinsic::coro_suspend, {}, {ConstantTokenNone::get(context), b.getFalse()});
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
        if (auto *call = dyn_cast<CallInst>(&instruction))
          if (Function *callee = call->getCalledFunction();
              callee && (callee->getName() == kExchange || callee->getName() == kActiveLanes))
            sites[call] = 2 * uint32_t(sites.size());
    return sites;
  }

  void waitForWarp(CallInst *at, Value *block, Value *linear, uint32_t site, BasicBlock *suspended) {
    IRBuilder<> b(at);
    Value *known = field(b, types.block, block, BlockSite, 0);
    b.CreateStore(b.getInt32(site), b.CreateInBoundsGEP(types.i32, known, linear));
    suspend(at, block, linear, kWaitWarp, suspended);
  }

  /// Publishes a value, waits for those of the warp that come here too, reads another lane's, and waits again
  /// before the words are reused. The own value where the other lane is not here.
  Value *exchange(CallInst *call, Value *block, Value *linear, uint32_t site, BasicBlock *suspended) {
    Value *own = call->getArgOperand(0), *lane = call->getArgOperand(1);
    IRBuilder<> b(call);
    Value *words = field(b, types.block, block, BlockExchange, 0);
    b.CreateStore(own, b.CreateInBoundsGEP(types.i64, words, linear));
    waitForWarp(call, block, linear, site, suspended);
    b.SetInsertPoint(call);
    // The caller's state is not "waiting" any more, so it does not find itself; its own value is at hand.
    Value *first = b.CreateAnd(linear, b.getInt32(~(kWarpSize - 1)));
    Value *other = b.CreateOr(first, b.CreateAnd(lane, b.getInt32(kWarpSize - 1)));
    Value *state = b.CreateLoad(
        types.i8, b.CreateInBoundsGEP(types.i8, field(b, types.block, block, BlockState, 0), other));
    Value *place = b.CreateLoad(
        types.i32, b.CreateInBoundsGEP(types.i32, field(b, types.block, block, BlockSite, 0), other));
    Value *here = b.CreateAnd(b.CreateICmpEQ(state, b.getInt8(kWaitWarp)),
                              b.CreateICmpEQ(b.CreateAnd(place, b.getInt32(~1u)), b.getInt32(site)));
    words = field(b, types.block, block, BlockExchange, 0);
    Value *word = b.CreateLoad(types.i64, b.CreateInBoundsGEP(types.i64, words, other));
    Value *value = b.CreateSelect(here, word, own);
    waitForWarp(call, block, linear, site + 1, suspended);
    return value;
  }

  Value *activeLanes(CallInst *call, Value *block, Value *linear, uint32_t site, BasicBlock *suspended) {
    waitForWarp(call, block, linear, site, suspended);
    IRBuilder<> b(call);
    auto *type = FunctionType::get(types.i32, {types.pointer, types.i32}, false);
    Value *lanes = b.CreateCall(type, field(b, types.block, block, BlockActive, 0), {block, linear});
    waitForWarp(call, block, linear, site + 1, suspended);
    return lanes;
  }

  Module &module;
  Function &kernel;
  LLVMContext &context;
  Types types;
  uint32_t maxThreads; // of a block; 0 where the kernel sets no limit
  uint64_t sharedBytes = 0;
  SmallVector<std::pair<GlobalVariable *, uint64_t>> sharedOffsets;
};

/// The first function that calls itself, directly or through others; null where there is none.
Function *findRecursion(Module &module) {
  CallGraph graph(module);
  for (auto scc = scc_begin(&graph); !scc.isAtEnd(); ++scc)
    if (scc.hasCycle())
      for (CallGraphNode *node : *scc)
        if (Function *function = node->getFunction(); function && !function->isDeclaration())
          return function;
  return nullptr;
}

void inlineEverything(Module &module, const std::vector<std::string> &kernels) {
  for (Function &function : module)
    if (!function.isDeclaration() && !is_contained(kernels, function.getName())) {
      function.setLinkage(GlobalValue::InternalLinkage);
      function.removeFnAttr(Attribute::NoInline);
      function.addFnAttr(Attribute::AlwaysInline);
    }
  PassBuilder builder;
  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass());
  runPasses(module, builder, std::move(passes));
}

} // namespace

KernelResources lowerKernelsForHost(Module &module, const std::vector<std::string> &kernels,
                                    const ThreadLimits &limits, bool coroutines, std::string &error) {
  KernelResources resources;
  if (Function *function = findRecursion(module)) {
    error = "'" + function->getName().str() + "' is recursive: kernels cannot call recursive functions";
    return resources;
  }
  inlineEverything(module, kernels);
  for (const std::string &name : kernels)
    if (Function *kernel = module.getFunction(name); kernel && !kernel->isDeclaration()) {
      auto limit = limits.find(name);
      uint32_t most = limit == limits.end() ? 0 : limit->second;
      resources.push_back({name, KernelLowering(module, *kernel, most).run(coroutines)});
    }
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
  for (GlobalVariable &global : make_early_inc_range(module.globals()))
    if (global.getName().starts_with(kSharedPrefix) && global.use_empty())
      global.eraseFromParent();
  return resources;
}

} // namespace offload
