//===- vector_math.cpp - Functions of mathematics that vectorize ----------===//

#include "codegen/math/vector_math.h"
#include "codegen/math/far_math.h"
#include "codegen/math/functions.h"
#include "names.h"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Verifier.h"

using namespace llvm;

namespace offload {
namespace {

enum Kind { Always, WithoutRounding, WithoutFma };

struct Entry {
  const char *name; // of libm, for f64
  Intrinsic::ID intrinsic;
  Number (*unary)(Number);
  Number (*binary)(Number, Number) = nullptr;
  Number (*ternary)(Number, Number, Number) = nullptr;
  bool far = false;        // holds up to kMostAngle
  bool singleOnly = false; // f32
  Kind kind = Always;
};

const Entry kEntries[] = {
    {"exp", Intrinsic::exp, buildExp},
    {"exp2", Intrinsic::exp2, buildExp2},
    {"expm1", Intrinsic::not_intrinsic, buildExpm1},
    {"tanh", Intrinsic::tanh, buildTanh},
    {"log", Intrinsic::log, buildLog},
    {"log2", Intrinsic::log2, buildLog2},
    {"log10", Intrinsic::log10, buildLog10},
    {"log1p", Intrinsic::not_intrinsic, buildLog1p},
    {"pow", Intrinsic::pow, nullptr, buildPow},
    {"erf", Intrinsic::not_intrinsic, buildErf, nullptr, nullptr, false, true},
    {"sin", Intrinsic::sin, buildSin, nullptr, nullptr, true},
    {"cos", Intrinsic::cos, buildCos, nullptr, nullptr, true},
    {"tan", Intrinsic::tan, buildTan, nullptr, nullptr, true},
    {"rint", Intrinsic::rint, buildRoundEven, nullptr, nullptr, false, false, WithoutRounding},
    {"nearbyint", Intrinsic::nearbyint, buildRoundEven, nullptr, nullptr, false, false, WithoutRounding},
    {"roundeven", Intrinsic::roundeven, buildRoundEven, nullptr, nullptr, false, false, WithoutRounding},
    {"round", Intrinsic::round, buildRound, nullptr, nullptr, false, false, WithoutRounding},
    {"trunc", Intrinsic::trunc, buildTrunc, nullptr, nullptr, false, false, WithoutRounding},
    {"floor", Intrinsic::floor, buildFloor, nullptr, nullptr, false, false, WithoutRounding},
    {"ceil", Intrinsic::ceil, buildCeil, nullptr, nullptr, false, false, WithoutRounding},
    {"fma", Intrinsic::fma, nullptr, nullptr, buildFma, false, true, WithoutFma},
};

const Entry *entryOf(const Function &function) {
  if (!function.isDeclaration())
    return nullptr;
  Type *type = function.getReturnType(), *element = type->getScalarType();
  if ((!element->isFloatTy() && !element->isDoubleTy()) || isa<ScalableVectorType>(type) ||
      function.isVarArg() ||
      any_of(function.args(), [&](const Argument &argument) { return argument.getType() != type; }))
    return nullptr;
  StringRef called = function.getName();
  called.consume_front(kLibmFunction);
  for (const Entry &entry : kEntries) {
    std::string name = std::string(entry.name) + (element->isFloatTy() ? "f" : "");
    // Not isIntrinsic(), which says so of every name that begins with 'llvm.'.
    Intrinsic::ID intrinsic = function.getIntrinsicID();
    bool same = intrinsic != Intrinsic::not_intrinsic ? intrinsic == entry.intrinsic
                                                      : !type->isVectorTy() && called == name;
    unsigned count = entry.unary ? 1 : entry.binary ? 2 : 3;
    if (same && function.arg_size() == count && !(entry.singleOnly && element->isDoubleTy()))
      return &entry;
  }
  return nullptr;
}

void build(const Entry &entry, Function &body) {
  LLVMContext &context = body.getContext();
  Builder b(BasicBlock::Create(context, "", &body));
  Number x(b, body.getArg(0));
  Number result = entry.unary    ? entry.unary(x)
                  : entry.binary ? entry.binary(x, {b, body.getArg(1)})
                                 : entry.ternary(x, {b, body.getArg(1)}, {b, body.getArg(2)});
  if (entry.far) {
    std::string name = std::string(entry.name) + (x.isDouble() ? "" : "f");
    result.value = withFar(b, name, x, x.abs() > kMostAngle, result);
  }
  b.CreateRet(result.value);
}

} // namespace

void useVectorMath(Module &module, bool rounds, bool fuses) {
  for (Function &function : make_early_inc_range(module)) {
    const Entry *entry = entryOf(function);
    if (!entry || function.use_empty() || (entry->kind == WithoutRounding && rounds) ||
        (entry->kind == WithoutFma && fuses))
      continue;
    auto *body = Function::Create(function.getFunctionType(), GlobalValue::InternalLinkage,
                                  "offload.math." + function.getName(), module);
    body->addFnAttr(Attribute::AlwaysInline);
    body->setDoesNotThrow();
    build(*entry, *body);
    function.replaceAllUsesWith(body);
    function.eraseFromParent();
  }
}

} // namespace offload
