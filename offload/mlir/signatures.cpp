//===- signatures.cpp - Functions and kernels as data ---------------------===//

#include "host/buffer_flow.h"
#include "host/read_only.h"
#include "names.h"
#include "program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <set>

using namespace mlir;
namespace json = llvm::json;

namespace offload {

/// The NumPy (or ml_dtypes) name of an element type.
static std::optional<std::string> dtypeName(Type type) {
  if (type.isIndex())
    return "int64";
  if (isa<LLVM::LLVMPointerType>(type))
    return "uint64";
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    if (width == 1)
      return "bool";
    if (width != 8 && width != 16 && width != 32 && width != 64)
      return std::nullopt;
    return (integer.isUnsigned() ? "uint" : "int") + std::to_string(width);
  }
  if (auto complex = dyn_cast<ComplexType>(type))
    return complex.getElementType().isF32()   ? std::optional<std::string>("complex64")
           : complex.getElementType().isF64() ? std::optional<std::string>("complex128")
                                              : std::nullopt;
  return llvm::TypeSwitch<Type, std::optional<std::string>>(type)
      .Case([](Float16Type) { return "float16"; })
      .Case([](BFloat16Type) { return "bfloat16"; })
      .Case([](Float32Type) { return "float32"; })
      .Case([](Float64Type) { return "float64"; })
      .Case([](Float8E5M2Type) { return "float8_e5m2"; })
      .Case([](Float8E4M3FNType) { return "float8_e4m3fn"; })
      .Case([](Float8E4M3Type) { return "float8_e4m3"; })
      .Case([](Float8E5M2FNUZType) { return "float8_e5m2fnuz"; })
      .Case([](Float8E4M3FNUZType) { return "float8_e4m3fnuz"; })
      .Case([](Float8E3M4Type) { return "float8_e3m4"; })
      .Case([](Float8E8M0FNUType) { return "float8_e8m0fnu"; })
      .Case([](Float8E4M3B11FNUZType) { return "float8_e4m3b11fnuz"; })
      .Default([](Type) { return std::nullopt; });
}

static json::Value dynamicAsNull(int64_t value) {
  return ShapedType::isDynamic(value) ? json::Value(nullptr) : json::Value(value);
}

/// One argument or result; nothing for types that Python has no counterpart for.
static std::optional<json::Object> describe(Type type, StringRef name, StringRef space) {
  auto memref = dyn_cast<MemRefType>(type);
  std::optional<std::string> dtype = dtypeName(memref ? memref.getElementType() : type);
  if (!dtype)
    return std::nullopt;
  json::Array shape;
  json::Value strides = nullptr, offset = 0;
  if (memref) {
    for (int64_t size : memref.getShape())
      shape.push_back(dynamicAsNull(size));
    if (!memref.getLayout().isIdentity()) {
      SmallVector<int64_t> steps;
      int64_t start;
      if (failed(memref.getStridesAndOffset(steps, start)))
        return std::nullopt;
      json::Array list;
      for (int64_t step : steps)
        list.push_back(dynamicAsNull(step));
      strides = std::move(list);
      offset = dynamicAsNull(start);
    }
  }
  json::Object entry{{"name", name.str()},
                     {"kind", memref ? "memref" : "scalar"},
                     {"dtype", *dtype},
                     {"rank", memref ? memref.getRank() : 0},
                     {"shape", std::move(shape)},
                     {"strides", std::move(strides)},
                     {"offset", std::move(offset)},
                     {"space", space}};
  if (isa<LLVM::LLVMPointerType>(type))
    entry["pointer"] = true;
  return entry;
}

/// Why there is no signature, for people: a type that `describe` has nothing for, and whose it is.
static std::string noCounterpart(Type type, const Twine &whose) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  constexpr size_t kMost = 200;
  if (text.size() > kMost)
    text = text.substr(0, kMost) + "...";
  return (text + " of " + whose).str();
}

static std::string noCounterpart(Type type, StringRef argument, size_t index, size_t count) {
  return noCounterpart(type,
                       "argument '" + argument + "' (" + Twine(index + 1) + " of " + Twine(count) + ")");
}

