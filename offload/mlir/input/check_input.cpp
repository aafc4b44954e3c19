//===- check_input.cpp - offload-check-input ------------------------------===//
//
// Refuses, before anything is changed, programs that no later step can take; the error stands at the
// operation in the author's file and says what to do.
//
//===----------------------------------------------------------------------===//

#include "input/check_described.h"
#include "input/check_types.h"
#include "input/library_names.h"
#include "names.h"
#include "passes.h"
#include "program.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace offload {
namespace {

/// Names go into symbol tables, linker scripts, lists with commas and Python's text.
std::optional<std::string> whyNotNamed(StringRef name, bool kernel) {
  bool control = llvm::any_of(name, [](char each) { return each >= 0 && (each < ' ' || each == 127); });
  if (!name.empty() && !control && llvm::json::isUTF8(name) && !name.contains('"') && !name.contains('@') &&
      !(kernel && name.contains(',')))
    return std::nullopt;
  return "the name '" + llvm::json::fixUTF8(name) +
         "' cannot be found in a library: give it one of letters, digits, _, $ and .";
}

std::optional<std::string> whyNotNamed(Operation *op) {
  if (auto launch = dyn_cast<gpu::LaunchOp>(op)) {
    for (auto [name, kernel] : {std::pair(launch.getFunction(), true), std::pair(launch.getModule(), false)})
      if (std::optional<std::string> why = name ? whyNotNamed(*name, kernel) : std::nullopt)
        return why;
    return std::nullopt;
  }
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  if (!symbol || !isa<FunctionOpInterface, gpu::GPUModuleOp, gpu::BinaryOp>(op))
    return std::nullopt;
  return whyNotNamed(symbol.getName(), op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()));
}

/// Callers of a function from outside reach it through `_mlir_ciface_` and its name, which a pass makes: it
/// would have two bodies.
LogicalResult checkInterface(Operation *op) {
  auto symbol = dyn_cast<SymbolOpInterface>(op);
  auto module = dyn_cast_or_null<ModuleOp>(op->getParentOp());
  StringRef name = symbol ? symbol.getName() : "";
  if (!module || !name.consume_front(kInterface))
    return success();
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || function.isExternal() || !function.isPublic())
    return success();
  auto error = op->emitError("this is the name of the C interface that '")
               << name << "' gets, by which others call it: rename this one, or make '" << name
               << "' private or an llvm.func, which get none";
  error.attachNote(function.getLoc()) << "the function is here";
  return error;
}

std::optional<std::string> whyNotSized(Operation *op) {
  for (StringRef attribute : {"known_block_size", "known_grid_size"})
    if (auto known = op->getAttrOfType<DenseI32ArrayAttr>(attribute))
      if (llvm::any_of(known.asArrayRef(), [](int32_t size) { return size < 0; }))
        return (attribute + " has a negative number: it says how many there are along x, y and z").str();
  constexpr int64_t kMostThreads = 1024; // of a block, on every target
  auto known = op->getAttrOfType<DenseI32ArrayAttr>("known_block_size");
  // The product of three may have 93 bits.
  int64_t threads = known ? 1 : 0;
  for (int32_t size : known ? known.asArrayRef() : ArrayRef<int32_t>())
    threads = std::min<int64_t>(threads * size, std::numeric_limits<int32_t>::max());
  if (threads > kMostThreads)
    return "known_block_size has " + std::to_string(threads) + " threads, and a block has at most " +
           std::to_string(kMostThreads) + ": make it smaller, and start more blocks";
  return std::nullopt;
}

/// A launch whose sizes are constants and not those that its kernel is declared to have. Drivers refuse such
/// a block at the launch; a wrong grid they do not see.
LogicalResult checkSizes(gpu::LaunchFuncOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(launch, launch.getKernelAttr());
  gpu::KernelDim3 grid = launch.getGridSizeOperandValues();
  if (!kernel || llvm::any_of(std::array{grid.x, grid.y, grid.z},
                              [](Value size) { return getConstantIntValue(size) == 0; })) // nothing runs
    return success();
  const std::tuple<StringRef, gpu::KernelDim3> checks[] = {{"block", launch.getBlockSizeOperandValues()},
                                                           {"grid", grid}};
  for (auto [what, sizes] : checks) {
    std::string attribute = knownSizeOf(kernel, what);
    auto known = kernel->getAttrOfType<DenseI32ArrayAttr>(attribute);
    if (!known || known.size() != 3)
      continue;
    for (auto [i, size] : llvm::enumerate(std::array<Value, 3>{sizes.x, sizes.y, sizes.z}))
      if (auto given = getConstantIntValue(size); given && *given != known[int64_t(i)]) {
        auto error = launch.emitOpError("has a ")
                     << what << " of " << *given << " along " << StringRef("xyz").substr(i, 1)
                     << ", but its kernel says " << attribute << " = " << known << ": make them the same";
        error.attachNote(kernel.getLoc()) << "the kernel is here";
        return error;
      }
  }
  return success();
}

