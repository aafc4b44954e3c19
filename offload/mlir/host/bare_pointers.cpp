//===- bare_pointers.cpp - Host functions that C calls with pointers ------===//
//
// Inside the host code a memref stays the descriptor that everything is lowered to. Where bare pointers are
// asked for, only what is seen from outside changes: a public function `f` is a wrapper that makes
// descriptors of its pointers, and a call of a declared function goes through one that passes the pointers
// alone. The C interface `_mlir_ciface_f`, which Python calls, is as ever.
//
//===----------------------------------------------------------------------===//

#include "host/lowering.h"
#include "program.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace offload {

namespace {

bool hasMemrefs(FunctionType type) {
  auto isMemref = [](Type each) { return isa<BaseMemRefType>(each); };
  return llvm::any_of(type.getInputs(), isMemref) || llvm::any_of(type.getResults(), isMemref);
}

/// The bytes of a value that C has in a register for integers; 0 for others.
unsigned wordBytes(Type type) {
  if (isa<BaseMemRefType, IndexType>(type))
    return 8;
  auto integer = dyn_cast<IntegerType>(type);
  bool ofC = integer && llvm::is_contained({8u, 16u, 32u, 64u}, integer.getWidth());
  return ofC ? integer.getWidth() / 8 : 0;
}

/// LLVM returns each part of a struct in a register of its own, and C the struct: what lies in one word
/// together comes in one register, what is longer in memory, and on AArch64 numbers beside a word in a word.
LogicalResult checkStructs(func::FuncOp function) {
  auto types = llvm::to_vector(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  for (Type type : types)
    if (auto number = dyn_cast<ComplexType>(type); number && !number.getElementType().isF64())
      return function->emitError("C passes ") << type
                                              << " another way than this function: pass its parts, or build "
                                                 "without bare pointers for the host";
  TypeRange results = function.getResultTypes();
  if (results.size() < 2)
    return success();
  bool words = llvm::all_of(results, [](Type type) { return wordBytes(type) != 0; }) &&
               llvm::any_of(results, [](Type type) { return wordBytes(type) == 8; });
  bool doubles = llvm::all_of(results, [](Type type) { return type.isF64(); });
  if (results.size() == 2 && (words || doubles))
    return success();
  return function->emitError(
      "C returns a struct of these results another way than this function: two integers or "
      "addresses of which one has 64 bits, and two f64, are possible; write others into an "
      "argument, or build without bare pointers for the host");
}

/// The two types that a function has, and the conversions of values between them.
class Convention {
public:
  Convention(FunctionType type, const LLVMTypeConverter &converter) : type(type), converter(converter) {}

  LLVM::LLVMFunctionType bareType() const {
    MLIRContext *context = type.getContext();
    SmallVector<Type> inputs, results;
    for (Type each : type.getInputs())
      inputs.push_back(bare(each));
    for (Type each : type.getResults())
      results.push_back(bare(each));
    Type result = results.empty()       ? Type(LLVM::LLVMVoidType::get(context))
                  : results.size() == 1 ? results.front()
                                        : Type(LLVM::LLVMStructType::getLiteral(context, results));
    return LLVM::LLVMFunctionType::get(result, inputs);
  }

  /// The arguments of the function with descriptors from those of the one with pointers.
  SmallVector<Value> described(OpBuilder &b, Location loc, ValueRange pointers) const {
    SmallVector<Value> values;
    for (auto [type, value] : llvm::zip_equal(type.getInputs(), pointers))
      if (auto memref = dyn_cast<MemRefType>(type))
        MemRefDescriptor::unpack(b, loc, describe(b, loc, memref, value), memref, values);
      else
        values.push_back(value);
    return values;
  }

  /// The other way.
  SmallVector<Value> plain(OpBuilder &b, Location loc, ValueRange expanded) const {
    SmallVector<Value> values;
    for (Type type : type.getInputs()) {
      auto memref = dyn_cast<MemRefType>(type);
      unsigned count = memref ? MemRefDescriptor::getNumUnpackedValues(memref) : 1;
      values.push_back(expanded[memref ? 1 : 0]); // the aligned pointer comes second
      expanded = expanded.drop_front(count);
    }
    return values;
  }

  /// What the function with pointers returns, from what the one with descriptors did; or, with `describing`,
  /// the other way. Null for nothing.
  Value returned(OpBuilder &b, Location loc, Value made, bool describing) const {
    SmallVector<Value> values;
    for (auto [i, type] : llvm::enumerate(type.getResults())) {
      Value value = this->type.getNumResults() == 1 ? made : LLVM::ExtractValueOp::create(b, loc, made, i);
      if (auto memref = dyn_cast<MemRefType>(type))
        value = describing ? describe(b, loc, memref, value) : MemRefDescriptor(value).alignedPtr(b, loc);
      values.push_back(value);
    }
    if (values.size() < 2)
      return values.empty() ? Value() : values.front();
    SmallVector<Type> types = llvm::to_vector(ValueRange(values).getTypes());
    Value all = LLVM::PoisonOp::create(b, loc, LLVM::LLVMStructType::getLiteral(b.getContext(), types));
    for (auto [i, value] : llvm::enumerate(values))
      all = LLVM::InsertValueOp::create(b, loc, all, value, i);
    return all;
  }

private:
  Type bare(Type each) const {
    return isa<MemRefType>(each) ? pointerType(type.getContext()) : converter.convertType(each);
  }

  Value describe(OpBuilder &b, Location loc, MemRefType memref, Value pointer) const {
    return MemRefDescriptor::fromStaticShape(b, loc, converter, memref, pointer);
  }

  FunctionType type;
  const LLVMTypeConverter &converter;
};

/// Gives a function with no body one that calls `callee` with the arguments and returns what `result` makes
/// of the call's.
void forward(LLVM::LLVMFuncOp function, LLVM::LLVMFuncOp callee,
             function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> arguments,
             function_ref<Value(OpBuilder &, Value)> result) {
  OpBuilder b(function.getContext());
  b.setInsertionPointToStart(function.addEntryBlock(b));
  auto call = LLVM::CallOp::create(b, function.getLoc(), callee, arguments(b, function.getArguments()));
  Value made = call->getNumResults() ? result(b, call.getResult()) : Value();
  LLVM::ReturnOp::create(b, function.getLoc(), made ? ValueRange(made) : ValueRange());
}

} // namespace

LogicalResult findBareFunctions(ModuleOp module, BareFunctions &found) {
  LogicalResult result = success();
  for (auto function : module.getOps<func::FuncOp>()) {
    bool seen = function.isExternal() ? !function->hasAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName())
                                      : function.isPublic();
    if (seen && failed(checkStructs(function)))
      result = failure();
    if (!seen || !hasMemrefs(function.getFunctionType()))
      continue;
    if (failed(checkBareTypes(function)))
      result = failure();
    found.push_back({function.getName().str(), function.getFunctionType()});
  }
  return result;
}

void giveBarePointers(ModuleOp module, const BareFunctions &functions, const LLVMTypeConverter &converter) {
  for (const auto &[name, type] : functions) {
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
    Convention convention(type, converter);
    Location loc = function.getLoc();
    std::string inner = "__offload_descriptors_" + name;
    // All calls inside the program go on with descriptors.
    if (failed(
            SymbolTable::replaceAllSymbolUses(function, StringAttr::get(module.getContext(), inner), module)))
      llvm_unreachable("a module's symbols are all known here");
    function.setSymName(inner);
    OpBuilder b(function);
    auto bare = LLVM::LLVMFuncOp::create(b, loc, name, convention.bareType());
    if (function.isExternal()) {
      forward(
          function, bare, [&](OpBuilder &b, ValueRange values) { return convention.plain(b, loc, values); },
          [&](OpBuilder &b, Value made) { return convention.returned(b, loc, made, /*describing=*/true); });
    } else {
      forward(
          bare, function,
          [&](OpBuilder &b, ValueRange values) { return convention.described(b, loc, values); },
          [&](OpBuilder &b, Value made) { return convention.returned(b, loc, made, /*describing=*/false); });
    }
    function.setLinkage(LLVM::Linkage::Internal);
  }
}

} // namespace offload
