//===- block_tiles.cpp - offload-block-tiles ------------------------------===//
//
// A product of matrices that are large enough: linalg operations whose two inputs have the loop that reduces
// in common, and a loop of the output each for itself. A block has a square tile of the output. It takes what
// the tile needs of the inputs through its workgroup memory, a few steps at a time, so that an element is
// loaded once for a row of threads and not once for each; a thread has some rows and columns of the tile, so
// that what it loads from there serves several sums. Sums stay in registers; their steps keep their order.
//
// Halves and bytes are multiplied by matrix units as well: the kernel has that for each kind of units
// (register_tiles.cpp, fragment_tiles.cpp) beside what threads do alone; offload-choose-products keeps one of
// them. Where there are enough of them to fill a device, their tiles are larger, as that loads less for each
// sum. So are those of words, which threads of GPUs multiply (wide_tiles.cpp). Where neither is, as on the
// CPU, threads do a large tile by parts.
//
//===----------------------------------------------------------------------===//

#include "loops/block_tile.h"
#include "loops/row_threads.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kSide = 64;              // of a block's tile,
constexpr int64_t kLargeSide = 128;        // and of a large one,
constexpr int64_t kManyTiles = 96;         // of which so many fill most devices
constexpr int64_t kFew = 32;               // rows or columns, not both, for which units are worth a tile
constexpr int64_t kLeastSteps = 128;       // that are worth the way through the block's memory,
constexpr int64_t kLeastCrossed = 16;      // and where threads alone would read across the right input's rows
constexpr int64_t kThreads = kTileThreads; // of a block, along x and along y
constexpr int64_t kFactorPadding = 16;     // columns more of what has few bits
// Rows that the CPU does at a time: as many sums of a thread as its vector registers hold, eight, where a
// vector is of several threads. A GPU's thread has registers for twice as many, and loads less for each.
constexpr int64_t kCpuRows = 32;
constexpr int64_t kMostPlain = 6; // operations of a step that is written out for each sum of a thread

/// An input that has the steps of a loop, and not those of another; null where not one alone does.
OpOperand *onlyInput(linalg::LinalgOp op, unsigned with, std::optional<unsigned> without) {
  OpOperand *found = nullptr;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!map.isFunctionOfDim(with) || (without && map.isFunctionOfDim(*without)))
      continue;
    if (found)
      return nullptr;
    found = input;
  }
  return found;
}

/// Whether a tile's last columns and rows may be computed where there are none: nothing fails, nothing is
/// written, whatever the numbers are.
bool canBeTried(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &each) { return isPure(&each); });
}

/// What matrix units multiply.
struct UnitFactor {
  Type element;     // of the inputs
  bool byRegisters; // whether those of nvgpu.mma.sync do
};

/// That of an operation which sums up products of halves, of bfloats, or of bytes with a sign, and nothing
/// else.
std::optional<UnitFactor> factorOf(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  Type element = body->getNumArguments() == 3 ? body->getArgument(0).getType() : Type();
  Operation *sum = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!element || !sum || body->getArgument(1).getType() != element)
    return std::nullopt;
  Type type = sum->getResult(0).getType();
  bool isHalf = element.isF16() || element.isBF16();
  bool ofHalves = isHalf && isa<arith::AddFOp>(sum) && (type.isF32() || type == element);
  bool ofBytes = element.isInteger(8) && isa<arith::AddIOp>(sum) && type.isInteger(32);
  Value before = body->getArgument(2);
  if ((!ofHalves && !ofBytes) || !llvm::is_contained(sum->getOperands(), before))
    return std::nullopt;
  Operation *product = sum->getOperand(sum->getOperand(0) == before ? 1 : 0).getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return std::nullopt;
  auto plain = [](Value value) {
    Operation *extended = value.getDefiningOp();
    return isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp>(extended) ? extended->getOperand(0) : value;
  };
  Value left = plain(product->getOperand(0)), right = plain(product->getOperand(1));
  if (left == right || !llvm::is_contained(body->getArguments().take_front(2), left) ||
      !llvm::is_contained(body->getArguments().take_front(2), right))
    return std::nullopt;
  return UnitFactor{element, isHalf};
}

/// How many rows and columns a product has at least that is done by tiles. Few rows of halves that meet many
/// of weights take as long as these take to load: GPUs' units, which do half of a tile for nothing then, are
/// not what that waits for.
int64_t leastSide(linalg::LinalgOp op) {
  std::optional<UnitFactor> factor = factorOf(op);
  return factor && factor->element.isFloat() ? kFew : kSide;
}

