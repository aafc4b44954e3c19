//===- check_kernels.cpp - Memory and arguments that kernels cannot have ----===//
//
// What MLIR's lowerings take without a word and get wrong, or end the process at, with LLVM 22.
//
//===----------------------------------------------------------------------===//

#include "device/lanes.h"
#include "device/vendor_rules.h"
#include "spaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace offload {

static std::string spelled(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Memory of a block or a thread is allocated for the elements of the shape, one after the other.
static std::optional<std::string> whyNotAttribution(Type type, StringRef whose) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || (memref.hasStaticShape() && memref.getLayout().isIdentity()))
    return std::nullopt;
  return "memory of the " + whose.str() + " of type " + spelled(type) +
         " has no size that is known here: give it a static shape and the identity layout, and take a view "
         "of it";
}

/// Of no bytes: LLVM's code generator for PTX ends the process at such a parameter.
static bool isEmpty(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return array.getNumElements() == 0 || isEmpty(array.getElementType());
  auto structure = dyn_cast<LLVM::LLVMStructType>(type);
  return structure && !structure.isOpaque() && llvm::all_of(structure.getBody(), isEmpty);
}

/// What PTX cannot have of a parameter's type: it has whole bytes in powers of two, and LLVM packs vectors of
/// smaller elements otherwise than its own loads of them expect. A number that is part of another type is in
/// bytes of its own.
static Type oddPart(Type type, bool isWhole = true) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return oddPart(array.getElementType(), /*isWhole=*/false);
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type)) {
    if (!structure.isOpaque())
      for (Type part : structure.getBody())
        if (Type odd = oddPart(part, /*isWhole=*/false))
          return odd;
    return {};
  }
  auto vector = dyn_cast<VectorType>(type);
  if (!vector && !isWhole)
    return {};
  Type element = vector ? vector.getElementType() : type;
  if (!element.isIntOrFloat())
    return {};
  unsigned bits = element.getIntOrFloatBitWidth();
  bool scalarBit = !vector && bits == 1;
  return scalarBit || (bits >= 8 && llvm::isPowerOf2_32(bits)) ? Type() : type;
}

/// A number of more than 64 bits that is part of a struct: it is at a multiple of 16 bytes in the host's
/// memory, and of 8 in that of AMD GPUs.
static bool hasWidePart(Type type, bool isPart = false) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return hasWidePart(array.getElementType(), isPart);
  if (auto structure = dyn_cast<LLVM::LLVMStructType>(type))
    return !structure.isOpaque() && !structure.isPacked() &&
           llvm::any_of(structure.getBody(), [](Type part) { return hasWidePart(part, /*isPart=*/true); });
  return isPart && type.isInteger() && type.getIntOrFloatBitWidth() > 64;
}

static std::optional<std::string> whyNotArgument(Type type, const ChipName &where) {
  if (auto memref = dyn_cast<BaseMemRefType>(type)) {
    bool ofBlock = isWorkgroup(memref.getMemorySpace());
    if (ofBlock || isPrivate(memref.getMemorySpace()))
      return "a kernel's argument of type " + spelled(type) + " is memory of a " +
             (ofBlock ? "block" : "thread") +
             ", which there is inside of the kernel alone: pass memory of the device, or declare it as " +
             (ofBlock ? "workgroup(...)" : "private(...)") + " of the kernel or of the launch";
  }
  if (where.target == "host")
    return std::nullopt;
  if (isa<UnrankedMemRefType>(type))
    return "a kernel's argument of type " + spelled(type) +
           " points to a descriptor in the host's memory, which the device cannot read: cast it to a memref "
           "with a rank before the launch";
  if (where.target == "rocdl" && hasWidePart(type))
    return "a kernel cannot have an argument of type " + spelled(type) +
           " on AMD GPUs, where a number of more than 64 bits is not where the host has it: pass parts of 64 "
           "bits, the number alone, or memory";
  if (where.target != "nvvm")
    return std::nullopt;
  if (isEmpty(type))
    return "a kernel cannot have an argument of type " + spelled(type) +
           " on NVIDIA GPUs, which has no bytes: leave it out";
  Type odd = oddPart(type);
  if (!odd)
    return std::nullopt;
  return "a kernel cannot have an argument of type " + spelled(type) + " on NVIDIA GPUs" +
         (odd == type ? std::string() : ", for its part " + spelled(odd)) +
         ": pass i8 or a wider type, or memory";
}

