//===- map_foralls.cpp - offload-map-foralls ------------------------------===//
//
// An scf.forall that its author maps to blocks (#gpu.block<x>), with loops inside that are mapped to threads,
// becomes a gpu.launch. What stands between the inner loops belongs to the block: all threads compute the
// same values, share what is allocated there, and share out linalg operations and copies; a store is one
// thread's. A barrier stands on both sides of whatever writes.
//
// Of other loops (mapped linearly or with a mask, to warps, with numbers of threads that are not known) the
// mapping is taken away: what makes kernels of loops knows none.
//
//===----------------------------------------------------------------------===//

#include "loops/map_foralls.h"
#include "loops/parallel_loops.h"
#include "passes.h"
#include "spaces.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

using Sizes = std::array<int64_t, 3>;

/// Does each dimension of the loop stand for x, y or z of that kind, and no two for the same?
template <typename Mapping> bool isMappedTo(scf::ForallOp loop) {
  llvm::SmallDenseSet<int64_t> dimensions;
  return loop.getMapping() && loop.getRank() > 0 && int64_t(loop.getMapping()->size()) == loop.getRank() &&
         llvm::all_of(*loop.getMapping(), [&](Attribute each) {
           auto mapping = dyn_cast<Mapping>(each);
           return mapping && !mapping.isLinearMapping() && dimensions.insert(mapping.getMappingId()).second;
         });
}

/// x, y or z of a loop's dimension.
gpu::Dimension dimensionOf(scf::ForallOp loop, unsigned i) {
  return gpu::Dimension(cast<DeviceMappingAttrInterface>((*loop.getMapping())[i]).getMappingId());
}

/// How many threads a loop has iterations for, where that is known.
std::optional<Sizes> threadsOf(scf::ForallOp loop) {
  Sizes sizes = {1, 1, 1};
  auto bounds = llvm::zip_equal(loop.getMixedLowerBound(), loop.getMixedUpperBound(), loop.getMixedStep());
  for (auto [i, bound] : llvm::enumerate(bounds)) {
    auto [from, to, step] = bound;
    std::optional<int64_t> low = getConstantIntValue(from), high = getConstantIntValue(to),
                           by = getConstantIntValue(step);
    if (!low || !high || !by || *by <= 0 || *high <= *low)
      return std::nullopt;
    sizes[size_t(dimensionOf(loop, unsigned(i)))] = llvm::divideCeilSigned(*high - *low, *by);
  }
  return sizes;
}