std::optional<Product> productOf(linalg::LinalgOp op) {
  SmallVector<unsigned> reduction, parallel;
  op.getReductionDims(reduction);
  op.getParallelDims(parallel);
  if (!op.hasPureBufferSemantics() || reduction.size() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumDpsInputs() != 2 || !canBeTried(op))
    return std::nullopt;
  for (OpOperand &operand : op->getOpOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.get().getType());
    if (!memref || !op.getMatchingIndexingMap(&operand).isProjectedPermutation() ||
        !canBeHandedOn(memref.getElementType()))
      return std::nullopt;
  }
  Product found;
  found.depth = reduction[0];
  std::optional<unsigned> column = loopAlong(*op.getDpsInitOperand(0));
  if (!column)
    return std::nullopt;
  found.column = *column;
  found.right = onlyInput(op, found.column, std::nullopt);
  bool hasRow = false;
  for (unsigned loop : parallel) // the innermost of those that the other input alone has
    if (loop != found.column && found.right)
      if (OpOperand *input = onlyInput(op, loop, found.column); input && onlyInput(op, loop, std::nullopt)) {
        found.row = loop;
        found.left = input;
        hasRow = true;
      }
  if (!hasRow || !op.getMatchingIndexingMap(found.left).isFunctionOfDim(found.depth) ||
      !op.getMatchingIndexingMap(found.right).isFunctionOfDim(found.depth))
    return std::nullopt;
  found.leastSteps = loopAlong(*found.right) == found.column ? kLeastSteps : kLeastCrossed;
  auto isShort = [&](unsigned loop, int64_t least) {
    int64_t range = op.getStaticLoopRanges()[loop];
    return !ShapedType::isDynamic(range) && range < least;
  };
  int64_t least = leastSide(op);
  if (isShort(found.row, least) || isShort(found.column, least) || isShort(found.depth, found.leastSteps) ||
      (isShort(found.row, kSide) && isShort(found.column, kSide)))
    return std::nullopt;
  return found;
}

class Tiles {
public:
  Tiles(linalg::LinalgOp op, const LinalgSteps &steps, const Product &product)
      : op(op), steps(steps), product(product), b(op), loc(op.getLoc()), depth(depthFor(product)),
        factor(factorOf(op)) {
    if (factor && factor->element.isInteger()) // the units take neighbours along the steps together
      factor->byRegisters =
          loopAlong(*product.left) == product.depth && loopAlong(*product.right) == product.depth;
  }

  void replace() {
    for (const Range &range : op.createLoopRanges(b, loc))
      sizes.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
    int64_t least = leastSide(op);
    Value areMany;
    if (least < kSide) {
      auto isLong = [&](unsigned loop) -> Value {
        return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, sizes[loop], index(b, kSide));
      };
      areMany = b.createOrFold<arith::OrIOp>(loc, isLong(product.row), isLong(product.column));
    }
    launchWhereLong(
        b, op, sizes, {{product.row, least}, {product.column, least}, {product.depth, product.leastSteps}},
        [&] {
          if (!factor && !isOfWords())
            return launch(kSide);
          whereLeast(b, loc, largeTiles(), kManyTiles, [&] { launch(kLargeSide); }, [&] { launch(kSide); });
        },
        areMany);
  }