bool hasSize(Type type) {
  return type.isIntOrIndexOrFloat() || isa<ComplexType, VectorType, DataLayoutTypeInterface>(type);
}

/// What a parameter reads is as long as the kernel says: values of fewer bytes would be read past their end.
/// Indices may be shorter in the kernel.
LogicalResult checkValues(gpu::LaunchFuncOp launch, LLVM::LLVMFuncOp kernel) {
  auto layout = DataLayout::closest(launch);
  unsigned parameter = 0;
  for (Type type : launch.getKernelOperands().getTypes()) {
    unsigned at = parameter;
    if (auto memref = dyn_cast<MemRefType>(type))
      parameter += 3 + 2 * memref.getRank();
    else
      parameter += isa<UnrankedMemRefType>(type) ? 2 : 1;
    if (isa<BaseMemRefType>(type) || at >= kernel.getNumArguments())
      continue;
    Type wanted = kernel.getArgument(at).getType();
    bool byValue = false;
    for (StringRef name : {LLVM::LLVMDialect::getByValAttrName(), LLVM::LLVMDialect::getByRefAttrName()})
      if (auto held = kernel.getArgAttrOfType<TypeAttr>(at, name)) {
        wanted = held.getValue();
        byValue = true;
      }
    if (!hasSize(type) || !hasSize(wanted))
      continue;
    bool address = byValue && isa<LLVM::LLVMPointerType>(type) && type != wanted;
    if (!address && layout.getTypeSize(type) >= layout.getTypeSize(wanted))
      continue;
    auto error = launch.emitOpError("passes ")
                 << type << " to parameter " << at + 1 << " of its kernel, which ";
    if (byValue)
      error << "takes a value of " << wanted << " in memory of the kernel's own: pass such a value";
    else
      error << "is longer, " << wanted << ": pass a value of that type";
    error.attachNote(kernel.getLoc()) << "the kernel is here";
    return error;
  }
  return success();
}

/// A kernel that is lowered already has one parameter per word of a descriptor, or bare pointers: nothing
/// else compares these with what a launch passes.
LogicalResult checkParameters(gpu::LaunchFuncOp launch) {
  std::optional<unsigned> parameters = parametersOf(launch);
  if (!parameters || launch->hasAttr(kPlainPointers)) // the code itself has been asked
    return success();
  Operation *kernel = SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernelAttr());
  Operation *place =
      kernel ? kernel : SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernelModuleName());
  if (takesPlainPointers(launch).value_or(false)) {
    for (Type type : launch.getKernelOperands().getTypes())
      if (isa<BaseMemRefType>(type) && !fitsBarePointer(type)) {
        auto error = launch.emitOpError("passes ")
                     << type
                     << " to a kernel that takes a plain pointer for it, and needs its sizes or strides "
                     << "at run time: make its shape static and its layout the identity";
        error.attachNote(place->getLoc()) << "the kernel, which is lowered already, is here";
        return error;
      }
    return success();
  }
  unsigned words = wordsOf(launch);
  auto declared = dyn_cast_or_null<LLVM::LLVMFuncOp>(kernel);
  if (declared && declared.isExternal())
    return success();
  if (*parameters == words)
    return declared ? checkValues(launch, declared) : success();
  auto error = launch.emitOpError("passes ")
               << words << " words (" << launch.getNumKernelOperands()
               << " operands, memrefs as descriptors), but its kernel, which is lowered already, has "
               << *parameters << " parameters";
  error.attachNote(place->getLoc()) << "the kernel is here";
  return error;
}

/// MLIR's verifier takes one of integers, and there are no exponentials of these.
std::optional<std::string> whyNotComputed(Operation *op) {
  auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
  if (!softmax || isa<FloatType>(softmax.getInputOperandType().getElementType()))
    return std::nullopt;
  return "'linalg.softmax' computes exponentials, of floating-point numbers alone: convert its operand to "
         "such, for instance f32";
}