bool hasParallelLoops(Operation *op) {
  auto found = op->walk([&](Operation *inner) {
    bool is = inner != op && isa<scf::ForallOp, scf::ParallelOp, gpu::LaunchOp, gpu::BarrierOp>(inner);
    return is ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

/// What the threads of a block share out, or one of them does for all.
bool isOfTheBlock(Operation *op) {
  auto linalg = dyn_cast<linalg::LinalgOp>(op);
  auto copy = dyn_cast<memref::CopyOp>(op);
  bool hasRanks =
      copy && isa<MemRefType>(copy.getSource().getType()) && isa<MemRefType>(copy.getTarget().getType());
  return hasRanks || isa<memref::StoreOp>(op) || (linalg && linalg.hasPureBufferSemantics());
}

bool readsAtMost(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return !op->getNumRegions() &&
         (isMemoryEffectFree(op) || (effects && effects.onlyHasEffect<MemoryEffects::Read>()));
}

/// Memory that the threads of a block will share.
bool isShared(Operation &op) {
  auto made = dyn_cast<memref::AllocOp>(op);
  return op.hasAttr(kOfBlock) ||
         (made && made.getType().hasStaticShape() && made.getType().getLayout().isIdentity() &&
          (!made.getType().getMemorySpace() || isWorkgroup(made.getType().getMemorySpace())) &&
          !leavesIteration(made));
}

/// In bytes. What has no size here has one of 16 bytes at most, as complex numbers have.
int64_t bytesOf(Operation &op) {
  auto type = cast<MemRefType>(op.getResult(0).getType());
  Type element = type.getElementType();
  return type.getNumElements() *
         (element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 16);
}

/// Whether each thread of a block can go through these operations. Adds the sizes of the loops over threads,
/// and of the memory that they share.
bool isForThreads(Block &block, SmallVectorImpl<Sizes> &threads, int64_t &bytes) {
  return llvm::all_of(block, [&](Operation &op) {
    if (auto loop = dyn_cast<scf::ForallOp>(op)) {
      std::optional<Sizes> sizes;
      if (isMappedTo<gpu::GPUThreadMappingAttr>(loop) && !loop->getNumResults() && !hasParallelLoops(loop))
        sizes = threadsOf(loop);
      if (sizes)
        threads.push_back(*sizes);
      return sizes.has_value();
    }
    if (isa<scf::ForOp, scf::IfOp>(op))
      return llvm::all_of(op.getRegions(), [&](Region &region) {
        return llvm::all_of(region, [&](Block &inner) { return isForThreads(inner, threads, bytes); });
      });
    if (isShared(op)) {
      bytes += bytesOf(op);
      return bytes <= kSharedBytes;
    }
    if (auto free = dyn_cast<memref::DeallocOp>(op)) {
      Operation *made = free.getMemref().getDefiningOp();
      return made && made->getBlock() == op.getBlock() && isShared(*made);
    }
    return isa<scf::InParallelOp, scf::YieldOp>(op) || isOfTheBlock(&op) || readsAtMost(&op);
  });
}

/// The block that all loops over threads of a mapped loop fit into.
std::optional<Sizes> blockOf(scf::ForallOp loop) {
  SmallVector<Sizes> loops;
  int64_t bytes = 0;
  if (isRunByThreads(loop) || !loop->getParentOfType<func::FuncOp>() || loop->getNumResults() ||
      !isOverBlocks(loop) || !isForThreads(*loop.getBody(), loops, bytes) || loops.empty())
    return std::nullopt;
  Sizes block = {1, 1, 1};
  for (const Sizes &sizes : loops)
    for (size_t i = 0; i < 3; ++i)
      block[i] = std::max(block[i], sizes[i]);
  if (block[0] > kMaxThreads || block[1] > kMaxThreads || block[2] > kMaxDeep ||
      block[0] * block[1] * block[2] > kMaxThreads)
    return std::nullopt;
  return block;
}

/// Makes a launch of one loop.
class Launch {
public:
  Launch(scf::ForallOp loop, const Sizes &block, IRRewriter &rewriter)
      : loop(loop), block(block), b(rewriter), loc(loop.getLoc()) {}

  void run() {
    b.setInsertionPoint(loop);
    SmallVector<Value> grid(3, index(1)), first, steps;
    for (unsigned i = 0; i < loop.getRank(); ++i) {
      Value from = value(loop.getMixedLowerBound()[i]), to = value(loop.getMixedUpperBound()[i]);
      steps.push_back(value(loop.getMixedStep()[i]));
      first.push_back(from);
      Value span = b.createOrFold<arith::SubIOp>(loc, to, from);
      Value count = b.createOrFold<arith::CeilDivSIOp>(loc, span, steps.back());
      grid[size_t(dimensionOf(loop, i))] = b.createOrFold<arith::MaxSIOp>(loc, count, index(0));
    }
    launch = gpu::LaunchOp::create(b, loc, grid[0], grid[1], grid[2], index(block[0]), index(block[1]),
                                   index(block[2]));
    b.setInsertionPointToEnd(&launch.getBody().front());
    gpu::TerminatorOp::create(b, loc);
    b.setInsertionPointToStart(&launch.getBody().front());
    gpu::KernelDim3 blocks = launch.getBlockIds(), threads = launch.getThreadIds();
    ids = {threads.x, threads.y, threads.z};
    SmallVector<Value> variables = scaled(loop, {blocks.x, blocks.y, blocks.z}, first, steps);
    b.eraseOp(loop.getTerminator());
    b.inlineBlockBefore(loop.getBody(), launch.getBody().front().getTerminator(), variables);
    b.eraseOp(loop);
    SmallVector<Operation *> writers;
    SmallVector<Operation *> shared;
    launch.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<memref::DeallocOp>(op)) {
        op->erase();
        return WalkResult::skip();
      }
      if (isShared(*op))
        shared.push_back(op);
      if (!isa<scf::ForallOp>(op) && !isOfTheBlock(op))
        return WalkResult::advance();
      writers.push_back(op);
      return WalkResult::skip(); // what a thread does is its own
    });
    llvm::for_each(shared, [&](Operation *op) { share(op); });
    llvm::for_each(writers, [&](Operation *op) { fence(op); });
  }

private:
  Value index(int64_t number) { return arith::ConstantIndexOp::create(b, loc, number); }
  Value value(OpFoldResult number) { return getValueOrCreateConstantIndexOp(b, loc, number); }

  SmallVector<Value> scaled(scf::ForallOp of, const std::array<Value, 3> &by, ValueRange first,
                            ValueRange steps) {
    SmallVector<Value> found;
    for (unsigned i = 0; i < of.getRank(); ++i) {
      Value number = b.createOrFold<arith::MulIOp>(loc, by[size_t(dimensionOf(of, i))], steps[i]);
      found.push_back(b.createOrFold<arith::AddIOp>(loc, number, first[i]));
    }
    return found;
  }

  /// Workgroup memory (offload-block-memory makes attributions of it), under the type that its users know.
  void share(Operation *op) {
    auto type = cast<MemRefType>(op->getResult(0).getType()), workgroup = type;
    bool isPlain = !type.getMemorySpace();
    if (isPlain) {
      auto space = gpu::AddressSpaceAttr::get(op->getContext(), gpu::AddressSpace::Workgroup);
      workgroup = MemRefType::get(type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(), space);
    }
    b.setInsertionPointToStart(&launch.getBody().front());
    auto alignment = op->getAttrOfType<IntegerAttr>("alignment");
    Value memory = memref::AllocOp::create(b, op->getLoc(), workgroup, alignment);
    b.setInsertionPoint(op);
    if (isPlain)
      memory = memref::MemorySpaceCastOp::create(b, op->getLoc(), type, memory);
    b.replaceOp(op, memory);
  }

  void fence(Operation *op) {
    loc = op->getLoc();
    if (!isFirst(op)) {
      b.setInsertionPoint(op);
      gpu::BarrierOp::create(b, loc);
    }
    if (!isa<gpu::TerminatorOp>(op->getNextNode())) {
      b.setInsertionPointAfter(op);
      gpu::BarrierOp::create(b, loc);
    }
    b.setInsertionPoint(op);
    if (auto inner = dyn_cast<scf::ForallOp>(op))
      return runByThreads(inner);
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      op = linalg::makeMemRefCopyOp(b, loc, copy.getSource(), copy.getTarget());
      b.eraseOp(copy);
      b.setInsertionPoint(op);
    }
    if (isa<linalg::LinalgOp>(op) && shareOut(cast<linalg::LinalgOp>(op)))
      return;
    Value chosen = areFirst({1, 1, 1});
    auto one = scf::IfOp::create(b, loc, chosen, /*withElseRegion=*/false);
    b.moveOpBefore(op, one.thenBlock()->getTerminator());
  }

  /// Whether nothing has touched memory when the block comes to an operation.
  bool isFirst(Operation *op) {
    Block &body = launch.getBody().front();
    return op->getBlock() == &body &&
           llvm::all_of(llvm::make_range(body.begin(), op->getIterator()),
                        [](Operation &before) { return isMemoryEffectFree(&before); });
  }

  /// Whether the thread is one of the first so many along each dimension.
  Value areFirst(const Sizes &sizes) {
    Value all;
    for (size_t i = 0; i < 3; ++i) {
      if (sizes[i] == block[i])
        continue;
      Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, ids[i], index(sizes[i]));
      all = all ? arith::AndIOp::create(b, loc, all, is).getResult() : is;
    }
    return all ? all : arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1).getResult();
  }

  void runByThreads(scf::ForallOp inner) {
    Value chosen = areFirst(*threadsOf(inner));
    SmallVector<Value> first =
                           llvm::map_to_vector(inner.getMixedLowerBound(), [&](auto v) { return value(v); }),
                       steps = llvm::map_to_vector(inner.getMixedStep(), [&](auto v) { return value(v); });
    SmallVector<Value> variables = scaled(inner, ids, first, steps);
    auto body = scf::IfOp::create(b, loc, chosen, /*withElseRegion=*/false);
    b.eraseOp(inner.getTerminator());
    b.inlineBlockBefore(inner.getBody(), body.thenBlock()->getTerminator(), variables);
    b.eraseOp(inner);
  }

  /// Gives each thread its share of the operation's parallel loops. False where these are not the outer ones.
  bool shareOut(linalg::LinalgOp op) {
    SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
    size_t parallel = size_t(llvm::count_if(kinds, linalg::isParallelIterator));
    if (!parallel || !llvm::all_of(ArrayRef(kinds).take_front(parallel), linalg::isParallelIterator))
      return false;
    FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToParallelLoops(b, op);
    if (failed(loops) || loops->empty())
      return false;
    b.eraseOp(op);
    auto nest = cast<scf::ParallelOp>(loops->front());
    b.setInsertionPoint(nest);
    // Threads that follow each other take elements that do.
    Value number = ids[2], total = index(1);
    for (size_t i : {1, 0}) {
      number = b.createOrFold<arith::MulIOp>(loc, number, index(block[i]));
      number = b.createOrFold<arith::AddIOp>(loc, number, ids[i]);
    }
    for (Value count : nest.getUpperBound())
      total = b.createOrFold<arith::MulIOp>(loc, total, count);
    auto mine = scf::ForOp::create(b, loc, number, total, index(block[0] * block[1] * block[2]));
    b.setInsertionPointToStart(mine.getBody());
    SmallVector<Value> variables(nest.getNumLoops());
    Value rest = mine.getInductionVar();
    for (unsigned i = nest.getNumLoops(); i-- > 1;) {
      variables[i] = arith::RemUIOp::create(b, loc, rest, nest.getUpperBound()[i]);
      rest = arith::DivUIOp::create(b, loc, rest, nest.getUpperBound()[i]);
    }
    variables[0] = rest;
    b.eraseOp(nest.getBody()->getTerminator());
    b.inlineBlockBefore(nest.getBody(), mine.getBody()->getTerminator(), variables);
    b.eraseOp(nest);
    return true;
  }

  scf::ForallOp loop;
  Sizes block;
  IRRewriter &b;
  Location loc;
  gpu::LaunchOp launch;
  std::array<Value, 3> ids;
};

struct MapForalls : public PassWrapper<MapForalls, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MapForalls)

  StringRef getArgument() const final { return "offload-map-foralls"; }
  StringRef getDescription() const final { return "Make launches of loops that are mapped to blocks"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect, linalg::LinalgDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    SmallVector<scf::ForallOp> outermost;
    llvm::SmallPtrSet<Operation *, 4> inKernels = calledFromKernels(getOperation());
    getOperation()->walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
      if (!inKernels.contains(loop->getParentOfType<func::FuncOp>()))
        outermost.push_back(loop);
      return WalkResult::skip();
    });
    for (scf::ForallOp loop : outermost)
      if (std::optional<Sizes> block = blockOf(loop))
        Launch(loop, *block, rewriter).run();
    getOperation()->walk([](Operation *op) {
      op->removeDiscardableAttr(kOfBlock);
      if (auto loop = dyn_cast<scf::ForallOp>(op); loop && !isInKernel(loop)) // where it is an error
        loop.removeMappingAttr();
    });
  }
};

} // namespace

bool isOverBlocks(scf::ForallOp loop) { return isMappedTo<gpu::GPUBlockMappingAttr>(loop); }

void registerMapForallsPass() { PassRegistration<MapForalls>(); }

} // namespace offload
