//===- kernel_options.cpp - What build options ask of kernels -------------===//
//
// Sizes of blocks, bare pointers and 32-bit indices change what a kernel may look like. Each is checked here,
// at the kernel's own line, before anything is lowered.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

static bool isKernel(FunctionOpInterface function) {
  return function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName());
}

std::string knownSizeOf(FunctionOpInterface kernel, StringRef what) {
  return ((isa<LLVM::LLVMFuncOp>(kernel) ? "gpu.known_" : "known_") + what + "_size").str();
}

/// The attribute that says a kernel's block, and how many threads that has; 0 where a size is none.
static std::optional<std::pair<StringRef, int64_t>> findBlock(Operation *kernel,
                                                              const std::vector<std::string> &blocks) {
  for (const std::string &name : blocks)
    if (auto known = kernel->getAttrOfType<DenseI32ArrayAttr>(name); known && !known.empty()) {
      int64_t threads = 1;
      // The product of three may have 93 bits; no device has such a block.
      for (int32_t size : known.asArrayRef())
        threads = size <= 0 ? 0 : std::min<int64_t>(threads * size, std::numeric_limits<int32_t>::max());
      return std::pair(StringRef(name), threads);
    }
  return std::nullopt;
}

std::vector<std::pair<std::string, int64_t>> limitThreads(const IRModule &module, int64_t most,
                                                          const std::vector<std::string> &blocks) {
  std::vector<std::pair<std::string, int64_t>> limits;
  module.get().walk([&](FunctionOpInterface function) {
    if (!isKernel(function))
      return;
    int64_t limit = most;
    if (auto block = findBlock(function, blocks)) {
      auto [name, threads] = *block;
      if (threads == 0)
        function->removeAttr(name); // a launch of no threads: there is nothing to compile for it
      else
        limit = threads;
      if (most && limit > most)
        function->emitError("the kernel's ")
            << name << " of " << limit << " threads is more than max_threads=" << most;
    }
    if (limit)
      limits.push_back({function.getName().str(), limit});
  });
  module.session->failOnErrors("a kernel's block is too large");
  return limits;
}

void setKernelThreads(IRModule &module, const std::string &name, const std::vector<std::string> &blocks,
                      const std::vector<std::string> &unless) {
  module.get().walk([&](FunctionOpInterface function) {
    auto block = isKernel(function) ? findBlock(function, blocks) : std::nullopt;
    if (!block || hasAttribute(function, {name}) || hasAttribute(function, unless))
      return;
    std::string threads = std::to_string(block->second);
    function->setAttr(name, StringAttr::get(function->getContext(), threads + "," + threads));
  });
}

bool fitsBarePointer(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && memref.hasStaticShape() && memref.getLayout().isIdentity();
}

unsigned wordsOf(gpu::LaunchFuncOp launch) {
  unsigned words = 0;
  for (Value operand : launch.getKernelOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    words += memref ? 3 + 2 * memref.getRank() : isa<UnrankedMemRefType>(operand.getType()) ? 2 : 1;
  }
  return words;
}

std::optional<unsigned> parametersOf(gpu::LaunchFuncOp launch) {
  if (auto kernel = SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(launch, launch.getKernelAttr()))
    return kernel.getNumArguments();
  auto binary = SymbolTable::lookupNearestSymbolFrom<gpu::BinaryOp>(launch, launch.getKernelModuleName());
  for (Attribute object : binary ? binary.getObjects() : ArrayAttr::get(launch.getContext(), {}))
    if (gpu::KernelTableAttr table = cast<gpu::ObjectAttr>(object).getKernels())
      if (gpu::KernelMetadataAttr kernel = table.lookup(launch.getKernelName()))
        if (auto type = dyn_cast<LLVM::LLVMFunctionType>(kernel.getFunctionType()))
          return type.getNumParams();
  return std::nullopt;
}

std::optional<bool> takesPlainPointers(gpu::LaunchFuncOp launch) {
  if (auto known = launch->getAttrOfType<BoolAttr>(kPlainPointers))
    return known.getValue();
  std::optional<unsigned> parameters = parametersOf(launch);
  if (parameters == wordsOf(launch))
    return false;
  return parameters == launch.getNumKernelOperands() ? std::optional(true) : std::nullopt;
}

LogicalResult checkBareTypes(FunctionOpInterface function) {
  auto types = llvm::to_vector(function.getArgumentTypes());
  llvm::append_range(types, function.getResultTypes());
  for (Type type : types)
    if (isa<BaseMemRefType>(type) && !fitsBarePointer(type))
      return function->emitError("bare pointers are not possible here: ")
             << type
             << " needs its sizes or strides at run time; make its shape static and its layout the identity, "
             << "or build without bare pointers";
  return success();
}

void checkBarePointers(const IRModule &module) {
  for (auto device : module.get().getOps<gpu::GPUModuleOp>())
    for (auto function : device.getOps<FunctionOpInterface>())
      if (!isa<LLVM::LLVMFuncOp>(function))
        (void)checkBareTypes(function); // failOnErrors has the error
  module.session->failOnErrors("bare pointers are not possible");
}

static bool hasIndex(Type type) {
  if (type.isIndex())
    return true;
  if (auto shaped = dyn_cast<ShapedType>(type))
    return hasIndex(shaped.getElementType());
  return false;
}

void checkNarrowIndex(const IRModule &module) {
  module.get().walk([&](FunctionOpInterface function) {
    if (isa<LLVM::LLVMFuncOp>(function))
      return;
    for (Type type : function.getArgumentTypes())
      if (isKernel(function) && !type.isIndex() && hasIndex(type)) {
        function->emitError("a kernel with an argument of ")
            << type << " cannot have 32-bit indices: others read and write its elements as 64 bits; "
            << "use i32 or i64 elements, or build without index=32";
        break;
      }
  });
  module.get().walk([](memref::ExtractAlignedPointerAsIndexOp op) {
    op.emitError("an address does not fit a 32-bit index; build without index=32");
  });
  module.session->failOnErrors("indices cannot have 32 bits");
}

} // namespace offload
