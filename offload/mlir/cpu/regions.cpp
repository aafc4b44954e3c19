//===- regions.cpp - The code between barriers as loops over threads --------===//
//
// The code of one thread is cut at its barriers, at branches that decide which barrier comes next, and where
// ways from different such places join. Each piece, a region, then runs for all threads of a block before the
// next one does: it becomes loops over the threads, which vectorize again. The branches between regions are
// taken once for the block, so they must be the same for all its threads; kernels in which a thread may miss
// a barrier are left to the coroutines of spmd.cpp.
//
// What a region computes and another one uses is kept: not at all where it is cheap to compute again from
// arguments and ids, once where it is the same for all threads, else in an array with a place per thread. The
// idea is that of "work-item loops" (Jääskeläinen et al., pocl: A Performance-Portable OpenCL Implementation,
// 2014).
//
//===----------------------------------------------------------------------===//

#include "cpu/block_lanes.h"
#include "cpu/thread_loops.h"
#include "cpu/uniform_flow.h"
#include "names.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

using namespace llvm;

namespace offload {
namespace {

constexpr uint64_t kMostBytes = 256 << 10; // of arrays: they lie on the stack
constexpr unsigned kCheap = 12;            // instructions that are rather computed again than kept

class Regions {
public:
  Regions(Function &code, ArrayRef<Value *> blockDim, uint32_t most)
      : code(code), context(code.getContext()), blockDim(blockDim), most(most ? most : 1024) {}

  bool run() {
    EliminateUnreachableBlocks(code);
    closeFailures();
    BlockArrays lanes = lowerLanes(code, blockDim, most);
    shared = lanes.arrays;
    arrayBytes = lanes.bytes;
    simplifyLoops();
    cutAtBarriers();
    UniformFlow flow(code);
    if (!cutAtBranches(flow) || !assign(flow) || !placeAllocas())
      return false;
    demotePhis(flow);
    keepValues(flow);
    keepMemory();
    if (arrayBytes > kMostBytes || !findExits(flow))
      return false;
    buildLoops();
    return true;
  }

private:
  struct Region {
    BasicBlock *entry;
    SmallVector<BasicBlock *> blocks;
    BasicBlock *chooser = nullptr; // ends in a branch to several regions
    BasicBlock *next = nullptr;    // without one: the entry of the region that follows; null at the end
    AllocaInst *choice = nullptr;  // where the chooser's condition is kept
    BasicBlock *begin = nullptr, *end = nullptr;
    ThreadLoops loops;
    Value *thread = nullptr; // linear id
  };

  //===--------------------------------------------------------------------===//
  // Preparing the code
  //===--------------------------------------------------------------------===//

  /// A failed assertion ends the launch and never comes back. For the flow of control it is as if it did,
  /// so that an assertion does not part the threads.
  void closeFailures() {
    for (BasicBlock &block : code) {
      auto *end = dyn_cast<UnreachableInst>(block.getTerminator());
      BasicBlock *before = block.getSinglePredecessor();
      auto *branch = end && before ? dyn_cast<BranchInst>(before->getTerminator()) : nullptr;
      if (!branch || !branch->isConditional())
        continue;
      BasicBlock *other = branch->getSuccessor(branch->getSuccessor(0) == &block ? 1 : 0);
      for (PHINode &phi : other->phis())
        phi.addIncoming(PoisonValue::get(phi.getType()), &block);
      BranchInst::Create(other, end->getIterator());
      end->eraseFromParent();
    }
  }

  /// Gives each loop one block in front of it, one back edge, and exits of its own.
  void simplifyLoops() {
    PassBuilder builder;
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager graphs;
    ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
    LoopSimplifyPass().run(code, functions);
  }

  //===--------------------------------------------------------------------===//
  // Cutting
  //===--------------------------------------------------------------------===//