/// Address spaces by number: AMD's 7 to 9 hold descriptors of buffers, and PTX has none of 2, 8 and 9.
static std::optional<std::string> whyNotSpace(Type type, const ChipName &where) {
  auto memref = dyn_cast<BaseMemRefType>(type);
  auto space = memref ? dyn_cast_or_null<IntegerAttr>(memref.getMemorySpace()) : IntegerAttr();
  if (!space) {
    // MLIR 22 lowers those of AMD's dialect only.
    bool named = memref && memref.getMemorySpace() && where.target == "nvvm" &&
                 memref.getMemorySpace().getDialect().getNamespace() == "nvvm";
    if (!named)
      return std::nullopt;
    return "the memory space of " + spelled(type) +
           " has no lowering: write #gpu.address_space<global>, <workgroup> or <private>";
  }
  int64_t number = space.getValue().getSExtValue();
  std::string name = "memory space " + std::to_string(number);
  if (where.target == "rocdl" && number > 6)
    return name + " holds no plain pointers on AMD GPUs: use 1 (global), 3 (workgroup), 5 (private), or "
                  "amdgpu.fat_raw_buffer_cast";
  if (where.target == "nvvm" && (number == 2 || number > 7))
    return name +
           " does not exist on NVIDIA GPUs: use 1 (global), 3 (workgroup), 4 (constant) or 5 (private)";
  return std::nullopt;
}

static std::optional<std::string> whyNotType(Type type, const ChipName &where) {
  if (auto why = whyNotSpace(type, where))
    return why;
  bool wide = type.walk([](Type each) {
                    return isa<Float80Type>(each) ? WalkResult::interrupt() : WalkResult::advance();
                  })
                  .wasInterrupted();
  if (!wide || where.target == "host")
    return std::nullopt;
  return "has a value of type " + spelled(type) +
         ", which only x86 processors compute with: convert to f64, or "
         "build this module for the CPU alone";
}

/// No processor has atomic operations on less than a byte, and none on 8-bit floats.
static std::optional<std::string> whyNotAtomic(Operation *op) {
  if (!isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp>(op))
    return std::nullopt;
  Type type = op->getResult(0).getType();
  bool fits = type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  if (auto integer = dyn_cast<IntegerType>(type))
    fits = integer.getWidth() >= 8 && integer.getWidth() <= 64 && llvm::isPowerOf2_32(integer.getWidth());
  if (fits)
    return std::nullopt;
  return "'" + op->getName().getStringRef().str() + "' cannot be on elements of type " + spelled(type) +
         ": they can be i8, i16, i32, i64, f16, bf16, f32 or f64";
}

/// Nothing else could define it: no symbol of a kernel's memory is seen outside of its image. A block's
/// memory never has a value.
static std::optional<std::string> whyNotGlobal(Operation *op) {
  auto global = dyn_cast<memref::GlobalOp>(op);
  if (!global || !global.isExternal() || !op->getParentOfType<gpu::GPUModuleOp>() ||
      isWorkgroup(global.getType().getMemorySpace()))
    return std::nullopt;
  return "memref.global @" + global.getSymName().str() +
         " has no value, and nothing else can define it for kernels: give it one, or `uninitialized`";
}

/// Code generators for GPUs make one variable of it, which all threads share.
static std::optional<std::string> whyNotOfThreads(Operation *op) {
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  if (!global || !global.getThreadLocal_() || !op->getParentOfType<gpu::GPUModuleOp>())
    return std::nullopt;
  return "llvm.mlir.global @" + global.getSymName().str() +
         " is thread_local, and kernels have no variables that outlive a thread: use llvm.alloca in the "
         "kernel, "
         "or memory that is an argument";
}

