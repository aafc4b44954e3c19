//===- library_calls.cpp - Calls of another vendor's functions ------------===//
//
// Front ends that were written for one vendor call the functions of its device library by their names, where
// operations would do. On other targets these calls are the operations that they stand for.
//
//===----------------------------------------------------------------------===//

#include "device/numeric.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace offload {

/// Operations, by the names that both libraries have for them behind their own prefixes.
static StringRef operationOf(StringRef name) {
  static const llvm::StringMap<StringRef> kOperations = {
      {"acos", "math.acos"},     {"acosh", "math.acosh"},
      {"asin", "math.asin"},     {"asinh", "math.asinh"},
      {"atan", "math.atan"},     {"atan2", "math.atan2"},
      {"atanh", "math.atanh"},   {"cbrt", "math.cbrt"},
      {"ceil", "math.ceil"},     {"copysign", "math.copysign"},
      {"cos", "math.cos"},       {"cosh", "math.cosh"},
      {"erf", "math.erf"},       {"erfc", "math.erfc"},
      {"exp", "math.exp"},       {"exp2", "math.exp2"},
      {"expm1", "math.expm1"},   {"fabs", "math.absf"},
      {"floor", "math.floor"},   {"fma", "math.fma"},
      {"fmax", "arith.maxnumf"}, {"fmin", "arith.minnumf"},
      {"fmod", "arith.remf"},    {"log", "math.log"},
      {"log10", "math.log10"},   {"log1p", "math.log1p"},
      {"log2", "math.log2"},     {"nearbyint", "math.roundeven"},
      {"pow", "math.powf"},      {"rint", "math.roundeven"},
      {"round", "math.round"},   {"rsqrt", "math.rsqrt"},
      {"sin", "math.sin"},       {"sinh", "math.sinh"},
      {"sqrt", "math.sqrt"},     {"tan", "math.tan"},
      {"tanh", "math.tanh"},     {"trunc", "math.trunc"}};
  return kOperations.lookup(name);
}

static unsigned operandsOf(StringRef name) {
  if (name == "fma")
    return 3;
  return llvm::is_contained({"atan2", "copysign", "fmax", "fmin", "fmod", "pow"}, name) ? 2 : 1;
}

/// "fmod" of __nv_fmodf and __ocml_fmod_f32; empty for a function of the target's own library, or of none.
static StringRef plainName(StringRef name, Type type, StringRef library) {
  if (library != "nvvm" && name.consume_front("__nv_")) {
    if (type.isF32() && !name.consume_back("f"))
      return {};
    return name;
  }
  if (library != "rocdl" && name.consume_front("__ocml_")) {
    auto [plain, suffix] = name.rsplit('_');
    return suffix == ("f" + Twine(type.getIntOrFloatBitWidth())).str() ? plain : StringRef();
  }
  return {};
}

void libraryCallsToMath(Operation *root, StringRef library) {
  root->walk([&](CallOpInterface call) {
    auto callee = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    if (!callee || call->getNumResults() != 1)
      return;
    Type type = call->getResult(0).getType();
    if (!(type.isF16() || type.isF32() || type.isF64()) ||
        !llvm::all_of(call->getOperandTypes(), [&](Type given) { return given == type; }))
      return;
    StringRef plain = plainName(callee.getLeafReference(), type, library), name = operationOf(plain);
    if (name.empty() || call->getNumOperands() != operandsOf(plain))
      return;
    auto function = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
    if (!function || !function.isExternal()) // the program's own
      return;
    OpBuilder b(call);
    Operation *op = b.create(OperationState(call->getLoc(), name, call->getOperands(), type));
    call->replaceAllUsesWith(op);
    call->erase();
  });
}

} // namespace offload