  void cutAtBarriers() {
    SmallVector<CallInst *> barriers;
    for (Instruction &instruction : instructions(code))
      if (CallInst *call = callOf(instruction, kBarrier))
        barriers.push_back(call);
    entries.insert(&code.getEntryBlock());
    for (CallInst *call : barriers) {
      entries.insert(SplitBlock(call->getParent(), call->getNextNode()));
      waits.insert(call->getParent());
      call->eraseFromParent();
    }
  }

  bool hasWait(ArrayRef<BasicBlock *> blocks) const {
    return any_of(blocks, [&](BasicBlock *block) { return waits.contains(block); });
  }

  /// False where a branch that parts the threads has a barrier behind it, before its ways join again.
  bool cutAtBranches(const UniformFlow &flow) {
    for (BasicBlock *branch : flow.partingBlocks())
      if (hasWait(flow.between(branch)))
        return false;
    for (BasicBlock &branch : code) {
      if (branch.getTerminator()->getNumSuccessors() < 2 || flow.partingBlocks().contains(&branch) ||
          !hasWait(flow.between(&branch)))
        continue;
      for (BasicBlock *next : successors(&branch))
        entries.insert(next);
      if (BasicBlock *join = flow.join(&branch))
        entries.insert(join);
    }
    return true;
  }

  /// Every block belongs to the region from whose entry it is reached; one that is reached from two becomes
  /// an entry. False where a block in front of a loop's header would be both.
  bool assign(UniformFlow &flow) {
    for (bool again = true; again;) {
      again = false;
      regions.clear();
      regionOf.clear();
      for (BasicBlock *entry : SmallVector<BasicBlock *>(entries.begin(), entries.end())) {
        unsigned number = unsigned(regions.size());
        regions.push_back({});
        regions.back().entry = entry;
        SmallVector<BasicBlock *> open = {entry};
        while (!open.empty()) {
          BasicBlock *block = open.pop_back_val();
          auto [known, isNew] = regionOf.try_emplace(block, number);
          if (!isNew) {
            if (known->second != number)
              again |= entries.insert(block);
            continue;
          }
          regions.back().blocks.push_back(block);
          for (BasicBlock *next : successors(block))
            if (!entries.contains(next))
              open.push_back(next);
        }
      }
    }
    // An inner loop's header as an entry would make the loop's iterations steps of the block.
    for (Region &region : regions)
      for (BasicBlock *before : predecessors(region.entry))
        if (regionOf.lookup(before) == regionOf.lookup(region.entry) && !splitEntry(region, flow))
          return false;
    return true;
  }

  /// Puts a block of its own in front of an entry to which its region comes back without a barrier.
  bool splitEntry(Region &region, UniformFlow &flow) {
    unsigned number = regionOf.lookup(region.entry);
    SmallVector<BasicBlock *> outside;
    for (BasicBlock *before : predecessors(region.entry))
      if (regionOf.lookup(before) != number)
        outside.push_back(before);
    if (outside.empty())
      return false;
    BasicBlock *front = SplitBlockPredecessors(region.entry, outside, ".front");
    if (!front)
      return false;
    for (PHINode &phi : front->phis())
      flow.setDiffers(&phi); // not known any more
    entries.remove(region.entry);
    entries.insert(front);
    regionOf[front] = number;
    region.entry = front;
    region.blocks.insert(region.blocks.begin(), front);
    return true;
  }

  //===--------------------------------------------------------------------===//
  // What threads keep from region to region
  //===--------------------------------------------------------------------===//

  /// Allocas to the function's start. False for one whose size is not known.
  bool placeAllocas() {
    start = BasicBlock::Create(context, "block", &code, &code.getEntryBlock());
    for (Instruction &instruction : make_early_inc_range(instructions(code)))
      if (auto *alloca = dyn_cast<AllocaInst>(&instruction)) {
        if (!isa<ConstantInt>(alloca->getArraySize()))
          return false;
        alloca->moveBefore(*start, start->end());
        if (!shared.contains(alloca))
          memory.push_back(alloca);
      }
    return true;
  }