/// Is it registered in its function, or in one that is called with it? What callers do says nothing of
/// others.
static bool isRegistered(Value memref, llvm::SmallPtrSetImpl<void *> &seen) {
  return seen.insert(memref.getAsOpaquePointer()).second &&
         llvm::any_of(memref.getUses(), [&](OpOperand &use) {
           Operation *user = use.getOwner();
           if (isa<gpu::HostRegisterOp>(user))
             return true;
           if (auto call = dyn_cast<func::CallOp>(user)) {
             auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
             return callee && !callee.isExternal() &&
                    isRegistered(callee.getArgument(use.getOperandNumber()), seen);
           }
           return isa<CastOpInterface, ViewLikeOpInterface>(user) &&
                  llvm::any_of(user->getResults(), [&](Value result) {
                    return isa<BaseMemRefType>(result.getType()) && isRegistered(result, seen);
                  });
         });
}

/// Where the memory of an argument has to be: "device" where a kernel touches it, "host" where host code
/// alone does or registers it for kernels, "any" where neither is seen (a copy source, say).
static StringRef spaceOf(BufferFlow &flow, Value argument) {
  if (!isa<BaseMemRefType>(argument.getType()))
    return "any";
  const BufferClass &buffer = flow.classOf(argument);
  llvm::SmallPtrSet<void *, 8> seen;
  return buffer.registered && isRegistered(argument, seen) ? "host"
         : buffer.kernel                                   ? "device"
         : buffer.host                                     ? "host"
                                                           : "any";
}

/// Where the memory of a returned memref comes from: "device" where gpu.alloc may have made it, else "any"
/// (host memory, or an argument's own). Adds `shared` where the CPU reaches all that it may have made.
static void addSpaceOfResult(json::Object &entry, BufferFlow &flow, func::FuncOp function, unsigned index) {
  bool device = false, shared = true;
  for (Block &block : function.getBody())
    if (auto op = dyn_cast<func::ReturnOp>(block.getTerminator()))
      if (isa<BaseMemRefType>(op.getOperand(index).getType())) {
        const BufferClass &buffer = flow.classOf(op.getOperand(index));
        device |= buffer.device;
        shared &= !buffer.deviceAlone;
      }
  if (device)
    entry["space"] = "device";
  if (device && shared)
    entry["shared"] = true;
}

/// May host code of the program choose devices? Functions of other object files may.
static bool choosesDevices(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        auto function = dyn_cast<func::FuncOp>(op);
        return isa<gpu::SetDefaultDeviceOp>(op) || (function && function.isExternal())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Names that are valid and different from each other; numbered where the author gave none.
static std::vector<std::string> uniqueNames(ArrayRef<std::string> given) {
  std::vector<std::string> names;
  std::set<std::string> used;
  for (auto [i, wanted] : llvm::enumerate(given)) {
    std::string name;
    for (char c : wanted)
      name.push_back(llvm::isAlnum(c) || c == '_' ? c : '_');
    if (name.empty() || llvm::isDigit(name.front()))
      name = "arg" + std::to_string(i);
    while (!used.insert(name).second)
      name += "_";
    names.push_back(name);
  }
  return names;
}

static std::string givenName(FunctionOpInterface function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, kArgumentName);
  return name ? name.str() : "";
}

/// Adds what is said of a function or kernel; most say nothing.
static void addDoc(json::Object &entry, Operation *function) {
  if (auto doc = function->getAttrOfType<StringAttr>(kDoc); doc && !doc.empty())
    entry["doc"] = doc.str();
}

static void addOptional(json::Object &entry, FunctionOpInterface function, unsigned index) {
  if (function.getArgAttr(index, kOptional))
    entry["optional"] = true;
}

/// Few operations, none of which can fail, wait or call: the function is over before a lock could be given
/// away.
static bool isBrief(func::FuncOp function) {
  constexpr size_t kMost = 64;
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  auto isPlain = [&](Operation &op) {
    if (isa<func::ReturnOp, memref::DimOp, memref::LoadOp, memref::StoreOp>(op) || shownBy(&op))
      return true;
    return isa_and_nonnull<arith::ArithDialect>(op.getDialect()) &&
           llvm::all_of(op.getResultTypes(), isScalar);
  };
  if (!llvm::hasSingleElement(function.getBody()))
    return false;
  Block &body = function.getBody().front();
  return body.getOperations().size() <= kMost && llvm::all_of(body, isPlain);
}

