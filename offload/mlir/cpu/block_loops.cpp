//===- block_loops.cpp - Loops over blocks and threads around a kernel's code //
//
// `k.blocks` runs the blocks [first, last) of a grid in linear order, x fastest. Without barriers, the
// inlined code of one thread is the body of loops over the threads, marked free of dependences between
// iterations, which lets the vectorizer take threads together; blocks of a row of the grid then run row of
// threads by row of threads. With barriers that all threads reach, thread_loops.h makes loops over the
// threads of each piece between them.
//
//===----------------------------------------------------------------------===//

#include "codegen/private_memory.h"
#include "cpu/kernel_code.h"
#include "cpu/row_places.h"
#include "cpu/strips.h"
#include "names.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace offload {
namespace {

/// Of arrays for a block of the most threads. Coroutines have memory for the threads of a launch alone.
constexpr uint64_t kMostBytes = 16 << 20;
/// Blocks of a row that run together: their threads can be counted in 32 bits.
constexpr uint64_t kMostInRow = 1 << 16;
constexpr uint32_t kMostThreads = 1024;     // of a block whose kernel sets no limit
constexpr uint64_t kMostOnStack = 16 << 10; // of workgroup memory

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
    if (!waits) {
      group = markIndependent(*body);
      countsInRow = code.strips && sharesNothing() &&
                    onlyCountsInRow(*body, inside.blockId[0], inside.blockDim[0], inside.threadId[0]);
    }
    auto elsewhere = [&](IRBuilder<> &b, uint64_t bytes) { return allocate(b, inside.launch, bytes); };
    hasLargeMemory = limitStack(*body, Align(Value::MaximumAlignment), elsewhere);
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
    if (code.sharedBytes && code.sharedBytes <= kMostOnStack && !code.usesStandIn(kDynamicShared))
      blocks->addFnAttr(kWorkgroupBytes, utostr(code.sharedBytes));
    IRBuilder<> b(BasicBlock::Create(code.context, "entry", blocks));
    Place place;
    place.launch = blocks->getArg(0);
    place.shared = blocks->getArg(1);
    code.loadDims(b, place);
    SmallVector<Value *> arguments = code.loadArguments(b, place.launch);

    std::array<Value *, 3> first = blockAt(b, blocks->getArg(2), place.gridDim);
    Loop block = beginLoop(b, blocks->getArg(2), blocks->getArg(3), "block");
    BinaryOperator *nextX = nullptr;
    place.blockId = countBlocks(b, block, first, place.gridDim, nextX);
    std::optional<ThreadLoops> threads;
    std::optional<Loop> along;
    if (runsInRows())
      threads = beginRows(b, block, nextX, place, blocks->getArg(3), along);
    else if (!waits)
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
      endLoop(b, threads->x);
      if (along)
        endLoop(b, *along);
      endLoop(b, threads->y);
      endLoop(b, threads->z);
      // Threads that go together need memory each, and there is that of one.
      if (code.strips && !countsInRow && !hasLargeMemory)
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
                                     const std::array<Value *, 3> &grid, BinaryOperator *&nextX) const {
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
      if (i == 0)
        nextX = cast<BinaryOperator>(next);
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

  /// Whether blocks have no memory in common but the grid's.
  bool sharesNothing() const { return code.sharedBytes == 0 && !code.usesStandIn(kDynamicShared); }

  /// Whether blocks of a row of the grid run together: nothing orders their threads.
  bool runsInRows() const {
    auto isOne = [&](unsigned axis) {
      auto *size = dyn_cast_or_null<ConstantInt>(code.knownSize(axis));
      return size && size->isOne();
    };
    return countsInRow || (!waits && code.strips && sharesNothing() && !(isOne(1) && isOne(2)));
  }

  /// Loops over the threads of all blocks from `place` to the end of the grid's row, or to `last`: for each
  /// row of threads those of one block after the other, so that rows of an array are gone through from end to
  /// end. The loop over blocks, which then takes that many at once, is `block`, the one along the row
  /// `along`. Where threads count in the row alone there is none: they are threads of the first block, as
  /// many as all have.
  ThreadLoops beginRows(IRBuilder<> &b, Loop &block, BinaryOperator *nextX, Place &place, Value *last,
                        std::optional<Loop> &along) const {
    Value *first = place.blockId[0];
    Value *inRow = b.CreateZExt(b.CreateSub(place.gridDim[0], first), types.i64);
    Value *left = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateSub(last, block.variable), inRow);
    Value *count = b.CreateBinaryIntrinsic(Intrinsic::umin, left, b.getInt64(kMostInRow));
    // That it is one at least is not seen from this; loops of a number known not to run over can be clamped.
    count = b.CreateBinaryIntrinsic(Intrinsic::umax, count, b.getInt64(1));
    cast<BinaryOperator>(block.variable->getIncomingValueForBlock(block.latch))->setOperand(1, count);
    Value *blocks = b.CreateTrunc(count, types.i32), *threads = place.blockDim[0];
    nextX->setOperand(1, blocks);
    ThreadLoops loops;
    Value *zero = b.getInt32(0);
    loops.z = beginLoop(b, zero, place.blockDim[2], "z");
    loops.y = beginLoop(b, zero, place.blockDim[1], "y");
    if (countsInRow) {
      threads = b.CreateMul(blocks, threads, "", /*NUW=*/true, /*NSW=*/true);
    } else {
      along = beginLoop(b, zero, blocks, "along");
      place.blockId[0] = b.CreateAnd(b.CreateAdd(first, along->variable), INT32_MAX);
    }
    loops.x = beginLoop(b, zero, threads, "x");
    return loops;
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
  bool countsInRow = false;    // whether x of blocks and threads is only taken for places in a row
  bool hasLargeMemory = false; // whether private memory lies elsewhere than on the stack
  MDNode *group = nullptr;     // without barriers: the accesses that are free of dependences
};

} // namespace

Function *buildBlocks(KernelCode &code) { return BlockLoops(code).build(); }

} // namespace offload