  AllocaInst *slot(Type *type, const Twine &name) {
    return new AllocaInst(type, 0, nullptr, name, start->end());
  }

  void demotePhis(UniformFlow &flow) {
    for (Region &region : regions) {
      SmallVector<PHINode *> phis;
      for (PHINode &phi : region.entry->phis())
        phis.push_back(&phi);
      unsigned number = regionOf.lookup(region.entry);
      for (PHINode *phi : phis) {
        // A slot for all threads is written by regions that do not read it.
        bool differs = flow.differs(phi) || any_of(phi->blocks(), [&](BasicBlock *before) {
                         return regionOf.lookup(before) == number;
                       });
        AllocaInst *kept = slot(phi->getType(), "kept");
        for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
          new StoreInst(phi->getIncomingValue(i), kept,
                        phi->getIncomingBlock(i)->getTerminator()->getIterator());
        auto *load = new LoadInst(phi->getType(), kept, "kept", region.entry->getFirstNonPHIIt());
        phi->replaceAllUsesWith(load);
        phi->eraseFromParent();
        if (differs) {
          flow.setDiffers(load);
          memory.push_back(kept);
        }
      }
    }
  }

  /// Where an operand is used: a phi's is used at the end of the block it comes from.
  static Instruction *placeOf(Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    if (auto *phi = dyn_cast<PHINode>(user))
      return phi->getIncomingBlock(use)->getTerminator();
    return user;
  }

  /// Counts the instructions to compute a value again from arguments and ids; more than kCheap where that is
  /// not possible.
  unsigned cost(Value *value, unsigned depth = 0) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction)
      return 0;
    if (isa<AllocaInst>(instruction))
      return 0; // each use of it finds the thread's place
    if (callOf(*instruction, kThreadId))
      return 1;
    if (depth > kCheap || isa<PHINode, FreezeInst>(instruction) || instruction->isTerminator() ||
        instruction->mayReadOrWriteMemory() || instruction->mayHaveSideEffects())
      return kCheap + 1;
    unsigned sum = 1;
    for (Value *operand : instruction->operands())
      if ((sum += cost(operand, depth + 1)) > kCheap)
        break;
    return sum;
  }

