//===- assert.cpp - Assertions in host code -------------------------------===//
//
// cf.assert becomes a call of mgpuAssertFail on the failing side, which does not return; where it compares
// two sizes, of mgpuSizesFail, which tells them. The C interface of a function that may come there takes the
// error: it enters a guard (runtime_c/abi/guard.c) around its body.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "names.h"
#include "program.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace offload {
namespace {

constexpr char kAssertFail[] = "mgpuAssertFail", kSizesFail[] = "mgpuSizesFail";
constexpr int64_t kGuardBytes = 512; // MGPU_GUARD_BYTES

/// The two sizes that an assertion compares, in the order of its message, also where what folds has turned
/// the comparison around; none where it has made something else of it.
SmallVector<Value, 2> comparedSizes(cf::AssertOp op, Value holds) {
  using P = LLVM::ICmpPredicate;
  auto equality = op->getAttrOfType<BoolAttr>(kComparesSizes);
  while (auto either = holds.getDefiningOp<LLVM::OrOp>())
    holds = either.getLhs();
  auto compare = holds.getDefiningOp<LLVM::ICmpOp>();
  if (!equality || !compare || !compare.getLhs().getType().isInteger(64) ||
      equality.getValue() != llvm::is_contained({P::eq, P::ne}, compare.getPredicate()))
    return {};
  bool isTurned = llvm::is_contained({P::sgt, P::ugt, P::uge, P::sle}, compare.getPredicate());
  return isTurned ? SmallVector<Value, 2>{compare.getRhs(), compare.getLhs()}
                  : SmallVector<Value, 2>{compare.getLhs(), compare.getRhs()};
}

struct AssertPattern : public ConvertOpToLLVMPattern<cf::AssertOp> {
  AssertPattern(const LLVMTypeConverter &converter) : ConvertOpToLLVMPattern(converter, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(cf::AssertOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block *before = rewriter.getInsertionBlock();
    Block *after = rewriter.splitBlock(before, ++Block::iterator(op));
    Block *failed = rewriter.createBlock(before->getParent());
    SmallVector<Value> arguments = {textAddress(rewriter, op, op.getMsg()),
                                    textAddress(rewriter, op, placeOf(loc))};
    SmallVector<Value, 2> sizes = comparedSizes(op, adaptor.getArg());
    arguments.append(sizes);
    callRuntime(rewriter, op, sizes.empty() ? kAssertFail : kSizesFail, {}, arguments);
    LLVM::UnreachableOp::create(rewriter, loc);
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<LLVM::CondBrOp>(op, adaptor.getArg(), after, failed);
    return success();
  }
};

/// The functions that call one of these, directly or through others. A call of a pointer may be one of any
/// function whose address is taken.
llvm::SetVector<LLVM::LLVMFuncOp> callersOf(ModuleOp module, ArrayRef<StringRef> names) {
  llvm::StringMap<SmallVector<LLVM::LLVMFuncOp>> callers;
  SmallVector<LLVM::LLVMFuncOp> ofPointers;
  llvm::StringSet<> pointed;
  module.walk([&](Operation *op) {
    if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
      pointed.insert(address.getGlobalName());
    auto call = dyn_cast<LLVM::CallOp>(op);
    auto function = call ? call->getParentOfType<LLVM::LLVMFuncOp>() : LLVM::LLVMFuncOp();
    if (!function)
      return;
    if (call.getCallee())
      callers[*call.getCallee()].push_back(function);
    else
      ofPointers.push_back(function);
  });
  for (const auto &name : pointed)
    llvm::append_range(callers[name.getKey()], ofPointers);
  llvm::SetVector<LLVM::LLVMFuncOp> found;
  SmallVector<StringRef> work(names);
  while (!work.empty())
    for (LLVM::LLVMFuncOp function : callers.lookup(work.pop_back_val()))
      if (found.insert(function))
        work.push_back(function.getName());
  return found;
}

/// setjmp, in front of the function's body; the other way out returns zero.
void guard(LLVM::LLVMFuncOp function) {
  OpBuilder b(function.getContext());
  Location loc = function.getLoc();
  Block *entry = &function.getBody().front();
  Block *body = entry->splitBlock(entry->begin());
  b.setInsertionPointToEnd(entry);
  Type pointer = pointerType(b.getContext()), i32 = b.getI32Type();
  auto room = LLVM::LLVMArrayType::get(b.getI8Type(), kGuardBytes);
  Value memory = LLVM::AllocaOp::create(b, loc, pointer, room, constant(b, loc, b.getI64Type(), 1), 16);
  Operation *anchor = body->getTerminator();
  Value buffer = callRuntime(b, anchor, "mgpuGuardEnter", pointer, {memory});
  Value jumped = callRuntime(b, anchor, "_setjmp", i32, {buffer});
  auto setjmp = function->getParentOfType<ModuleOp>().lookupSymbol<LLVM::LLVMFuncOp>("_setjmp");
  setjmp.setPassthroughAttr(b.getArrayAttr(b.getStringAttr("returns_twice")));
  Value first = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, jumped, constant(b, loc, i32, 0));
  auto returned = function.getFunctionType().getReturnType();
  Block *back = b.createBlock(&function.getBody(), function.getBody().end());
  if (isa<LLVM::LLVMVoidType>(returned))
    LLVM::ReturnOp::create(b, loc, ValueRange());
  else
    LLVM::ReturnOp::create(b, loc, Value(LLVM::ZeroOp::create(b, loc, returned)));
  function.walk([&](LLVM::ReturnOp op) {
    if (op->getBlock() == back)
      return;
    OpBuilder at(op);
    callRuntime(at, op, "mgpuGuardLeave", {}, {memory});
  });
  b.setInsertionPointToEnd(entry);
  LLVM::CondBrOp::create(b, loc, first, body, back);
}

} // namespace

