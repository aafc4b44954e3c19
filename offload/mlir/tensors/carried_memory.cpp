//===- carried_memory.cpp - offload-carried-memory ------------------------===//
//
// A loop in a thread's body whose iterations hand on memory that they allocate needs an allocator, or two
// buffers that change places. Where all iterations' tensors have one size, what is handed on is copied to one
// place in front of the loop instead: offload-private-loops does so before bufferization where that can
// follow it, and saves the copy; here is what it could not see, as what a do-while computes and hands on, or
// what an inner loop had to copy.
//
// Only of functions that had tensors: what these hand on is read by its name alone, and what a loop begins
// with by nobody whom its iterations would change it for.
//
//===----------------------------------------------------------------------===//

#include "input/size_origin.h"
#include "names.h"
#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace offload {
namespace {

/// What memory may be one: allocations, arguments of loops and functions.
struct Roots {
  llvm::SmallPtrSet<Value, 8> whole, part; // under other names and by choice; or seen as a view
  bool areKnown = true;

  bool contain(Value memory) const { return whole.contains(memory) || part.contains(memory); }
};

void addRoots(Value memory, bool isPart, Roots &roots) {
  if (!(isPart ? roots.part : roots.whole).insert(memory).second)
    return;
  auto goOn = [&](Value source, bool isView = false) { addRoots(source, isPart || isView, roots); };
  auto argument = dyn_cast<BlockArgument>(memory);
  Operation *op = argument ? argument.getOwner()->getParentOp() : memory.getDefiningOp();
  unsigned number = argument ? argument.getArgNumber() : cast<OpResult>(memory).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned i = argument ? number - 1 : number;
    goOn(loop.getInitArgs()[i]);
    goOn(loop.getYieldedValues()[i]);
    if (!argument)
      goOn(loop.getRegionIterArg(i));
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    if (argument && argument.getOwner() == loop.getBeforeBody()) {
      goOn(loop.getInits()[number]);
      goOn(loop.getYieldOp().getOperand(number));
    } else {
      goOn(loop.getConditionOp().getArgs()[number]);
    }
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (Region &region : branch->getRegions())
      goOn(region.front().getTerminator()->getOperand(number));
  } else if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    goOn(choice.getTrueValue());
    goOn(choice.getFalseValue());
  } else if (isa<memref::CastOp>(op)) {
    goOn(op->getOperand(0));
  } else if (auto view = dyn_cast<ViewLikeOpInterface>(op)) {
    goOn(view.getViewSource(), /*isView=*/true);
  } else if (!argument && !isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(op)) {
    roots.areKnown = false;
  }
}

Roots rootsOf(Value memory) {
  Roots roots;
  addRoots(memory, /*isPart=*/false, roots);
  return roots;
}

/// May it be memory that an iteration of the loop has allocated?
bool isMadeIn(Operation *loop, const Roots &roots) {
  auto isMade = [&](Value root) {
    return root.getDefiningOp<memref::AllocOp>() && loop->isProperAncestor(root.getDefiningOp());
  };
  return llvm::any_of(roots.whole, isMade) || llvm::any_of(roots.part, isMade);
}

/// Is it what the iteration began with?
bool isStill(Value handed, Value here) {
  while (auto cast = handed.getDefiningOp<memref::CastOp>())
    handed = cast.getSource();
  auto argument = dyn_cast<BlockArgument>(handed);
  if (argument && argument != here)
    if (auto loop = dyn_cast<scf::WhileOp>(argument.getOwner()->getParentOp());
        loop && argument.getOwner() == loop.getAfterBody())
      return loop.getConditionOp().getArgs()[argument.getArgNumber()] == here;
  return handed == here;
}

MemRefType plain(Type type) {
  auto memory = cast<MemRefType>(type);
  return MemRefType::get(memory.getShape(), memory.getElementType(), MemRefLayoutAttrInterface(),
                         memory.getMemorySpace());
}

/// Can memory without gaps have that type?
bool canStay(Type type) {
  return isa<MemRefType>(type) &&
         (plain(type) == type || memref::CastOp::areCastCompatible(plain(type), type));
}

