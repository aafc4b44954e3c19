//===- block_loops.cpp - Loops over blocks and threads around a kernel's code //
//
// `k.blocks` runs the blocks [first, last) of a grid in linear order, x fastest. Without barriers, the
// inlined code of one thread is the body of loops over the threads, marked free of dependences between
// iterations, which lets the vectorizer take threads together. With barriers that all threads reach,
// thread_loops.h makes loops over the threads of each piece between them.
//
//===----------------------------------------------------------------------===//

#include "cpu/kernel_code.h"
#include "cpu/strips.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {
namespace {

/// Of arrays for a block of the most threads. Coroutines have memory for the threads of a launch alone.
constexpr uint64_t kMostBytes = 16 << 20;
constexpr uint32_t kMostThreads = 1024; // of a block whose kernel sets no limit

/// The body's parameters behind the kernel's own.
enum Extra : unsigned {
  ExtraBlock = 0,
  ExtraBlockDim = 3,
  ExtraGrid = 6,
  ExtraCluster = 9,
  ExtraShared = 12,
  ExtraLaunch = 13,
  ExtraThread = 14
};

class BlockLoops {
public:
  explicit BlockLoops(KernelCode &code) : code(code), types(code.types), waits(code.waits()) {}

  Function *build() {
    Function *body = makeBody();
    return body ? makeLoops(body) : nullptr;
  }

private:
  /// One block's code with barriers, one thread's without.
  Function *makeBody() {
    SmallVector<Type *> extra(ExtraShared, types.i32);
    extra.append(2, types.pointer);
    if (!waits)
      extra.append(3, types.i32);
    Function *body = code.cloneBody(extra, ".body");
    body->addFnAttr(Attribute::AlwaysInline);
    unsigned base = unsigned(code.kernel.arg_size());
    Place inside;
    for (unsigned i = 0; i < 3; ++i) {
      inside.blockId[i] = body->getArg(base + ExtraBlock + i);
      inside.blockDim[i] = code.knownSize(i);
      if (!inside.blockDim[i])
        inside.blockDim[i] = body->getArg(base + ExtraBlockDim + i);
      inside.gridDim[i] = body->getArg(base + ExtraGrid + i);
      inside.clusterDim[i] = body->getArg(base + ExtraCluster + i);
      inside.threadId[i] = waits ? nullptr : body->getArg(base + ExtraThread + i);
    }
    inside.shared = body->getArg(base + ExtraShared);
    inside.launch = body->getArg(base + ExtraLaunch);
    code.bind(*body, inside);
    if (code.strips) {
      if (waits)
        unrollWaitingLoops(*body);
      addWholeRuns(*body);
      unrollSmallLoops(*body);
    }
    RegionLimits limits{code.maxThreads ? code.maxThreads : kMostThreads, kMostBytes,
                        code.strips ? kWide : 0};
    if (!hoistMemory(*body) || (waits && !makeRegions(*body, inside.blockDim, limits, code.warpSize))) {
      code.drop(body);
      return nullptr;
    }
    if (!waits)
      group = markIndependent(*body);
    limitStack(*body, [&](IRBuilder<> &b, uint64_t bytes) { return allocate(b, inside.launch, bytes); });
    return body;
  }

  Value *allocate(IRBuilder<> &b, Value *launch, uint64_t bytes) {
    auto *type = FunctionType::get(types.pointer, {types.pointer, types.i64}, false);
    Value *function = code.field(b, types.launch, launch, LaunchMemory);
    CallInst *memory = b.CreateCall(type, function, {launch, b.getInt64(bytes)});
    memory->addRetAttr(Attribute::NoAlias);
    memory->addRetAttr(Attribute::getWithAlignment(code.context, Align(kMemoryAlignment)));
    return memory;
  }