private:
  bool isOfTile(unsigned loop) const { return loop == product.row || loop == product.column; }

  /// Whether threads of GPUs do the product by wide_tiles.cpp: sums of words, in as many registers as a
  /// thread has of them, and steps of few instructions, which are written out for each.
  bool isOfWords() {
    auto areWords = [](OpOperand *operand) {
      return cast<MemRefType>(operand->get().getType()).getElementTypeBitWidth() <= 32;
    };
    auto isPlain = [](Operation &each) {
      return isa<arith::ArithDialect>(each.getDialect()) && each.getNumRegions() == 0 &&
             !isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                  arith::RemUIOp, arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(each);
    };
    Block *body = op.getBlock();
    return llvm::all_of(ArrayRef<OpOperand *>{product.left, product.right},
                        [](OpOperand *input) {
                          return cast<MemRefType>(input->get().getType()).getElementTypeBitWidth() == 32;
                        }) &&
           areWords(op.getDpsInitOperand(0)) && range_size(body->without_terminator()) <= kMostPlain &&
           llvm::all_of(body->without_terminator(), isPlain);
  }

  /// How many large tiles are whole.
  Value largeTiles() {
    Value tiles = index(b, 1);
    for (auto [loop, count] : llvm::enumerate(sizes)) {
      if (loop == product.depth)
        continue;
      Value number =
          isOfTile(loop) ? b.createOrFold<arith::DivUIOp>(loc, count, index(b, kLargeSide)) : count;
      tiles = b.createOrFold<arith::MulIOp>(loc, tiles, number);
    }
    return tiles;
  }

  static int64_t depthFor(const Product &product) {
    auto isWide = [](OpOperand *input) {
      return cast<MemRefType>(input->get().getType()).getElementTypeBitWidth() > 32;
    };
    return isWide(product.left) || isWide(product.right) ? 16 : 32;
  }

  /// An input's elements in a block's memory: as rows along which threads load, the right one's always along
  /// the columns, in which neighbouring threads want them.
  struct Held {
    OpOperand *input;
    unsigned own;            // its loop of the output
    bool alongOwn;           // and whether that one's steps are neighbours in memory, else the reduction's
    bool isOwnLast;          // in the block's memory
    arith::ExtFOp extension; // of an element, which is held as what it gives; null: as they are
    Value memory;
  };

  void launch(int64_t side) {
    SmallVector<Value> tiles = sizes;
    tiles[product.depth] = index(b, 1);
    Value one = index(b, 1), blocks = one;
    for (auto [loop, count] : llvm::enumerate(tiles)) {
      if (isOfTile(loop))
        count = b.createOrFold<arith::CeilDivUIOp>(loc, count, index(b, side));
      blocks = b.createOrFold<arith::MulIOp>(loc, blocks, count);
    }
    Value threads = index(b, kThreads);
    auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, threads, threads, one);
    x = launch.getThreadIds().x;
    y = launch.getThreadIds().y;
    OpBuilder in = OpBuilder::atBlockEnd(&launch.getBody().front());
    first = placeOfRow(in, loc, launch.getBlockIds().x, tiles);
    for (unsigned loop : {product.row, product.column})
      first[loop] = arith::MulIOp::create(in, loc, first[loop], index(in, side));
    OpBuilder alone = in;
    BlockTile tile{op, product, side, sizes, first, x, y};
    if (isOfWords()) // no subgroups: threads of all GPUs can; in the third place: blocks that are to find
                     // room at once
      alone = choice(alone, {0, 32, 2}, [&](OpBuilder &each) { multiplyByFours(each, launch, tile, steps); });
    if (factor) {
      Type element = factor->element;
      int64_t bits = element.getIntOrFloatBitWidth();
      if (factor->byRegisters)
        alone =
            choice(alone, {32, bits, 2}, [&](OpBuilder &units) { multiplyByRegisters(units, launch, tile); });
      for (int64_t subgroup : {32, 64})
        alone = choice(
            alone, {subgroup, bits},
            [&](OpBuilder &units) { multiplyByFragments(units, launch, tile, subgroup); }, element.isBF16());
    }
    if (!isOfWords()) {
      Held left = held(launch, product.left, product.row, kSide);
      Held right = held(launch, product.right, product.column, kSide);
      alone = choice(alone, {0, 0}, [&](OpBuilder &gpus) {
        eachPart(gpus, side, kSide, [&](OpBuilder &part) { multiplyAlone(part, left, right, kSide); });
      });
    }
    // A CPU extends an element when it comes: not once for each sum.
    Held left = held(launch, product.left, product.row, kCpuRows, extensionOf(product.left));
    Held right = held(launch, product.right, product.column, kSide, extensionOf(product.right));
    eachPart(alone, side, kCpuRows, [&](OpBuilder &part) { multiplyOnCpu(part, left, right); });
    gpu::TerminatorOp::create(in, loc);
  }

  /// Writes what units do, of a subgroup of so many threads for factors of so many bits; a builder for what
  /// is done without them. `ofBFloats`: units have these.
  OpBuilder choice(OpBuilder &in, ArrayRef<int64_t> units, function_ref<void(OpBuilder &)> write,
                   bool ofBFloats = false) {
    Value size = gpu::SubgroupSizeOp::create(in, loc, IntegerAttr());
    Value isOne =
        arith::CmpIOp::create(in, loc, units.front() ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne,
                              size, index(in, units.front()));
    auto either = scf::IfOp::create(in, loc, isOne, /*withElseRegion=*/true);
    either->setAttr(kMatrixUnits, in.getDenseI64ArrayAttr(units));
    if (ofBFloats)
      either->setAttr(kBFloats, in.getUnitAttr());
    OpBuilder then = either.getThenBodyBuilder();
    write(then);
    return either.getElseBodyBuilder();
  }

  /// Goes through the parts of a tile that there are, of so many rows and kSide columns.
  void eachPart(OpBuilder &in, int64_t side, int64_t height, function_ref<void(OpBuilder &)> part) {
    SmallVector<Value> from = first;
    auto along = [&](OpBuilder &at, unsigned loop, int64_t step, function_ref<void(OpBuilder &)> write) {
      if (step == side)
        return write(at);
      Value rest = arith::SubIOp::create(at, loc, sizes[loop], from[loop]);
      Value until = arith::MinUIOp::create(at, loc, rest, index(at, side));
      scf::ForOp::create(at, loc, index(at, 0), until, index(at, step), ValueRange(),
                         [&](OpBuilder &body, Location, Value number, ValueRange) {
                           first[loop] = arith::AddIOp::create(body, loc, from[loop], number);
                           write(body);
                           scf::YieldOp::create(body, loc);
                         });
    };
    along(in, product.row, height, [&](OpBuilder &rows) { along(rows, product.column, kSide, part); });
    first = from;
  }

  /// A part of kCpuRows: where all of it exists, vectors ask nothing.
  void multiplyOnCpu(OpBuilder &in, const Held &left, const Held &right) {
    if (areAll(product.row) && areAll(product.column))
      return multiplyAlone(in, left, right, kCpuRows);
    auto exist = [&](unsigned loop, int64_t count) {
      Value behind = arith::AddIOp::create(in, loc, first[loop], index(in, count));
      return arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ule, behind, sizes[loop]);
    };
    Value isWhole =
        arith::AndIOp::create(in, loc, exist(product.row, kCpuRows), exist(product.column, kSide));
    auto either = scf::IfOp::create(in, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder then = either.getThenBodyBuilder(), otherwise = either.getElseBodyBuilder();
    isWholePart = true;
    multiplyAlone(then, left, right, kCpuRows);
    isWholePart = false;
    multiplyAlone(otherwise, left, right, kCpuRows);
  }

  /// A part of so many rows by threads.
  void multiplyAlone(OpBuilder &in, const Held &left, const Held &right, int64_t height) {
    rows.clear();
    columns.clear();
    for (int64_t i = 0; i < height; i += kThreads)
      rows.push_back(arith::AddIOp::create(in, loc, y, index(in, i)));
    for (int64_t i = 0; i < kSide; i += kThreads)
      columns.push_back(arith::AddIOp::create(in, loc, x, index(in, i)));
    int64_t range = op.getStaticLoopRanges()[product.depth];
    whole = sizes[product.depth];
    if (ShapedType::isDynamic(range) || range % depth != 0) {
      Value rest = arith::RemUIOp::create(in, loc, whole, index(in, depth));
      whole = arith::SubIOp::create(in, loc, whole, rest);
    }
    SmallVector<Value> sums =
        allSteps(in, atOutput(in), [&](OpBuilder &at, Value from, Value count, ValueRange sofar) {
          return add(at, from, count, left, right, sofar);
        });
    eachElement(in, [&](OpBuilder &at, ValueRange iteration, int64_t number) {
      OpOperand &output = *op.getDpsInitOperand(0);
      memref::StoreOp::create(at, loc, sums[size_t(number)], output.get(), placeOf(at, output, iteration));
    });
  }

  using Step = function_ref<SmallVector<Value>(OpBuilder &, Value from, Value count, ValueRange sofar)>;

  /// Sums of all steps: as many at a time as the block holds, and those that are left.
  SmallVector<Value> allSteps(OpBuilder &in, ValueRange before, Step step) {
    Value all = sizes[product.depth];
    auto along =
        scf::ForOp::create(in, loc, index(in, 0), whole, index(in, depth), before,
                           [&](OpBuilder &body, Location, Value from, ValueRange sofar) {
                             scf::YieldOp::create(body, loc, step(body, from, index(body, depth), sofar));
                           });
    SmallVector<Value> sums(along.getResults());
    if (whole != all)
      sums = step(in, whole, arith::SubIOp::create(in, loc, all, whole), sums);
    return sums;
  }

  /// What a step makes words of an input's halves by, before it does anything else with them; null where it
  /// does not. Not of bytes: products of numbers that are known to be small take shorter instructions.
  arith::ExtFOp extensionOf(OpOperand *input) {
    BlockArgument element = op.getMatchingBlockArgument(input);
    auto isIt = [&](Operation *user) { // where each step does it
      return isa<arith::ExtFOp>(user) && user->getResult(0).getType().isF32() &&
             user->getBlock() == op.getBlock();
    };
    bool isExtended = !element.use_empty() && llvm::all_of(element.getUsers(), isIt);
    return isExtended ? cast<arith::ExtFOp>(*element.user_begin()) : arith::ExtFOp();
  }

  /// The block's memory for an input, of so many steps of its own loop.
  Held held(gpu::LaunchOp launch, OpOperand *input, unsigned own, int64_t owns,
            arith::ExtFOp extension = {}) {
    bool alongOwn = loopAlong(*input) == own, isOwnLast = alongOwn || own == product.column;
    // A column too many keeps threads that have steps of their own in different banks.
    int64_t more = factor && !extension ? kFactorPadding : alongOwn ? 0 : 1;
    auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
    SmallVector<int64_t> shape{depth, owns + more};
    if (!isOwnLast)
      shape = {owns, depth + more};
    Type element = extension ? extension.getType() : getElementTypeOrSelf(input->get().getType());
    auto type = MemRefType::get(shape, element, MemRefLayoutAttrInterface(), space);
    return {input, own, alongOwn, isOwnLast, extension, launch.addWorkgroupAttribution(type, loc)};
  }

  Value atHeld(OpBuilder &in, const Held &from, Value own, Value step) {
    return memref::LoadOp::create(in, loc, from.memory,
                                  from.isOwnLast ? ValueRange{step, own} : ValueRange{own, step});
  }

  /// What the output has, for each of the thread's elements; of those that there are not, what the last has.
  SmallVector<Value> atOutput(OpBuilder &in) {
    OpOperand &output = *op.getDpsInitOperand(0);
    SmallVector<Value> found, iteration = first;
    auto within = [&](unsigned loop, Value number) {
      Value place = arith::AddIOp::create(in, loc, first[loop], number);
      if (areAll(loop))
        return place;
      Value last = arith::SubIOp::create(in, loc, sizes[loop], index(in, 1));
      return arith::MinUIOp::create(in, loc, place, last).getResult();
    };
    for (Value row : rows)
      for (Value column : columns) {
        iteration[product.row] = within(product.row, row);
        iteration[product.column] = within(product.column, column);
        found.push_back(memref::LoadOp::create(in, loc, output.get(), placeOf(in, output, iteration)));
      }
    return found;
  }

  /// Adds a few steps to a thread's sums, after the block has brought what they need.
  SmallVector<Value> add(OpBuilder &in, Value from, Value count, const Held &left, const Held &right,
                         ValueRange sums) {
    for (const Held &each : {left, right})
      bring(in, from, count, each);
    gpu::BarrierOp::create(in, loc);
    auto along = scf::ForOp::create(
        in, loc, index(in, 0), count, index(in, 1), sums,
        [&](OpBuilder &body, Location, Value number, ValueRange sofar) {
          SmallVector<Value> lefts, rights, both, iteration = first;
          for (Value row : rows)
            lefts.push_back(atHeld(body, left, row, number));
          for (Value column : columns)
            rights.push_back(atHeld(body, right, column, number));
          iteration[product.depth] = arith::AddIOp::create(body, loc, from, number);
          for (auto [row, one] : llvm::zip_equal(rows, lefts)) {
            iteration[product.row] = arith::AddIOp::create(body, loc, first[product.row], row);
            for (auto [column, other] : llvm::zip_equal(columns, rights)) {
              iteration[product.column] = arith::AddIOp::create(body, loc, first[product.column], column);
              bool isFirst = left.input->getOperandNumber() == 0;
              SmallVector<Value> inputs{isFirst ? one : other, isFirst ? other : one};
              Value value = steps.valuesOf(body, iteration, inputs)[0];
              both.push_back(steps.joined(body, 0, sofar[both.size()], value));
            }
          }
          scf::YieldOp::create(body, loc, both);
        });
    gpu::BarrierOp::create(in, loc);
    return SmallVector<Value>(along.getResults());
  }

  /// A thread's part of an input's elements for the next steps: neighbours in memory have neighbouring
  /// threads.
  void bring(OpBuilder &in, Value from, Value count, const Held &to) {
    int64_t owns = kThreads * int64_t(to.own == product.row ? rows.size() : columns.size());
    int64_t length = to.alongOwn ? owns : depth, lines = to.alongOwn ? depth : owns;
    int64_t together = length / kThreads;
    Value part = arith::RemUIOp::create(in, loc, y, index(in, together));
    Value fast = arith::AddIOp::create(in, loc, arith::MulIOp::create(in, loc, part, index(in, kThreads)), x);
    Value row = arith::DivUIOp::create(in, loc, y, index(in, together));
    for (int64_t i = 0; i < lines; i += kThreads / together) {
      Value slow = arith::AddIOp::create(in, loc, row, index(in, i));
      Value own = to.alongOwn ? fast : slow, step = to.alongOwn ? slow : fast;
      SmallVector<Value> iteration = first;
      iteration[to.own] = arith::AddIOp::create(in, loc, first[to.own], own);
      iteration[product.depth] = arith::AddIOp::create(in, loc, from, step);
      Value exists;
      if (!areAll(to.own))
        exists = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, iteration[to.own], sizes[to.own]);
      if (getConstantIntValue(count) != depth) {
        Value isStep = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, step, count);
        exists = exists ? arith::AndIOp::create(in, loc, exists, isStep).getResult() : isStep;
      }
      OpBuilder at = in;
      if (exists)
        at = scf::IfOp::create(in, loc, exists, /*withElseRegion=*/false).getThenBodyBuilder();
      Value element = memref::LoadOp::create(at, loc, to.input->get(), placeOf(at, *to.input, iteration));
      if (arith::ExtFOp extension = to.extension)
        element = arith::ExtFOp::create(at, loc, extension.getType(), element);
      memref::StoreOp::create(at, loc, element, to.memory,
                              to.isOwnLast ? ValueRange{step, own} : ValueRange{own, step});
    }
  }

  /// The thread's elements that there are, each with its number.
  void eachElement(OpBuilder &in, function_ref<void(OpBuilder &, ValueRange, int64_t)> element) {
    SmallVector<Value> iteration = first;
    auto guarded = [&](OpBuilder &at, unsigned loop) {
      if (areAll(loop))
        return at;
      Value exists = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ult, iteration[loop], sizes[loop]);
      return scf::IfOp::create(at, loc, exists, /*withElseRegion=*/false).getThenBodyBuilder();
    };
    for (auto [i, row] : llvm::enumerate(rows)) {
      iteration[product.row] = arith::AddIOp::create(in, loc, first[product.row], row);
      OpBuilder ofRow = guarded(in, product.row);
      for (auto [j, column] : llvm::enumerate(columns)) {
        iteration[product.column] = arith::AddIOp::create(ofRow, loc, first[product.column], column);
        OpBuilder at = guarded(ofRow, product.column);
        element(at, iteration, int64_t(i * columns.size() + j));
      }
    }
  }

  /// Whether there are all steps of a loop that a part has.
  bool areAll(unsigned loop) {
    int64_t range = op.getStaticLoopRanges()[loop];
    return isWholePart || (!ShapedType::isDynamic(range) && range % kSide == 0);
  }

  Value index(OpBuilder &in, int64_t value) { return arith::ConstantIndexOp::create(in, loc, value); }

  linalg::LinalgOp op;
  const LinalgSteps &steps;
  Product product;
  OpBuilder b;
  Location loc;
  SmallVector<Value> sizes;         // of the loops
  SmallVector<Value> first;         // iteration of a block's tile
  SmallVector<Value> rows, columns; // of a thread, counted from there
  Value x, y;                       // the thread
  Value whole;                      // steps that the block takes as many of at a time as it holds
  int64_t depth;                    // steps whose inputs are in the block's memory at a time
  std::optional<UnitFactor> factor; // of matrix units, where they have one for this
  bool isWholePart = false;         // what is written now is for parts all of which exists
};

struct BlockTiles : public PassWrapper<BlockTiles, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BlockTiles)

  StringRef getArgument() const final { return "offload-block-tiles"; }
  StringRef getDescription() const final {
    return "Compute products of matrices by tiles in workgroup memory";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<affine::AffineDialect, arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                    nvgpu::NVGPUDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() final {
    for (linalg::LinalgOp op : launchableLinalg(getOperation()))
      if (std::optional<Product> product = productOf(op))
        if (std::optional<LinalgSteps> steps = LinalgSteps::of(op))
          Tiles(op, *steps, *product).replace();
  }
};

} // namespace

void registerBlockTilesPass() { PassRegistration<BlockTiles>(); }

} // namespace offload