/// New memory of the size of another one.
Value makeLike(OpBuilder &b, Location loc, Value memory) {
  MemRefType type = plain(memory.getType());
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(unsigned(i)))
      sizes.push_back(memref::DimOp::create(b, loc, memory, i));
  return memref::AllocOp::create(b, loc, type, sizes, b.getI64IntegerAttr(64));
}

Value as(OpBuilder &b, Location loc, Value memory, Type type) {
  return memory.getType() == type ? memory : memref::CastOp::create(b, loc, type, memory).getResult();
}

/// What an iteration hands on and where it stays.
struct Carried {
  OpOperand *handed; // of the terminator
  Value here;        // what the next iteration has
  Roots roots;
  bool isOneSize;
  Value place; // where it stays, whichever name the loop has for it; of several sizes, room for each
};

/// A number that stands before a loop, of one that has been followed there: what is computed from others that
/// do, too. Null where it is not known there.
Value numberBefore(OpBuilder &b, Operation *loop, SizeOrigin origin) {
  if (origin.known)
    return arith::ConstantIndexOp::create(b, loop->getLoc(), *origin.known);
  bool isThere = origin.value.getParentRegion()->isAncestor(loop->getParentRegion());
  if (origin.dimension >= 0)
    return isThere ? memref::DimOp::create(b, loop->getLoc(), origin.value, origin.dimension) : Value();
  Operation *op = origin.value.getDefiningOp();
  if (isThere)
    return origin.value;
  if (!op || op->getNumRegions() || op->getNumResults() != 1 || !isPure(op))
    return Value();
  IRMapping map;
  for (Value operand : op->getOperands()) {
    Value made = operand.getType().isIndex() ? numberBefore(b, loop, carriedOriginOf(operand)) : Value();
    if (!made)
      return Value();
    map.map(operand, made);
  }
  return b.clone(*op, map)->getResult(0);
}

/// Room before a loop for what may have one of a few sizes, each known there. Null where one is not.
Value roomFor(Operation *loop, Value memory) {
  OpBuilder b(loop);
  Location loc = loop->getLoc();
  auto type = cast<MemRefType>(memory.getType());
  Value all = arith::ConstantIndexOp::create(b, loc, 1);
  for (int64_t i = 0; i < type.getRank(); ++i) {
    Value most;
    for (const SizeOrigin &origin : carriedOriginsOf(memory, i)) {
      Value size = numberBefore(b, loop, origin);
      if (!size)
        return Value();
      most = most ? arith::MaxSIOp::create(b, loc, most, size) : size;
    }
    all = arith::MulIOp::create(b, loc, all, most);
  }
  auto room = MemRefType::get({ShapedType::kDynamic}, type.getElementType(), MemRefLayoutAttrInterface(),
                              type.getMemorySpace());
  return memref::AllocOp::create(b, loc, room, all, b.getI64IntegerAttr(64));
}

/// The part of such room that has the sizes of a source, by a type.
Value partFor(OpBuilder &b, Location loc, Value room, Value source, Type type) {
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, loc, source);
  return as(b, loc, asWhole(b, loc, room, sizes, plain(type)), type);
}

/// Copies what a terminator hands on to its places, and hands these on. What may lie in another one's place,
/// or elsewhere in its own, is read before anything is stored.
void storeAll(Operation *terminator, MutableArrayRef<Carried> carried) {
  OpBuilder b(terminator);
  Location loc = terminator->getLoc();
  SmallVector<Value> sources;
  for (Carried &each : carried) {
    Value source = each.handed->get();
    bool mayOverlap = !each.roots.areKnown || llvm::any_of(carried, [&](const Carried &other) {
      return other.here == each.here ? each.roots.part.contains(other.here) : each.roots.contain(other.here);
    });
    if (mayOverlap) {
      Value copy = makeLike(b, loc, source);
      memref::CopyOp::create(b, loc, source, copy);
      source = copy;
    }
    sources.push_back(source);
  }
  for (auto [each, source] : llvm::zip_equal(carried, sources)) {
    Value place = each.isOneSize ? each.place : partFor(b, loc, each.place, source, each.here.getType());
    memref::CopyOp::create(b, loc, source, place);
    each.handed->set(place);
  }
}