/// Nothing may stand between such a call and the return.
static bool callsInItsPlace(LLVM::LLVMFuncOp function) {
  auto find = [](LLVM::CallOp call) {
    return call.getTailCallKind() == LLVM::TailCallKind::MustTail ? WalkResult::interrupt()
                                                                  : WalkResult::advance();
  };
  return function.walk(find).wasInterrupted();
}

/// Gives the function's body to one of another name, which the program's own calls go to: what fails there
/// must not come back to them. The function is left with a call of it.
static void setBodyApart(LLVM::LLVMFuncOp function, SymbolTable &symbols) {
  auto body = cast<LLVM::LLVMFuncOp>(function->cloneWithoutRegions());
  body.getBody().takeBody(function.getBody());
  body.setLinkage(LLVM::Linkage::Private);
  body.setVisibility_(LLVM::Visibility::Default);
  body.setComdatAttr({});
  body.setSymName((function.getName() + ".body").str());
  symbols.insert(body, std::next(function->getIterator()));
  auto module = cast<ModuleOp>(symbols.getOp());
  (void)SymbolTable::replaceAllSymbolUses(function, body.getSymNameAttr(), module);

  Location loc = UnknownLoc::get(function.getContext()); // a place in the source is one function's alone
  function->setLoc(loc);
  OpBuilder b(function.getContext());
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  auto call = LLVM::CallOp::create(b, loc, body, entry->getArguments());
  call.setCConv(body.getCConv());
  call.setArgAttrsAttr(body.getArgAttrsAttr());
  call.setResAttrsAttr(body.getResAttrsAttr());
  LLVM::ReturnOp::create(b, loc, call.getResults());
}

void guardEntryPoints(ModuleOp module) {
  SymbolTable symbols(module);
  for (LLVM::LLVMFuncOp function :
       callersOf(module, {kAssertFail, kSizesFail, kCheckAllocation, kCheckSizes, kCheckMemory})) {
    if (function.getName().starts_with(kInterface)) {
      guard(function);
      continue;
    }
    // An llvm.func is called by its own name.
    if (!function.isPublic() || isLocal(function.getLinkage()) ||
        symbols.lookup((kInterface + function.getName()).str()))
      continue;
    bool isItsOwn = !callsInItsPlace(function) && SymbolTable::symbolKnownUseEmpty(function, module);
    if (!isItsOwn && function.getFunctionType().isVarArg()) // what it was called with cannot be handed on
      continue;
    if (!isItsOwn)
      setBodyApart(function, symbols);
    guard(function);
  }
}

void populateAssertPatterns(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<AssertPattern>(converter);
}

} // namespace offload
