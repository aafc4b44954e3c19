//===- tile_parallel.cpp - offload-tile-parallel --------------------------===//
//
// gpu-map-parallel-loops maps the outermost loops of a nest to blocks and the next ones to threads. A plain
// scf.parallel has one level only and would run one thread per block; this pass tiles it first, so that there
// are two. Nests that already have two levels are the author's own mapping and stay as they are.
//
// What speaks in the loops (cf.assert, gpu.printf) is put into a region of its own: where a body's operation
// has an effect that is none on memory, convert-parallel-loops-to-gpu leaves the loop, and does not look into
// regions. Canonicalization takes it out again.
//
// A grid has room for 2^31 blocks along x and for 65535 along y and z. Where the loops may need more there,
// all blocks stand along x.
//
// Of more than three loops MLIR's mapping takes the outermost three, and each thread would run the innermost
// ones: neighbouring threads would be far from each other in memory. There, too, all blocks stand along x,
// and the threads are those of the innermost loops.
//
// A thread takes several elements where that keeps more of memory busy (thread_steps.h).
//
// A thread runs innermost loops of a few iterations itself (the channels of an image), and those of one.
//
//===----------------------------------------------------------------------===//

#include "loops/parallel_loops.h"
#include "loops/thread_steps.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/ParallelLoopMapper.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kMaxBlocks = 0xFFFF; // along y and z
constexpr unsigned kDimensions = 3;    // of a grid and of a block
constexpr int64_t kThreads = 256;      // of a block made here
constexpr int64_t kWarp = 32;          // of these, along the innermost of several loops
constexpr int64_t kFew = 4;            // iterations that are not worth threads of their own

/// Threads along the innermost of several loops: a warp. Where that would leave many of the last block's
/// idle, up to two warps that leave none: on the CPU, threads of a block that is not full run one by one.
int64_t widthFor(std::optional<int64_t> count) {
  constexpr int64_t kIdle = 8; // one of so many threads, or more
  if (!count || *count <= kWarp || (int64_t(llvm::alignTo(*count, kWarp)) - *count) * kIdle < *count)
    return kWarp;
  for (int64_t width = 2 * kWarp; width > kWarp; --width)
    if (*count % width == 0)
      return width;
  return kWarp;
}

/// Threads per block along each of some loops that count from 0 in steps of 1. The innermost one runs over
/// neighbouring addresses in most programs and gets a warp or two; what loops known to be short leave goes to
/// the ones around them.
SmallVector<int64_t> tileSizes(scf::ParallelOp loop) {
  unsigned loops = loop.getNumLoops();
  if (loops == 1)
    return {kThreads};
  SmallVector<int64_t> sizes(loops, 1);
  int64_t left = kThreads;
  for (unsigned i = loops; i-- > 0 && loops - i <= kDimensions;) {
    std::optional<int64_t> count = getConstantIntValue(loop.getUpperBound()[i]);
    int64_t most = i + 1 == loops ? widthFor(count) : loops - i == kDimensions ? kMaxDeep : kThreads;
    if (count)
      most = std::min(most, std::max<int64_t>(*count, 1));
    sizes[i] = std::min(most, left);
    left /= int64_t(llvm::PowerOf2Ceil(uint64_t(sizes[i])));
  }
  return sizes;
}

/// Operations with an effect on nothing that has an address.
bool speaks(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  SmallVector<MemoryEffects::EffectInstance> found;
  if (effects && op->getNumRegions() == 0 && op->getNumResults() == 0)
    effects.getEffects(found);
  return llvm::any_of(found, [](const MemoryEffects::EffectInstance &each) {
    return isa<MemoryEffects::Write>(each.getEffect()) && !each.getValue();
  });
}

