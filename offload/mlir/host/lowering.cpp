//===- lowering.cpp - What the parts of offload-host-to-llvm share --------===//

#include "host/lowering.h"
#include "names.h"

#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace offload {

Type pointerType(MLIRContext *context) { return LLVM::LLVMPointerType::get(context); }

Value callRuntime(OpBuilder &b, Operation *anchor, StringRef name, Type result, ValueRange arguments) {
  auto module = anchor->getParentOfType<ModuleOp>();
  Type returned = result ? result : Type(LLVM::LLVMVoidType::get(b.getContext()));
  FailureOr<LLVM::LLVMFuncOp> callee =
      LLVM::lookupOrCreateFn(b, module, name, llvm::to_vector(arguments.getTypes()), returned);
  if (failed(callee)) // the program declares it otherwise, which that has told: an error, whatever is made
    return result ? LLVM::PoisonOp::create(b, anchor->getLoc(), result).getResult() : Value();
  auto call = LLVM::CallOp::create(b, anchor->getLoc(), *callee, arguments);
  return result ? call.getResult() : Value();
}

Value constant(OpBuilder &b, Location loc, Type type, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, value));
}

Value null(OpBuilder &b, Location loc) { return LLVM::ZeroOp::create(b, loc, pointerType(b.getContext())); }

static Block &entryBlock(Operation *op) {
  return op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
}

Value entryAlloca(OpBuilder &b, Operation *op, Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&entryBlock(op));
  Value size = constant(b, op->getLoc(), b.getI64Type(), count);
  return LLVM::AllocaOp::create(b, op->getLoc(), pointerType(b.getContext()), type, size, /*alignment=*/16);
}

Value scopeOf(Operation *op) {
  for (auto candidate : entryBlock(op).getOps<LLVM::AllocaOp>())
    if (candidate->hasAttr(kScope))
      return candidate;
  llvm_unreachable("addScopes gives every function with tokens a scope");
}

Stream streamFor(OpBuilder &b, Operation *op, bool hasToken, ValueRange dependencies) {
  Type pointer = pointerType(b.getContext());
  Stream stream = {null(b, op->getLoc()), true};
  if (hasToken && dependencies.empty())
    return {callRuntime(b, op, "mgpuScopeStream", pointer, {scopeOf(op)}), false};
  if (hasToken) {
    stream = {dependencies.front(), false};
    dependencies = dependencies.drop_front();
  }
  for (Value other : dependencies)
    if (other != stream.value)
      callRuntime(b, op, "mgpuStreamWaitStream", {}, {stream.value, other});
  return stream;
}

void waitFor(OpBuilder &b, Operation *op, Stream stream) {
  if (stream.wait && !op->hasAttr(kWaitsLater))
    callRuntime(b, op, "mgpuStreamSynchronize", {}, {stream.value});
}

Value textAddress(OpBuilder &b, Operation *anchor, StringRef text) {
  auto module = anchor->getParentOfType<ModuleOp>();
  StringAttr bytes = b.getStringAttr(text + StringRef("\0", 1));
  std::string name;
  // Found by what it says: a search of the module per text before it would be slow in large programs.
  for (uint64_t number = llvm::xxh3_64bits(text);; ++number) {
    name = "offload_text." + llvm::utohexstr(number);
    auto known = module.lookupSymbol<LLVM::GlobalOp>(name);
    if (known && known.getValueOrNull() != bytes)
      continue;
    if (!known) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
      LLVM::GlobalOp::create(b, anchor->getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                             bytes);
    }
    return LLVM::AddressOfOp::create(b, anchor->getLoc(), pointerType(b.getContext()), name);
  }
}

std::string placeOf(Location loc) {
  std::string place = "the program";
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    place = (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
    return WalkResult::interrupt();
  });
  return place;
}

} // namespace offload