/// PTX's identifiers; LLVM gives kernels no others. And what is printed, for one, would be told to the
/// kernel.
static std::optional<std::string> whyNotNamed(Operation *op, const ChipName &where) {
  if (!isa<FunctionOpInterface>(op))
    return std::nullopt;
  StringRef name = cast<SymbolOpInterface>(op).getName();
  bool kernel = op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName());
  if (kernel && isOfDeviceLibrary(name))
    return "a kernel cannot be called '" + name.str() +
           "': operations in kernels become calls of the library that has this name; rename it";
  if (kernel && (name.starts_with("__offload_") || name.starts_with("offload.")))
    return "a kernel cannot be called '" + name.str() +
           "': names that begin with __offload_ or offload. are those of code that kernels become; rename it";
  if (where.target != "nvvm")
    return std::nullopt;
  bool plain = !llvm::isDigit(name.front()) &&
               llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
  if (plain || !kernel)
    return std::nullopt;
  return "a kernel cannot be called '" + name.str() +
         "' on NVIDIA GPUs: PTX has names of letters, digits, _ and $ that begin with no digit; rename it, "
         "or leave " +
         where.target + " out";
}

/// LLVM and the assemblers would speak of calling conventions.
static std::optional<std::string> whyNotResult(Operation *op) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || !op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
    return std::nullopt;
  for (Type type : function.getResultTypes())
    if (!isa<LLVM::LLVMVoidType>(type))
      return "a kernel cannot return a value, and this one returns one of type " + spelled(type) +
             ": store it in memory that is an argument, or leave out `gpu.kernel` if kernels call this "
             "function";
  return std::nullopt;
}

/// Ids would be those of clusters of one block, and what blocks share is not there.
static std::optional<std::string> whyNotInClusters(gpu::GPUFuncOp kernel, const ChipName &where) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  bool one = !size || llvm::all_of(*size, [](int32_t blocks) { return blocks == 1; });
  if (one || where.chip.empty())
    return std::nullopt;
  std::unique_ptr<Lanes> lanes = makeLanes(where.target, /*size=*/32, where.chip);
  if (!lanes || lanes->hasClusters())
    return std::nullopt;
  std::string blocks;
  llvm::raw_string_ostream stream(blocks);
  llvm::interleaveComma(*size, stream);
  return "a kernel for clusters of (" + blocks + ") blocks cannot run on " + where.said +
         ", where each block is a cluster of its own: leave out known_cluster_size, or " + where.said;
}

std::optional<std::string> whyNotInKernels(Operation *op, const ChipName &where) {
  for (Type type : op->getResultTypes())
    if (auto why = whyNotType(type, where))
      return why;
  for (Region &region : op->getRegions()) // arguments of functions, loops and blocks
    for (Block &block : region)
      for (Type type : block.getArgumentTypes())
        if (auto why = whyNotType(type, where))
          return why;
  if (auto why = whyNotNamed(op, where))
    return why;
  if (auto why = whyNotResult(op))
    return why;
  if (auto why = whyNotAtomic(op))
    return why;
  if (auto why = whyNotGlobal(op))
    return why;
  if (auto why = whyNotOfThreads(op))
    return why;
  if (auto kernel = dyn_cast<FunctionOpInterface>(op);
      kernel && op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
    for (Type type : kernel.getArgumentTypes())
      if (auto why = whyNotArgument(type, where))
        return why;
  auto function = dyn_cast<gpu::GPUFuncOp>(op);
  if (!function)
    return std::nullopt;
  for (BlockArgument memory : function.getWorkgroupAttributions())
    if (auto why = whyNotAttribution(memory.getType(), "block"))
      return why;
  for (BlockArgument memory : function.getPrivateAttributions())
    if (auto why = whyNotAttribution(memory.getType(), "thread"))
      return why;
  if (auto why = whyNotInClusters(function, where))
    return why;
  return std::nullopt;
}

} // namespace offload