/// Sizes that offload-equal-sizes has found.
static void addEqualSizes(json::Object &entry, func::FuncOp function) {
  json::Array sets;
  auto found = function->getAttrOfType<ArrayAttr>(kEqualSizes);
  for (Attribute each : found ? found.getValue() : ArrayRef<Attribute>()) {
    auto numbers = dyn_cast<DenseI64ArrayAttr>(each);
    if (!numbers || numbers.size() % 2 == 0)
      continue; // an author's
    json::Array dimensions;
    for (int64_t i = 1; i < numbers.size(); i += 2)
      dimensions.push_back(json::Array{numbers[i], numbers[i + 1]});
    json::Object set{{"dimensions", std::move(dimensions)}};
    if (numbers[0] >= 0)
      set["size"] = numbers[0];
    sets.push_back(std::move(set));
  }
  if (!sets.empty())
    entry["equal"] = std::move(sets);
}

/// And which sizes of results are those of arguments.
static void addResultSizes(json::Object &entry, func::FuncOp function) {
  json::Array sizes;
  auto found = function->getAttrOfType<DenseI64ArrayAttr>(kResultSizes);
  for (ArrayRef<int64_t> rest = found ? found.asArrayRef() : ArrayRef<int64_t>(); rest.size() >= 4;
       rest = rest.drop_front(4))
    sizes.push_back(json::Array{rest[0], rest[1], rest[2], rest[3]});
  if (!sizes.empty())
    entry["result_sizes"] = std::move(sizes);
}

static std::optional<json::Object> describeFunction(BufferFlow &flow, OnlyRead &reads, func::FuncOp function,
                                                    std::string &whyNot) {
  std::vector<std::string> given;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    given.push_back(givenName(function, i));
  std::vector<std::string> names = uniqueNames(given);
  json::Array arguments, results;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    std::optional<json::Object> entry = describe(argument.getType(), names[i], spaceOf(flow, argument));
    if (!entry) {
      whyNot = noCounterpart(argument.getType(), names[i], i, names.size());
      return std::nullopt;
    }
    addOptional(*entry, function, unsigned(i));
    if (function.getArgAttr(unsigned(i), kReadOnly) || reads.isOnlyRead(argument))
      (*entry)["read_only"] = true;
    arguments.push_back(std::move(*entry));
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    std::optional<json::Object> entry = describe(type, "result" + std::to_string(i), "any");
    if (!entry) {
      whyNot = noCounterpart(type, "result " + Twine(i + 1) + " of " + Twine(function.getNumResults()));
      return std::nullopt;
    }
    addSpaceOfResult(*entry, flow, function, unsigned(i));
    results.push_back(std::move(*entry));
  }
  json::Object entry{{"name", function.getName()},
                     {"symbol", kInterface + function.getName().str()},
                     {"args", std::move(arguments)},
                     {"results", std::move(results)}};
  if (isBrief(function))
    entry["brief"] = true;
  addEqualSizes(entry, function);
  addResultSizes(entry, function);
  addDoc(entry, function);
  return entry;
}

/// A function that came in the LLVM dialect: callable as it is where numbers and addresses are all that it
/// takes and returns. Nothing says what its pointers point to.
static std::optional<json::Object> describeLowered(LLVM::LLVMFuncOp function, std::string &whyNot) {
  Type result = function.getFunctionType().getReturnType();
  bool plain = isVisible(function) && function.getCConv() == LLVM::CConv::C && !function.isVarArg() &&
               !function.getName().starts_with(kInterface);
  for (StringRef name : {LLVM::LLVMDialect::getByValAttrName(), LLVM::LLVMDialect::getStructRetAttrName(),
                         LLVM::LLVMDialect::getByRefAttrName(), LLVM::LLVMDialect::getInAllocaAttrName()})
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      plain &= !function.getArgAttr(i, name);
  if (!plain)
    return std::nullopt;
  std::vector<std::string> given;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    given.push_back(givenName(function, i));
  std::vector<std::string> names = uniqueNames(given);
  json::Array arguments, results;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    std::optional<json::Object> entry = describe(type, names[i], "any");
    if (!entry) {
      whyNot = noCounterpart(type, names[i], i, names.size());
      return std::nullopt;
    }
    arguments.push_back(std::move(*entry));
  }
  if (!isa<LLVM::LLVMVoidType>(result)) {
    std::optional<json::Object> entry = describe(result, "result0", "any");
    if (!entry) {
      whyNot = noCounterpart(result, "its result");
      return std::nullopt;
    }
    results.push_back(std::move(*entry));
  }
  json::Object entry{{"name", function.getName()},
                     {"symbol", function.getName()},
                     {"args", std::move(arguments)},
                     {"results", std::move(results)}};
  addDoc(entry, function);
  return entry;
}

