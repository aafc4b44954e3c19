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

#include "names.h"
#include "passes.h"
#include "tensors/tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
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

/// What has the size of memory that a while hands on, which ValueBounds does not look into.
Value beforeWhile(Value memory) {
  for (;;) {
    auto argument = dyn_cast<BlockArgument>(memory);
    Operation *op = argument ? argument.getOwner()->getParentOp() : memory.getDefiningOp();
    auto loop = dyn_cast<scf::WhileOp>(op);
    if (auto same = dyn_cast<memref::CastOp>(op); same && isa<MemRefType>(same.getSource().getType())) {
      memory = same.getSource();
    } else if (!loop) {
      return memory;
    } else if (!argument || argument.getOwner() == loop.getAfterBody()) {
      memory = loop.getConditionOp()
                   .getArgs()[argument ? argument.getArgNumber() : cast<OpResult>(memory).getResultNumber()];
    } else if (isStill(loop.getYieldOp().getOperand(argument.getArgNumber()), memory)) {
      memory = loop.getInits()[argument.getArgNumber()];
    } else {
      return memory;
    }
  }
}

bool haveOneSize(Value a, Value b) {
  a = beforeWhile(a), b = beforeWhile(b);
  auto one = cast<MemRefType>(a.getType()), other = cast<MemRefType>(b.getType());
  for (int64_t i = 0; i < one.getRank(); ++i) {
    bool areKnown = !one.isDynamicDim(unsigned(i)) && !other.isDynamicDim(unsigned(i));
    if (areKnown ? one.getDimSize(unsigned(i)) != other.getDimSize(unsigned(i))
                 : !ValueBoundsConstraintSet::areEqual({a, i}, {b, i}).value_or(false))
      return false;
  }
  return true;
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

/// New memory of the size of another one, for elements of its type or one that is given.
Value makeLike(OpBuilder &b, Location loc, Value memory, Type element = Type()) {
  MemRefType type = plain(memory.getType());
  if (element)
    type = MemRefType::Builder(type).setElementType(element);
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
};

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
    memref::CopyOp::create(b, loc, source, each.here);
    each.handed->set(each.here);
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
    if (!canStay(here.getType()) || (!haveOneSize(operand.get(), first) && !haveOneSize(operand.get(), here)))
      return std::nullopt;
    carried.push_back({&operand, here, rootsOf(operand.get())});
  }
  return carried;
}

void keep(scf::ForOp loop) {
  Operation *end = loop.getBody()->getTerminator();
  auto carried = carriedBy(end, loop.getRegionIterArgs(), loop.getInitArgs());
  if (!carried || llvm::none_of(*carried, [&](Carried &each) { return isMadeIn(loop, each.roots); }))
    return;
  for (Carried &each : *carried)
    beginWithCopy(loop, *loop.getTiedLoopInit(cast<BlockArgument>(each.here)));
  storeAll(end, *carried);
}

/// What the condition has made, it hands on in places of its own: the body may still have what came.
void keep(scf::WhileOp loop) {
  scf::ConditionOp condition = loop.getConditionOp();
  auto carried = carriedBy(loop.getYieldOp(), loop.getBeforeArguments(), loop.getInits());
  SmallVector<std::pair<OpOperand *, Value>> made; // and what has their size
  for (OpOperand &handed : condition.getArgsMutable()) {
    if (!isa<BaseMemRefType>(handed.get().getType()) || !isMadeIn(loop, rootsOf(handed.get())))
      continue;
    if (!canStay(handed.get().getType()))
      return;
    auto like = llvm::find_if(loop.getInits(), [&](Value first) {
      auto type = dyn_cast<MemRefType>(first.getType());
      return type && type.getRank() == cast<MemRefType>(handed.get().getType()).getRank() &&
             haveOneSize(handed.get(), first);
    });
    bool isKnown = cast<MemRefType>(handed.get().getType()).hasStaticShape();
    if (like == loop.getInits().end() && !isKnown)
      return;
    made.push_back({&handed, isKnown ? Value() : *like});
  }
  if (!carried ||
      (made.empty() && llvm::none_of(*carried, [&](Carried &each) { return isMadeIn(loop, each.roots); })))
    return;
  OpBuilder before(loop), end(condition);
  for (auto [handed, like] : made) {
    Location loc = loop.getLoc();
    Type type = handed->get().getType();
    Value place = like ? makeLike(before, loc, like, cast<MemRefType>(type).getElementType())
                       : memref::AllocOp::create(before, loc, plain(type), before.getI64IntegerAttr(64));
    place = as(before, loc, place, type);
    memref::CopyOp::create(end, condition.getLoc(), handed->get(), place);
    handed->set(place);
  }
  for (Carried &each : *carried)
    beginWithCopy(loop, loop.getInitsMutable()[cast<BlockArgument>(each.here).getArgNumber()]);
  storeAll(loop.getYieldOp(), *carried);
}

struct CarriedMemory : public PassWrapper<CarriedMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CarriedMemory)

  StringRef getArgument() const final { return "offload-carried-memory"; }
  StringRef getDescription() const final { return "Loops of a thread hand on memory that stays where it is"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<memref::MemRefDialect>();
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