/// Operations between functions, where nothing runs: MLIR's verifier takes them, and its translation has no
/// place to put their instructions and ends the process.
std::optional<std::string> whyNotPlaced(Operation *op) {
  if (!isa_and_nonnull<ModuleOp, gpu::GPUModuleOp>(op->getParentOp()) || isa<SymbolOpInterface, ModuleOp>(op))
    return std::nullopt;
  bool says =
      op->getNumRegions() > 0 || op->getName().getDialectNamespace() == "llvm"; // as llvm.module_flags
  if (op->getNumResults() == 0 && op->getNumOperands() == 0 && says)
    return std::nullopt;
  return ("'" + op->getName().getStringRef() +
          "' stands outside of every function, where nothing runs: put it into one")
      .str();
}

/// An empty one is what passes of MLIR's leave of a schedule.
std::optional<std::string> whyNotNested(Operation *op) {
  if (auto module = dyn_cast<ModuleOp>(op); module && op->getParentOp() && !module.getBody()->empty())
    return "a module inside of the program's module is not compiled: move what it holds out";
  return std::nullopt;
}

std::optional<std::string> whyNotOwn(Operation *op) {
  if (!takesLibraryName(op) || isCalledByInterface(op))
    return std::nullopt;
  std::string rename = isa<FunctionOpInterface>(op) ? ": rename the function" : ": rename the global";
  if (isReservedName(cast<SymbolOpInterface>(op).getName()))
    return "linkers, loaders and compiled code mean something else by this name" + rename;
  if (cast<SymbolOpInterface>(op).getName().starts_with("mgpu"))
    return "names that begin with 'mgpu' are those of the runtime's functions" + rename;
  return "the C library has a function of this name, which generated code or the runtime calls" + rename;
}

std::optional<std::string> whyNotCalledSo(Operation *op) {
  if (op->hasAttr("llvm.bareptr") && !op->getParentOfType<gpu::GPUModuleOp>())
    return "'llvm.bareptr' on a function has no meaning here: for plain pointers in the functions of a "
           "library, build it with --bare-pointers-for-host";
  return std::nullopt;
}

std::optional<std::string> whyNotLaunched(Operation *op) {
  if (isa<gpu::LaunchOp, gpu::LaunchFuncOp>(op) &&
      (op->getParentOfType<gpu::LaunchOp>() || op->getParentOfType<gpu::GPUModuleOp>() ||
       op->getParentOfType<scf::ParallelOp>() || op->getParentOfType<scf::ForallOp>() ||
       op->getParentOfType<affine::AffineParallelOp>()))
    return "a kernel cannot launch a kernel: launch both from host code, one after the other (parallel loops "
           "become kernels)";
  return std::nullopt;
}

std::optional<std::string> whyNotMapped(Operation *op) {
  auto loop = dyn_cast<scf::ForallOp>(op);
  if (loop && loop.getMapping() &&
      (op->getParentOfType<gpu::LaunchOp>() || op->getParentOfType<gpu::GPUModuleOp>()))
    return "'scf.forall' in a kernel has a mapping, which is for the transform dialect: apply the transforms "
           "first, or use gpu.thread_id";
  return std::nullopt;
}

/// What an operation can be refused for, in the order in which it is said.
std::optional<std::string> (*const kReasons[])(Operation *) = {
    whyNotPlaced,   whyNotNested,   whyNotOwn,      whyNotNamed,  whyNotSized, whyNotDescribed,
    whyNotCalledSo, whyNotComputed, whyNotLaunched, whyNotMapped, whyNotTyped};

LogicalResult check(Operation *op) {
  for (auto reason : kReasons)
    if (std::optional<std::string> why = reason(op))
      return op->emitError(*why);
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
      launch && (failed(checkSizes(launch)) || failed(checkParameters(launch))))
    return failure();
  return checkInterface(op);
}

struct CheckInput : public PassWrapper<CheckInput, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckInput)

  StringRef getArgument() const final { return "offload-check-input"; }
  StringRef getDescription() const final { return "Refuse programs that cannot be compiled"; }

  void runOnOperation() final {
    auto checked = [](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    };
    if (getOperation()->walk<WalkOrder::PreOrder>(checked).wasInterrupted())
      return signalPassFailure();
    for (ModuleOp empty : llvm::make_early_inc_range(getOperation().getOps<ModuleOp>()))
      empty.erase();
  }
};

} // namespace

void registerCheckInputPass() { PassRegistration<CheckInput>(); }

} // namespace offload