/// Has nobody but the loop, from here on, what it begins with?
bool isAlone(Value memory, Operation *loop) {
  return llvm::all_of(memory.getUsers(), [&](Operation *user) {
    if (user == loop)
      return llvm::count(loop->getOperands(), memory) == 1;
    Operation *inBlock = loop->getBlock()->findAncestorOpInBlock(*user);
    if (!inBlock || !inBlock->isBeforeInBlock(loop))
      return false;
    return llvm::all_of(user->getResults(), [&](Value result) {
      return !isa<BaseMemRefType>(result.getType()) || (isa<memref::CastOp>(user) && isAlone(result, loop));
    });
  });
}

/// Lets a loop begin with a copy of what it begins with, in memory of its own.
void beginWithCopy(Operation *loop, OpOperand &first) {
  Value begin = first.get();
  while (auto cast = begin.getDefiningOp<memref::CastOp>())
    begin = cast.getSource();
  auto made = begin.getDefiningOp<memref::AllocOp>();
  if (made && made->getBlock() == loop->getBlock() && made.getType().getLayout().isIdentity() &&
      isAlone(begin, loop))
    return;
  OpBuilder b(loop);
  Value memory = makeLike(b, loop->getLoc(), first.get());
  memref::CopyOp::create(b, loop->getLoc(), first.get(), memory);
  first.set(as(b, loop->getLoc(), memory, first.get().getType()));
}

/// The memory that iterations hand on. Nothing where one could not stay in its place.
std::optional<SmallVector<Carried>> carriedBy(Operation *terminator, ValueRange arguments,
                                              ValueRange firsts) {
  SmallVector<Carried> carried;
  for (auto [operand, here, first] : llvm::zip_equal(terminator->getOpOperands(), arguments, firsts)) {
    if (!isa<BaseMemRefType>(here.getType()) || isStill(operand.get(), here))
      continue;
    if (!canStay(here.getType()))
      return std::nullopt;
    bool isOneSize = haveOneSize(operand.get(), first) || haveOneSize(operand.get(), here);
    carried.push_back({&operand, here, rootsOf(operand.get()), isOneSize, here});
  }
  return carried;
}

/// Lets a loop begin with what it hands on in its place. False where there is no room for it.
bool begin(Operation *loop, MutableArrayRef<Carried> carried, MutableArrayRef<OpOperand> firsts) {
  for (Carried &each : carried)
    if (!each.isOneSize && !(each.place = roomFor(loop, each.here)))
      return false;
  OpBuilder b(loop);
  for (Carried &each : carried) {
    OpOperand &first = firsts[each.handed->getOperandNumber()];
    if (each.isOneSize) {
      beginWithCopy(loop, first);
      continue;
    }
    Value part = partFor(b, loop->getLoc(), each.place, first.get(), first.get().getType());
    memref::CopyOp::create(b, loop->getLoc(), first.get(), part);
    first.set(part);
  }
  return true;
}

void keep(scf::ForOp loop) {
  Operation *end = loop.getBody()->getTerminator();
  auto carried = carriedBy(end, loop.getRegionIterArgs(), loop.getInitArgs());
  if (!carried || llvm::none_of(*carried, [&](Carried &each) { return isMadeIn(loop, each.roots); }))
    return;
  if (begin(loop, *carried, loop.getInitArgsMutable()))
    storeAll(end, *carried);
}

/// A place before a loop for what it makes there, of one size. Null where the size is not known there.
Value placeFor(Operation *loop, Value memory) {
  OpBuilder b(loop);
  SmallVector<Value> sizes;
  MemRefType type = plain(memory.getType());
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(unsigned(i))) {
      sizes.push_back(numberBefore(b, loop, carriedOriginOf(memory, i)));
      if (!sizes.back())
        return Value();
    }
  return memref::AllocOp::create(b, loop->getLoc(), type, sizes, b.getI64IntegerAttr(64));
}

/// Is memory of a block not used behind an operation of the block?
bool isLastUse(Value memory, Operation *last) {
  return llvm::all_of(memory.getUsers(), [&](Operation *user) {
    Operation *inBlock = last->getBlock()->findAncestorOpInBlock(*user);
    return inBlock && (inBlock == last || inBlock->isBeforeInBlock(last)) &&
           llvm::none_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
  });
}