void setApart(scf::ParallelOp nest) {
  SmallVector<Operation *> found;
  nest.walk([&](Operation *op) {
    if (isa<scf::ParallelOp>(op->getParentOp()) && speaks(op))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder b(op);
    auto apart = scf::ExecuteRegionOp::create(b, op->getLoc(), TypeRange{});
    b.createBlock(&apart.getRegion());
    op->moveBefore(scf::YieldOp::create(b, op->getLoc()));
  }
}

struct TileParallel : public PassWrapper<TileParallel, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileParallel)

  StringRef getArgument() const final { return "offload-tile-parallel"; }
  StringRef getDescription() const final { return "Tile outermost scf.parallel into blocks of threads"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  void runOnOperation() final {
    SmallVector<scf::ParallelOp> plain;
    for (scf::ParallelOp loop : outermostParallel(getOperation())) {
      setApart(loop);
      bool nested = false, tooMany = false;
      loop.getBody()->walk([&](scf::ParallelOp inner) {
        nested = true;
        tooMany |= inner->getParentOfType<scf::ParallelOp>() == loop && !fitsIntoBlock(inner);
      });
      if (tooMany)
        return signalPassFailure();
      bool mapped = loop->hasAttr(gpu::getMappingAttrName());
      if (!nested && !mapped)
        plain.push_back(loop);
      else if (mapped)
        runIfAny(loop);
      else
        endNoEarlier(loop);
    }
    for (scf::ParallelOp loop : plain) {
      normalize(loop);
      loop = takeInShort(loop);
      SmallVector<int64_t> tiles = tileSizes(loop);
      int64_t width = tiles.back(), steps = stepsOfThread(loop, width);
      tiles.back() *= steps;
      auto [blocks, threads] = scf::tileParallelLoop(loop, tiles, /*noMinMaxBounds=*/false);
      foldProducts(blocks);
      foldProducts(threads);
      foldBounds(blocks);
      if (steps > 1)
        giveSteps(threads, width, steps);
      bool many = blocks.getNumLoops() > kDimensions;
      if (many)
        keepInnermost(threads, kDimensions);
      if (many || !fitsIntoGrid(blocks, tiles))
        lineUp(blocks, tiles);
    }
  }

  /// The second level of a nest becomes the threads of a block. Emits an error where they are known to be
  /// more than a block may have.
  static bool fitsIntoBlock(scf::ParallelOp loop) {
    int64_t threads = 1;
    unsigned mapped = 0; // the innermost three
    for (unsigned i = loop.getNumLoops(); i-- > 0 && mapped < 3; ++mapped) {
      std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound()[i]),
                             high = getConstantIntValue(loop.getUpperBound()[i]),
                             step = getConstantIntValue(loop.getStep()[i]);
      if (low && high && step && *step > 0 && *high > *low)
        threads *= llvm::divideCeil(*high - *low, *step);
    }
    if (threads <= kMaxThreads || loop->hasAttr(gpu::getMappingAttrName()))
      return true;
    loop.emitError("the iterations of this inner parallel loop become the threads of one block: there are ")
        << threads << ", and a block has at most " << kMaxThreads
        << "; make one loop of both levels, which is tiled, or split this one";
    return false;
  }

  /// A loop whose iterations are blocks, and which ends before it starts, is launched with none: a number
  /// below zero would be an error.
  static void endNoEarlier(scf::ParallelOp loop) {
    OpBuilder before(loop);
    for (unsigned i = 0, e = loop.getNumLoops(); i < e; ++i) {
      Value low = loop.getLowerBound()[i], high = loop.getUpperBound()[i];
      std::optional<int64_t> first = getConstantIntValue(low), end = getConstantIntValue(high);
      bool isSize = first == 0 && high.getDefiningOp<memref::DimOp>();
      if (!isSize && !(first && end && *first <= *end))
        loop.getUpperBoundMutable()[i].set(arith::MaxSIOp::create(before, loop.getLoc(), high, low));
    }
  }

  /// The loops of a nest, the outermost first, as long as nothing is written between them.
  static SmallVector<scf::ParallelOp> levels(scf::ParallelOp nest) {
    SmallVector<scf::ParallelOp> found;
    while (nest) {
      found.push_back(nest);
      scf::ParallelOp inner;
      bool isAlone = true;
      for (Operation &op : nest.getBody()->without_terminator()) {
        auto loop = dyn_cast<scf::ParallelOp>(op);
        isAlone &= loop ? !inner : isMemoryEffectFree(&op) || hasSingleEffect<MemoryEffects::Read>(&op);
        inner = loop ? loop : inner;
      }
      nest = isAlone ? inner : nullptr;
    }
    return found;
  }

  /// A nest that its author maps is launched only where all of its loops have an iteration: threads may be
  /// those of any, and a block without threads would be an error.
  static void runIfAny(scf::ParallelOp nest) {
    OpBuilder b(nest);
    Location loc = nest.getLoc();
    Value any;
    for (scf::ParallelOp loop : levels(nest))
      for (auto [low, high] : llvm::zip_equal(loop.getLowerBound(), loop.getUpperBound())) {
        std::optional<int64_t> first = getConstantIntValue(low), end = getConstantIntValue(high);
        if ((first && end && *first < *end) || !(first || nest.isDefinedOutsideOfLoop(low)) ||
            !(end || nest.isDefinedOutsideOfLoop(high)))
          continue;
        Value from = first ? arith::ConstantIndexOp::create(b, loc, *first).getResult() : low,
              to = end ? arith::ConstantIndexOp::create(b, loc, *end).getResult() : high,
              some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, from, to);
        any = any ? arith::AndIOp::create(b, loc, any, some).getResult() : some;
      }
    if (any && !nest.getNumReductions())
      nest->moveBefore(scf::IfOp::create(b, loc, any, /*withElseRegion=*/false).thenYield());
  }

  /// Makes a loop count from 0 in steps of 1: bounds are then min(tile, rest) with a constant tile, whatever
  /// step the author's loop has.
  static void normalize(scf::ParallelOp loop) {
    OpBuilder before(loop);
    Location loc = loop.getLoc();
    Value zero = arith::ConstantIndexOp::create(before, loc, 0),
          one = arith::ConstantIndexOp::create(before, loc, 1);
    OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
    for (unsigned i = 0, e = loop.getNumLoops(); i < e; ++i) {
      Value low = loop.getLowerBound()[i], high = loop.getUpperBound()[i], step = loop.getStep()[i];
      // A loop that ends before it starts runs nothing; as a number of blocks the difference would be
      // negative.
      bool plain = isConstantIntValue(low, 0) && isConstantIntValue(step, 1);
      std::optional<int64_t> known = getConstantIntValue(high);
      if (plain && (known ? *known >= 0 : bool(high.getDefiningOp<memref::DimOp>())))
        continue;
      if (plain) {
        loop.getUpperBoundMutable()[i].set(known ? zero : arith::MaxSIOp::create(before, loc, high, zero));
        continue;
      }
      Value span = arith::SubIOp::create(before, loc, high, low);
      Value count = arith::CeilDivSIOp::create(before, loc, span, step);
      count = arith::MaxSIOp::create(before, loc, count, zero);
      loop.getLowerBoundMutable()[i].set(zero);
      loop.getUpperBoundMutable()[i].set(count);
      loop.getStepMutable()[i].set(one);
      Value variable = loop.getInductionVars()[i];
      auto scaled = arith::MulIOp::create(inside, loc, variable, step);
      Value original = arith::AddIOp::create(inside, loc, scaled, low);
      variable.replaceAllUsesExcept(original, scaled);
    }
  }

  /// Which loops a thread runs itself: the innermost ones while they are known to be short together, and all
  /// of one iteration. One loop is left.
  static SmallVector<bool> shortLoops(scf::ParallelOp loop) {
    unsigned loops = loop.getNumLoops();
    SmallVector<bool> found(loops, false);
    bool innermost = true;
    for (auto [i, left] = std::pair(loops, kFew); i-- > 0;) {
      std::optional<int64_t> count = getConstantIntValue(loop.getUpperBound()[i]);
      found[i] = count && *count >= 1 && *count <= (innermost ? left : 1);
      innermost &= found[i];
      if (found[i])
        left /= *count;
    }
    if (!llvm::is_contained(found, false))
      found[0] = false;
    return found;
  }

  /// Puts short loops into the body. Returns what is left to be tiled.
  static scf::ParallelOp takeInShort(scf::ParallelOp loop) {
    SmallVector<bool> within = shortLoops(loop);
    if (!llvm::is_contained(within, true) || loop.getNumReductions())
      return loop;
    auto outer = [&](OperandRange values) {
      SmallVector<Value> kept;
      for (auto [value, isWithin] : llvm::zip_equal(values, within))
        if (!isWithin)
          kept.push_back(value);
      return kept;
    };
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    auto left = scf::ParallelOp::create(b, loc, outer(loop.getLowerBound()), outer(loop.getUpperBound()),
                                        outer(loop.getStep()));
    Block *into = left.getBody();
    unsigned next = 0;
    for (auto [i, variable] : llvm::enumerate(loop.getInductionVars())) {
      if (!within[i]) {
        variable.replaceAllUsesWith(left.getInductionVars()[next++]);
        continue;
      }
      b.setInsertionPointToStart(into);
      auto inner =
          scf::ForOp::create(b, loc, loop.getLowerBound()[i], loop.getUpperBound()[i], loop.getStep()[i]);
      variable.replaceAllUsesWith(inner.getInductionVar());
      into = inner.getBody();
    }
    Block *body = loop.getBody();
    into->getOperations().splice(into->begin(), body->getOperations(), body->begin(), std::prev(body->end()));
    loop.erase();
    return left;
  }

  /// Takes away the outer loops over threads, each of which has one iteration, the one at 0.
  static void keepInnermost(scf::ParallelOp threads, unsigned kept) {
    unsigned gone = threads.getNumLoops() - kept;
    OpBuilder b(threads);
    auto rest =
        scf::ParallelOp::create(b, threads.getLoc(), threads.getLowerBound().drop_front(gone),
                                threads.getUpperBound().drop_front(gone), threads.getStep().drop_front(gone));
    for (auto [i, variable] : llvm::enumerate(threads.getInductionVars()))
      variable.replaceAllUsesWith(i < gone ? threads.getLowerBound()[i] : rest.getInductionVars()[i - gone]);
    Block *body = threads.getBody();
    rest.getBody()->getOperations().splice(rest.getBody()->begin(), body->getOperations(), body->begin(),
                                           std::prev(body->end()));
    threads.erase();
  }

  /// Is it known that the blocks of all loops but the innermost, which become the grid's x, are few enough?
  static bool fitsIntoGrid(scf::ParallelOp blocks, ArrayRef<int64_t> tiles) {
    for (unsigned i = 0; i + 1 < blocks.getNumLoops(); ++i) {
      std::optional<int64_t> high = getConstantIntValue(blocks.getUpperBound()[i]);
      if (!high || llvm::divideCeil(*high, tiles[i]) > kMaxBlocks)
        return false;
    }
    return true;
  }

  /// Makes one loop of all loops over blocks. Their numbers come from its own by divisions of 32 bits: a grid
  /// has fewer blocks than 2^31.
  static void lineUp(scf::ParallelOp blocks, ArrayRef<int64_t> tiles) {
    OpBuilder b(blocks);
    Location loc = blocks.getLoc();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
    Value total = one;
    Type i32 = b.getI32Type(), index = b.getIndexType();
    SmallVector<Value> counts;
    for (auto [high, tile] : llvm::zip(blocks.getUpperBound(), tiles)) {
      // Folded here: outlining puts only what is a constant then into the kernel.
      Value step = arith::ConstantIndexOp::create(b, loc, tile);
      Value count = b.createOrFold<arith::CeilDivSIOp>(loc, high, step);
      total = b.createOrFold<arith::MulIOp>(loc, total, count);
      counts.push_back(b.createOrFold<arith::IndexCastUIOp>(loc, i32, count));
    }
    auto line = scf::ParallelOp::create(b, loc, zero, total, one);
    b.setInsertionPointToStart(line.getBody());
    Value rest = arith::IndexCastUIOp::create(b, loc, i32, line.getInductionVars()[0]);
    for (unsigned i = blocks.getNumLoops(); i-- > 0;) {
      Value number = i ? arith::RemUIOp::create(b, loc, rest, counts[i]) : rest;
      if (i)
        rest = arith::DivUIOp::create(b, loc, rest, counts[i]);
      number = arith::IndexCastUIOp::create(b, loc, index, number);
      Value tile = arith::ConstantIndexOp::create(b, loc, tiles[i]);
      Value start = arith::MulIOp::create(b, loc, number, tile);
      blocks.getInductionVars()[i].replaceAllUsesWith(start);
    }
    Block *body = blocks.getBody();
    line.getBody()->getOperations().splice(b.getInsertionPoint(), body->getOperations(), body->begin(),
                                           std::prev(body->end()));
    blocks.erase();
  }

  /// Makes numbers of steps that are products of numbers: where all tiles are whole, the number of threads is
  /// such a product, too, and what is a number is known to the kernel.
  static void foldProducts(scf::ParallelOp loop) {
    OpBuilder b(loop);
    for (OpOperand &operand : loop->getOpOperands())
      if (auto product = operand.get().getDefiningOp<arith::MulIOp>()) {
        std::optional<int64_t> one = getConstantIntValue(product.getLhs()),
                               other = getConstantIntValue(product.getRhs());
        if (one && other)
          operand.set(arith::ConstantIndexOp::create(b, loop.getLoc(), *one * *other));
      }
  }

  /// Folds the tile sizes into the bounds min(tile, rest), where convert-parallel-loops-to-gpu looks for a
  /// constant. Not the canonicalizer: it would also take away a loop over one block, and the loop over
  /// threads with it.
  void foldBounds(scf::ParallelOp blocks) {
    llvm::SetVector<Operation *>
        bounds; // the products step * tile that the bounds are made of, then the bounds
    blocks.walk([&](affine::AffineMinOp op) {
      for (Value operand : op.getOperands())
        if (auto product = operand.getDefiningOp<arith::MulIOp>())
          bounds.insert(product);
    });
    blocks.walk([&](affine::AffineMinOp op) { bounds.insert(op); });
    RewritePatternSet patterns(&getContext());
    affine::AffineMinOp::getCanonicalizationPatterns(patterns, &getContext());
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    (void)applyOpPatternsGreedily(bounds.getArrayRef(), std::move(patterns), config);
  }
};

} // namespace

void registerTileParallelPass() { PassRegistration<TileParallel>(); }

} // namespace offload
