//===- check_lowered.cpp - offload-check-lowered --------------------------===//
//
// The last pass of every pipeline: what is left that LLVM IR has no counterpart for is an error at its own
// place, with the reason, and not a failure of the translation.
//
//===----------------------------------------------------------------------===//

#include "device/check_lowered.h"
#include "device/vendor_rules.h"
#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace offload {
namespace {

/// What to do about an operation, or about all of a dialect's.
struct Advice {
  StringRef of, text;
};

constexpr Advice kAdvice[] = {
    {"tensor", "tensors have no memory in a kernel: bufferize the program first"},
    {"bufferization", "bufferize the program first, for instance with mlir-opt --one-shot-bufferize"},
    {"linalg", "lower it to loops first, for instance with mlir-opt --convert-linalg-to-loops"},
    {"memref.dma_start", "nothing here copies while code runs: write memref.copy, or gpu.memcpy on a stream"},
    {"memref.dma_wait", "there is nothing to wait for: write memref.copy, or gpu.memcpy on a stream"},
    {"memref",
     "a view that stays a view of one block of memory with constant strides can be lowered; copy where "
     "it is none"},
    {"vector", "lower it first to operations on vectors of one dimension"},
    {"shape", "lower it first with mlir-opt --convert-shape-to-std"},
    {"async", "a kernel has no tasks of its own: write what async.execute holds in its place"},
    {"complex", "lower it first with mlir-opt --convert-complex-to-standard"},
    {"gpu", "use operations that this target has"},
    {"transform", "a schedule is the transform.named_sequence @__transform_main of a module that has "
                  "transform.with_named_sequence"},
    {"omp", "write scf.parallel for what a device does"},
    {"acc", "write scf.parallel for what a device does"},
    {"func", "functions must be called or defined in the module that they are used in"},
};

/// The type of a value of a function, a return or a call that has no form in LLVM IR: it alone keeps these
/// from being lowered.
Type unknownType(Operation *op) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  if (auto function = dyn_cast<FunctionOpInterface>(op)) {
    llvm::append_range(types, function.getArgumentTypes());
    llvm::append_range(types, function.getResultTypes());
  }
  for (Type type : types)
    if (StringRef owner = type.getDialect().getNamespace(); owner != "builtin" && owner != "llvm")
      return type;
  return {};
}

std::string reason(Operation *op, StringRef target) {
  StringRef dialect = op->getName().getDialectNamespace(), name = op->getName().getStringRef();
  std::string text = "'" + name.str() + "' cannot be lowered for ";
  text += target.empty() ? "the host's code" : "target " + target.str();
  if (!op->getName().isRegistered())
    return text + ": no dialect of MLIR 22 has it; lower it before offload sees it";
  if (target == targetOf(dialect) && !target.empty())
    return text + ": MLIR 22's lowering does not know this shape or type of it; use the operation of the " +
           target.str() + " dialect, or llvm.inline_asm";
  if (StringRef owner = ownerOf(dialect); !owner.empty())
    return text + ": it is an operation of " + owner.str() +
           "; use it in a kernel that is built for those alone";
  if (Type type = dialect == "func" ? unknownType(op) : Type()) {
    llvm::raw_string_ostream(text) << ": it has a value of type " << type
                                   << "; use a type that has a form there";
    return text;
  }
  for (const Advice &advice : kAdvice)
    if (advice.of == name || advice.of == dialect)
      return text + ": " + advice.text.str();
  return text + ": lower it to operations that can be before offload sees it";
}

/// May it stand in what is translated?
bool translates(Operation *op, StringRef target) {
  StringRef dialect = op->getName().getDialectNamespace();
  return dialect == "llvm" || isa<ModuleOp, gpu::GPUModuleOp>(op) ||
         (!target.empty() && dialect == target && !ownerOf(dialect).empty());
}

/// The operation of the author that a cast stands next to: its value has a type that nothing turned into one
/// of LLVM's.
Operation *behind(UnrealizedConversionCastOp cast) {
  SmallVector<Operation *> next{cast};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!next.empty()) {
    Operation *op = next.pop_back_val();
    if (!op || !seen.insert(op).second)
      continue;
    if (!isa<UnrealizedConversionCastOp>(op))
      return op;
    for (Operation *user : op->getUsers())
      next.push_back(user);
    for (Value operand : op->getOperands())
      next.push_back(operand.getDefiningOp() ? operand.getDefiningOp()
                                             : operand.getParentBlock()->getParentOp());
  }
  return cast;
}

} // namespace

bool refuseUnlowered(Operation *root, StringRef target) {
  bool refused = false;
  SmallVector<UnrealizedConversionCastOp> casts;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == root)
      return WalkResult::advance();
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op)) {
      casts.push_back(cast);
    } else if (!translates(op, target)) {
      op->emitError(reason(op, target));
      refused = true;
      return WalkResult::skip(); // what is in it goes where it goes
    } else if (std::optional<std::string> why = whyNotInstruction(op)) {
      op->emitError(*why);
      refused = true;
    }
    return WalkResult::advance();
  });
  if (refused || casts.empty()) // a cast next to a refused operation says nothing new
    return refused;
  UnrealizedConversionCastOp cast = casts.front();
  Operation *user = behind(cast);
  // Of a function's argument, the place where it is used says more than where the function begins.
  if (isa<FunctionOpInterface>(user))
    user = cast;
  user->emitError("'") << user->getName() << "' has a value of type "
                       << (cast.getOperandTypes().empty() ? cast->getResultTypes()[0]
                                                          : cast.getOperandTypes()[0])
                       << ", which cannot be lowered to " << cast->getResultTypes()
                       << (target.empty() ? std::string() : " for target " + target.str())
                       << ": use a type or a memory space that has a form there";
  return true;
}

namespace {

struct CheckLowered : public PassWrapper<CheckLowered, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckLowered)

  CheckLowered() = default;
  CheckLowered(const CheckLowered &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-check-lowered"; }
  StringRef getDescription() const final { return "Refuse what LLVM IR has no counterpart for"; }

  void runOnOperation() final {
    if (refuseUnlowered(getOperation(), target))
      signalPassFailure();
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name; none for host code")};
};

} // namespace

void registerCheckLoweredPass() { PassRegistration<CheckLowered>(); }

} // namespace offload