/// Lets the condition's region make what it hands on in a place before the loop, or copies it there. Only
/// what follows the region reads the place, so that it may be written to from the region's begin on.
void makeIn(Value place, OpOperand &handed) {
  Operation *end = handed.getOwner();
  auto made = handed.get().getDefiningOp<memref::AllocOp>();
  auto isHere = [&](memref::AllocOp op) {
    return op && op->getBlock() == end->getBlock() && op.getType() == place.getType();
  };
  if (!isHere(made)) {
    OpBuilder b(end);
    memref::CopyOp::create(b, end->getLoc(), handed.get(), place);
    return handed.set(place);
  }
  for (Operation *user : llvm::make_early_inc_range(made->getUsers())) {
    auto copy = dyn_cast<memref::CopyOp>(user);
    auto source = copy ? copy.getSource().getDefiningOp<memref::AllocOp>() : memref::AllocOp();
    if (!source || source == made || copy->getBlock() != end->getBlock() || !isHere(source) ||
        llvm::range_size(made->getUses()) != 2 || !isLastUse(source, copy))
      continue;
    copy.erase();
    source.replaceAllUsesWith(place);
    source.erase();
  }
  made.replaceAllUsesWith(place);
  made.erase();
}

/// What the condition hands on, and where it is put before: room, where it may have several sizes.
struct Made {
  OpOperand *handed;
  Value place;
  bool isOneSize;
};

/// What the condition has made, it hands on in places of its own: the body may still have what came.
void keep(scf::WhileOp loop) {
  scf::ConditionOp condition = loop.getConditionOp();
  auto carried = carriedBy(loop.getYieldOp(), loop.getBeforeArguments(), loop.getInits());
  SmallVector<Made> made;
  if (!carried)
    return;
  for (OpOperand &handed : condition.getArgsMutable()) {
    if (!isa<BaseMemRefType>(handed.get().getType()) || !isMadeIn(loop, rootsOf(handed.get())))
      continue;
    if (!canStay(handed.get().getType()))
      return;
    Value place = placeFor(loop, handed.get());
    bool isOneSize = bool(place);
    if (!isOneSize && !(place = roomFor(loop, handed.get())))
      return;
    made.push_back({&handed, place, isOneSize});
  }
  if ((made.empty() && llvm::none_of(*carried, [&](Carried &each) { return isMadeIn(loop, each.roots); })) ||
      !begin(loop, *carried, loop.getInitsMutable()))
    return;
  OpBuilder b(loop), end(condition);
  for (Made &each : made) {
    Value source = each.handed->get();
    Location loc = source.getLoc();
    if (each.isOneSize) {
      makeIn(as(b, loop.getLoc(), each.place, source.getType()), *each.handed);
      continue;
    }
    Value part = partFor(end, loc, each.place, source, source.getType());
    memref::CopyOp::create(end, loc, source, part);
    each.handed->set(part);
  }
  for (Carried &each : *carried)
    if (each.isOneSize)
      each.place = loop.getInits()[each.handed->getOperandNumber()];
  storeAll(loop.getYieldOp(), *carried);
  // The body does not see what the condition's region is given.
  for (Carried &each : *carried)
    if (each.isOneSize)
      each.here.replaceAllUsesWith(each.place);
}

struct CarriedMemory : public PassWrapper<CarriedMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CarriedMemory)

  StringRef getArgument() const final { return "offload-carried-memory"; }
  StringRef getDescription() const final { return "Loops of a thread hand on memory that stays where it is"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(kOnTensors))
        continue;
      function.walk([](Operation *op) { // inner loops first
        if (!isInParallel(op))
          return;
        if (auto loop = dyn_cast<scf::ForOp>(op))
          keep(loop);
        else if (auto loop = dyn_cast<scf::WhileOp>(op))
          keep(loop);
      });
    }
  }
};

} // namespace

void registerCarriedMemoryPass() { PassRegistration<CarriedMemory>(); }

} // namespace offload