  Value *again(Value *value, Instruction *before) {
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || isa<AllocaInst>(instruction))
      return value;
    Instruction *copy = instruction->clone();
    for (Use &operand : copy->operands())
      operand.set(again(operand.get(), before));
    copy->insertBefore(before->getIterator());
    return copy;
  }

  void keepValues(const UniformFlow &flow) {
    SmallVector<Instruction *> crossing;
    auto isOutside = [&](Use &use, Instruction *value) {
      return regionOf.lookup(placeOf(use)->getParent()) != regionOf.lookup(value->getParent());
    };
    for (Instruction &value : instructions(code))
      if (value.getParent() != start &&
          any_of(value.uses(), [&](Use &use) { return isOutside(use, &value); }))
        crossing.push_back(&value);
    for (Instruction *value : crossing) {
      SmallVector<Use *> uses;
      for (Use &use : value->uses())
        if (isOutside(use, value))
          uses.push_back(&use);
      if (cost(value) <= kCheap) {
        for (Use *use : uses)
          use->set(again(value, placeOf(*use)));
        continue;
      }
      AllocaInst *kept = slot(value->getType(), "kept");
      BasicBlock::iterator behind =
          isa<PHINode>(value) ? value->getParent()->getFirstInsertionPt() : std::next(value->getIterator());
      new StoreInst(value, kept, behind);
      for (Use *use : uses)
        use->set(new LoadInst(value->getType(), kept, "kept", placeOf(*use)->getIterator()));
      if (flow.differs(value))
        memory.push_back(kept);
    }
  }

  /// Memory of a thread that more than one region uses becomes an array.
  void keepMemory() {
    for (AllocaInst *alloca : memory) {
      std::optional<unsigned> home;
      bool crosses = false;
      for (Use &use : alloca->uses()) {
        unsigned number = regionOf.lookup(placeOf(use)->getParent());
        crosses |= home && *home != number;
        home = number;
      }
      // An address that was kept somewhere may be used anywhere.
      if (!crosses && !mayEscape(alloca))
        continue;
      Type *one = alloca->getAllocatedType();
      if (alloca->isArrayAllocation())
        one = ArrayType::get(one, cast<ConstantInt>(alloca->getArraySize())->getZExtValue());
      Type *type = ArrayType::get(one, most);
      auto *array = new AllocaInst(type, 0, nullptr, Align(64), alloca->getName(), alloca->getIterator());
      arrays.insert(array);
      arrayBytes += code.getDataLayout().getTypeAllocSize(type);
      for (Use &use : alloca->uses())
        pending.push_back({&use, array, type});
      replaced.push_back(alloca);
    }
  }

  static bool mayEscape(Instruction *address) {
    return any_of(address->users(), [&](User *user) {
      if (auto *store = dyn_cast<StoreInst>(user))
        return store->getValueOperand() == address;
      if (auto *element = dyn_cast<GetElementPtrInst>(user))
        return mayEscape(element);
      return !isa<LoadInst>(user);
    });
  }

  //===--------------------------------------------------------------------===//
  // Loops
  //===--------------------------------------------------------------------===//

  /// What follows each region. False where that is not one choice for all threads.
  bool findExits(const UniformFlow &flow) {
    for (Region &region : regions) {
      bool first = true;
      for (BasicBlock *block : region.blocks) {
        Instruction *end = block->getTerminator();
        SmallVector<BasicBlock *> targets;
        bool stays = false;
        for (BasicBlock *next : successors(block))
          if (isEntry(next))
            targets.push_back(next);
          else
            stays = true;
        if (isa<ReturnInst>(end))
          targets.push_back(nullptr);
        if (targets.empty())
          continue;
        bool one = all_of(targets, [&](BasicBlock *target) { return target == targets.front(); });
        if (!one) {
          if (stays || !first || flow.partingBlocks().contains(block) || !isa<BranchInst, SwitchInst>(end))
            return false;
          region.chooser = block;
        } else if (first) {
          region.next = targets.front();
        } else if (region.chooser || region.next != targets.front()) {
          return false;
        }
        first = false;
      }
    }
    return true;
  }

  bool isEntry(BasicBlock *block) const {
    auto found = regionOf.find(block);
    return found != regionOf.end() && regions[found->second].entry == block;
  }

  void buildLoops() {
    auto *done = BasicBlock::Create(context, "done", &code);
    ReturnInst::Create(context, done);
    for (Region &region : regions)
      region.begin = BasicBlock::Create(context, "region", &code);
    for (Region &region : regions)
      buildLoop(region);
    for (Region &region : regions)
      buildStep(region, done);
    BranchInst::Create(regions.front().begin, start);
    for (Region &region : regions)
      bindIds(region);
    for (auto &[use, array, type] : pending) {
      Instruction *place = placeOf(*use);
      Region &region = regions[regionOf.lookup(place->getParent())];
      IRBuilder<> b(place);
      use->set(
          b.CreateInBoundsGEP(type, array, {b.getInt64(0), b.CreateZExt(region.thread, b.getInt64Ty())}));
    }
    for (AllocaInst *alloca : replaced)
      alloca->eraseFromParent();
    MDNode *group = MDNode::getDistinct(context, {});
    for (Region &region : regions) {
      markIndependent(region, group);
      markParallel(region.loops.x.backEdge, group);
    }
  }

  /// The loops over threads around a region, up to where its last thread ends.
  void buildLoop(Region &region) {
    IRBuilder<> b(region.begin);
    region.loops = beginThreads(b, blockDim);
    region.thread =
        linearThread(b, blockDim, region.loops.x.variable, region.loops.y.variable, region.loops.z.variable);
    b.CreateBr(region.entry);
    BasicBlock *latch = region.loops.x.latch;
    if (region.chooser) {
      Instruction *end = region.chooser->getTerminator();
      region.choice = slot(end->getOperand(0)->getType(), "choice");
      new StoreInst(end->getOperand(0), region.choice, end->getIterator());
    }
    for (BasicBlock *block : region.blocks) {
      Instruction *end = block->getTerminator();
      if (isa<ReturnInst>(end)) {
        end->eraseFromParent();
        BranchInst::Create(latch, block);
      } else if (block != region.chooser) {
        for (unsigned i = 0; i < end->getNumSuccessors(); ++i)
          if (isEntry(end->getSuccessor(i)))
            end->setSuccessor(i, latch);
      }
    }
    b.SetInsertPoint(region.loops.x.exit);
    endLoop(b, region.loops.y);
    endLoop(b, region.loops.z);
    region.end = b.GetInsertBlock();
  }

  /// The way from a region to the next.
  void buildStep(Region &region, BasicBlock *done) {
    auto beginOf = [&](BasicBlock *entry) { return entry ? regions[regionOf.lookup(entry)].begin : done; };
    IRBuilder<> b(region.end);
    if (!region.chooser) {
      b.CreateBr(beginOf(region.next));
      return;
    }
    Instruction *end = region.chooser->getTerminator(), *step = end->clone();
    step->setOperand(0, b.CreateLoad(region.choice->getAllocatedType(), region.choice));
    for (unsigned i = 0; i < step->getNumSuccessors(); ++i)
      step->setSuccessor(i, beginOf(end->getSuccessor(i)));
    b.Insert(step);
    end->eraseFromParent();
    BranchInst::Create(region.loops.x.latch, region.chooser);
  }

  void bindIds(Region &region) {
    const std::pair<const char *, Value *> axes[] = {
        {"x", region.loops.x.variable}, {"y", region.loops.y.variable}, {"z", region.loops.z.variable}};
    for (BasicBlock *block : region.blocks)
      for (Instruction &instruction : make_early_inc_range(*block))
        for (auto [axis, value] : axes)
          if (CallInst *call = callOf(instruction, (Twine(kThreadId) + axis).str())) {
            call->replaceAllUsesWith(value);
            call->eraseFromParent();
            break;
          }
  }

  /// Between two barriers the threads are not ordered, so no access of one may depend on another's. Private
  /// memory without a place per thread is left out: all iterations share it.
  void markIndependent(Region &region, MDNode *group) {
    for (BasicBlock *block : region.blocks)
      for (Instruction &instruction : *block) {
        Value *address = getLoadStorePointerOperand(&instruction);
        if (!address || instruction.isAtomic())
          continue;
        auto *alloca = dyn_cast<AllocaInst>(getUnderlyingObject(address));
        if (!alloca || arrays.contains(alloca) || shared.contains(alloca))
          instruction.setMetadata(LLVMContext::MD_access_group, group);
      }
  }

  struct Pending {
    Use *use;
    AllocaInst *array;
    Type *type;
  };

  Function &code;
  LLVMContext &context;
  ArrayRef<Value *> blockDim;
  uint32_t most;
  BasicBlock *start = nullptr;
  SetVector<BasicBlock *> entries;
  DenseSet<BasicBlock *> waits; // blocks that end at a barrier
  SmallVector<Region> regions;
  DenseMap<BasicBlock *, unsigned> regionOf;
  SmallVector<AllocaInst *> memory;      // of one thread
  DenseSet<AllocaInst *> arrays, shared; // a place per thread; one memory for the block
  SmallVector<Pending> pending;
  SmallVector<AllocaInst *> replaced;
  uint64_t arrayBytes = 0;
};

} // namespace

bool makeRegions(Function &code, ArrayRef<Value *> blockDim, uint32_t most) {
  return Regions(code, blockDim, most).run();
}

} // namespace offload