/// The launches of a kernel.
static SmallVector<gpu::LaunchFuncOp> launchesOf(ModuleOp module, StringRef device, StringRef kernel) {
  SmallVector<gpu::LaunchFuncOp> launches;
  module.walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() == device && launch.getKernelName() == kernel)
      launches.push_back(launch);
  });
  return launches;
}

/// Names of a kernel's arguments: the author's, where `given` has them, or those of the host values that a
/// launch passes.
static std::vector<std::string> kernelNames(std::vector<std::string> given,
                                            ArrayRef<gpu::LaunchFuncOp> launches) {
  for (gpu::LaunchFuncOp launch : launches)
    for (auto [i, operand] : llvm::enumerate(launch.getKernelOperands())) {
      auto argument = dyn_cast<BlockArgument>(operand);
      if (i >= given.size() || !given[i].empty() || !argument)
        continue;
      if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
          function && argument.getOwner()->isEntryBlock())
        given[i] = givenName(function, argument.getArgNumber());
    }
  return uniqueNames(given);
}

/// What the launches of a kernel pass; nothing where there is none or they do not agree.
static std::optional<SmallVector<Type>> launchedTypes(ArrayRef<gpu::LaunchFuncOp> launches) {
  std::optional<SmallVector<Type>> types;
  for (gpu::LaunchFuncOp launch : launches) {
    SmallVector<Type> passed(launch.getKernelOperands().getTypes());
    if (types && *types != passed)
      return std::nullopt;
    types = std::move(passed);
  }
  return types;
}

/// The kernels of a program, and those that have no signature, with what speaks against it.
struct DescribedKernels {
  OnlyRead &reads;
  json::Array all, refused;
};

/// The blocks and grids that its code counts on; of none at all, which never run, there is no code.
static void addKnownSizes(json::Object &entry, FunctionOpInterface kernel) {
  for (StringRef what : {"block", "grid"}) {
    auto known = kernel->getAttrOfType<DenseI32ArrayAttr>(knownSizeOf(kernel, what));
    if (known && known.size() == 3 && llvm::all_of(known.asArrayRef(), [](int32_t size) { return size > 0; }))
      entry[("known_" + what + "_size").str()] = json::Array(known.asArrayRef());
  }
}

/// `kernel` is where its author says more of it; there is none for compiled code.
/// `launches`, of a kernel that is compiled already, tell whether it takes plain pointers.
static void addKernel(DescribedKernels &kernels, StringRef device, StringRef name, ArrayRef<Type> types,
                      ArrayRef<std::string> names, ArrayRef<gpu::LaunchFuncOp> launches,
                      FunctionOpInterface kernel = {}) {
  json::Array arguments;
  for (auto [i, type] : llvm::enumerate(types)) {
    std::optional<json::Object> entry = describe(type, names[i], isa<MemRefType>(type) ? "device" : "any");
    if (!entry) {
      kernels.refused.push_back(json::Object{
          {"name", name}, {"module", device}, {"why", noCounterpart(type, names[i], i, types.size())}});
      return;
    }
    if (kernel && types.size() == kernel.getNumArguments())
      addOptional(*entry, kernel, unsigned(i));
    if (isa<MemRefType>(type) && kernel && !kernel.isExternal() &&
        kernels.reads.isOnlyRead(kernel.getArgument(unsigned(i))))
      (*entry)["read_only"] = true;
    arguments.push_back(std::move(*entry));
  }
  json::Object entry{{"name", name}, {"module", device}, {"args", std::move(arguments)}};
  for (gpu::LaunchFuncOp launch :
       llvm::any_of(types, llvm::IsaPred<MemRefType>) ? launches : ArrayRef<gpu::LaunchFuncOp>())
    if (std::optional<bool> plain = takesPlainPointers(launch))
      entry["bare_pointers"] = *plain;
  if (kernel) {
    addKnownSizes(entry, kernel);
    addDoc(entry, kernel);
  }
  kernels.all.push_back(std::move(entry));
}