  Function *makeLoops(Function *body) {
    auto *type =
        FunctionType::get(types.voidType, {types.pointer, types.pointer, types.i64, types.i64}, false);
    auto *blocks =
        Function::Create(type, GlobalValue::InternalLinkage, code.kernel.getName() + ".blocks", code.module);
    // What threads copy is a few lines, often from registers: a call of memcpy would cost more.
    blocks->addFnAttr("no-builtin-memcpy");
    blocks->addParamAttr(1, Attribute::getWithAlignment(code.context, Align(64)));
    IRBuilder<> b(BasicBlock::Create(code.context, "entry", blocks));
    Place place;
    place.launch = blocks->getArg(0);
    place.shared = blocks->getArg(1);
    code.loadDims(b, place);
    SmallVector<Value *> arguments = code.loadArguments(b, place.launch);

    std::array<Value *, 3> first = blockAt(b, blocks->getArg(2), place.gridDim);
    Loop block = beginLoop(b, blocks->getArg(2), blocks->getArg(3), "block");
    place.blockId = countBlocks(b, block, first, place.gridDim);
    std::optional<ThreadLoops> threads;
    if (!waits)
      threads = beginThreads(b, place.blockDim);
    for (auto *values : {&place.blockId, &place.blockDim, &place.gridDim, &place.clusterDim})
      append_range(arguments, *values);
    arguments.push_back(place.shared);
    arguments.push_back(place.launch);
    if (threads)
      for (Loop *loop : {&threads->x, &threads->y, &threads->z})
        arguments.push_back(loop->variable);
    CallInst *call = b.CreateCall(body, arguments);
    if (DISubprogram *source = body->getSubprogram()) {
      // The loops are the kernel's own function; inlining needs to know where the call stands.
      DISubprogram *loops = describeLoops(*source, blocks->getName());
      blocks->setSubprogram(loops);
      call->setDebugLoc(DILocation::get(code.context, source->getLine(), 0, loops));
    }
    if (threads) {
      endThreads(b, *threads);
      if (code.strips)
        addStrips(*call, threads->x, place.blockDim[0], code.warpSize, kWide);
      markParallel(threads->x.backEdge, group);
    }
    endLoop(b, block);
    b.CreateRetVoid();
    return blocks;
  }

  /// The ids of the block with this number.
  std::array<Value *, 3> blockAt(IRBuilder<> &b, Value *number, const std::array<Value *, 3> &grid) const {
    Value *gx = b.CreateZExt(grid[0], types.i64), *gy = b.CreateZExt(grid[1], types.i64);
    Value *rows = b.CreateUDiv(number, gx);
    return {b.CreateTrunc(b.CreateURem(number, gx), types.i32),
            b.CreateTrunc(b.CreateURem(rows, gy), types.i32),
            b.CreateTrunc(b.CreateUDiv(rows, gy), types.i32)};
  }

  /// The ids of each block, from those of the block before. Divided for each block they would be divided for
  /// each step of the kernel's loops: optimizations move a division to where it is used, and back only if
  /// they know that the divisor is not 0.
  std::array<Value *, 3> countBlocks(IRBuilder<> &b, Loop &loop, const std::array<Value *, 3> &first,
                                     const std::array<Value *, 3> &grid) const {
    constexpr uint32_t kMostIds[] = {INT32_MAX, 65535, 65535};
    BasicBlock *before = loop.variable->getIncomingBlock(0);
    std::array<PHINode *, 3> ids;
    for (unsigned i = 0; i < 3; ++i) {
      ids[i] = b.CreatePHI(types.i32, 2, Twine("block.") + kAxes[i]);
      ids[i]->addIncoming(first[i], before);
    }
    IRBuilder<> latch(loop.latch->getTerminator());
    Value *carry = latch.getInt32(1);
    for (unsigned i = 0; i < 3; ++i) {
      Value *next = latch.CreateAdd(ids[i], carry);
      Value *ends = latch.CreateICmpEQ(next, grid[i]);
      ids[i]->addIncoming(i == 2 ? next : latch.CreateSelect(ends, latch.getInt32(0), next), loop.latch);
      carry = latch.CreateZExt(ends, types.i32);
    }
    // What is known of a number that is counted gets lost; that products with it do not overflow must not.
    std::array<Value *, 3> bounded;
    for (unsigned i = 0; i < 3; ++i)
      bounded[i] = b.CreateAnd(ids[i], kMostIds[i], Twine("block.id.") + kAxes[i]);
    return bounded;
  }

  static DISubprogram *describeLoops(const DISubprogram &source, StringRef name) {
    return DISubprogram::getDistinct(source.getContext(), source.getScope(), name, name, source.getFile(),
                                     source.getLine(), source.getType(), source.getScopeLine(), nullptr, 0, 0,
                                     DINode::FlagArtificial, source.getSPFlags(), source.getUnit());
  }

  /// Puts the thread's accesses to shared data into one access group. Threads of a kernel without barriers
  /// are not ordered, so no access of one may depend on another's. Private memory is left out: after
  /// inlining, all iterations share the same alloca.
  MDNode *markIndependent(Function &body) {
    MDNode *made = MDNode::getDistinct(code.context, {});
    for (Instruction &instruction : instructions(body)) {
      const Value *address = getLoadStorePointerOperand(&instruction);
      if (address && !instruction.isAtomic() && !instruction.hasMetadata(kOrdered) &&
          !isa<AllocaInst>(getUnderlyingObject(address)))
        instruction.setMetadata(LLVMContext::MD_access_group, made);
    }
    return made;
  }

  KernelCode &code;
  const Types &types;
  const bool waits;
  MDNode *group = nullptr; // without barriers: the accesses that are free of dependences
};

} // namespace

Function *buildBlocks(KernelCode &code) { return BlockLoops(code).build(); }

} // namespace offload