static void addKernels(DescribedKernels &kernels, ModuleOp module, gpu::GPUModuleOp device) {
  for (auto kernel : device.getOps<FunctionOpInterface>()) {
    if (!kernel->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()))
      continue;
    SmallVector<gpu::LaunchFuncOp> launches = launchesOf(module, device.getName(), kernel.getName());
    SmallVector<Type> types(kernel.getArgumentTypes());
    for (auto [i, type] : llvm::enumerate(types)) // of memory by value, what is in it
      for (StringRef name : {LLVM::LLVMDialect::getByValAttrName(), LLVM::LLVMDialect::getByRefAttrName()})
        if (auto held = kernel.getArgAttrOfType<TypeAttr>(unsigned(i), name))
          type = held.getValue();
    // The declaration of a kernel that is there as machine code has expanded memrefs: a launch tells more.
    if (kernel.isExternal())
      types = launchedTypes(launches).value_or(types);
    std::vector<std::string> given(types.size());
    for (unsigned i = 0; i < types.size() && types.size() == kernel.getNumArguments(); ++i)
      given[i] = givenName(kernel, i);
    addKernel(kernels, device.getName(), kernel.getName(), types, kernelNames(given, launches), launches,
              kernel);
  }
}

/// The kernels of compiled code: their arguments are known from launches or else from a kernel table.
static void addKernels(DescribedKernels &kernels, ModuleOp module, gpu::BinaryOp device) {
  llvm::MapVector<StringRef, SmallVector<Type>> tables;
  for (Attribute object : device.getObjects())
    if (gpu::KernelTableAttr table = cast<gpu::ObjectAttr>(object).getKernels())
      for (gpu::KernelMetadataAttr kernel : table) {
        SmallVector<Type> types;
        if (auto function = dyn_cast<LLVM::LLVMFunctionType>(kernel.getFunctionType()))
          types.assign(function.getParams().begin(), function.getParams().end());
        else if (auto function = dyn_cast<FunctionType>(kernel.getFunctionType()))
          types.assign(function.getInputs().begin(), function.getInputs().end());
        else
          continue;
        tables.insert({kernel.getName().getValue(), types});
      }
  llvm::SetVector<StringRef> names;
  module.walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() == device.getName())
      names.insert(launch.getKernelName().getValue());
  });
  for (auto &[name, types] : tables)
    names.insert(name);
  for (StringRef name : names) {
    SmallVector<gpu::LaunchFuncOp> launches = launchesOf(module, device.getName(), name);
    std::optional<SmallVector<Type>> types = launchedTypes(launches);
    if (!types && tables.contains(name))
      types = tables.lookup(name);
    if (types)
      addKernel(kernels, device.getName(), name, *types,
                kernelNames(std::vector<std::string>(types->size()), launches), launches);
  }
}

std::string signatures(const IRModule &module) {
  json::Array functions;
  OnlyRead reads;
  DescribedKernels kernels{reads, {}, {}};
  bool anyDevice = choosesDevices(module.get());
  BufferFlow flow(module.get());
  for (auto function : module.get().getOps<FunctionOpInterface>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    std::optional<json::Object> entry;
    std::string whyNot;
    if (auto source = dyn_cast<func::FuncOp>(function.getOperation()))
      entry = describeFunction(flow, reads, source, whyNot);
    else if (auto lowered = dyn_cast<LLVM::LLVMFuncOp>(function.getOperation()))
      entry = describeLowered(lowered, whyNot);
    if (entry && anyDevice)
      (*entry)["any_device"] = true;
    if (entry)
      functions.push_back(std::move(*entry));
    else if (!whyNot.empty())
      kernels.refused.push_back(json::Object{{"name", function.getName()}, {"module", ""}, {"why", whyNot}});
  }
  for (Operation &op : *module.get().getBody()) {
    if (auto device = dyn_cast<gpu::GPUModuleOp>(op))
      addKernels(kernels, module.get(), device);
    else if (auto binary = dyn_cast<gpu::BinaryOp>(op))
      addKernels(kernels, module.get(), binary);
  }
  json::Value result = json::Object{{"functions", std::move(functions)},
                                    {"kernels", std::move(kernels.all)},
                                    {"refused", std::move(kernels.refused)}};
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << result;
  return text;
}

} // namespace offload
