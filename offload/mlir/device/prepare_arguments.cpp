//===- prepare_arguments.cpp - Kernels that take memory by value ----------===//
//
// An argument with llvm.byval or llvm.byref is an address in the kernel and the memory's contents in a
// launch. NVIDIA's parameters are byval, and AMD's are byref, where the code generator takes the other for an
// address or refuses it. The CPU's are byref too: the address of what the launch passed.
//
// Memory that came byval is the thread's own, which it may write to; what a launch passed, all threads read.
//
// Functions that kernels call copy what comes byval themselves on AMD GPUs: there LLVM takes an address of
// any space for one in the caller's stack.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace offload {
namespace {

/// A copy of the thread's own instead.
void useCopy(BlockArgument argument, TypeAttr type, IntegerAttr alignment) {
  auto b = OpBuilder::atBlockBegin(argument.getOwner());
  Location loc = argument.getLoc();
  Value one = LLVM::ConstantOp::create(b, loc, b.getI32Type(), 1);
  Type plain = LLVM::LLVMPointerType::get(b.getContext());
  // The size is LLVM's affair: pointers of some spaces are shorter on AMD GPUs.
  Value end = LLVM::GEPOp::create(b, loc, plain, type.getValue(), LLVM::ZeroOp::create(b, loc, plain),
                                  ArrayRef<LLVM::GEPArg>{1});
  Value bytes = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), end);
  Value copy = LLVM::AllocaOp::create(b, loc, plain, type.getValue(), one,
                                      alignment ? unsigned(alignment.getInt()) : 0);
  Operation *moved = LLVM::MemcpyOp::create(b, loc, copy, argument, bytes, /*isVolatile=*/false);
  Value address = copy;
  if (argument.getType() != plain)
    address = LLVM::AddrSpaceCastOp::create(b, loc, argument.getType(), copy);
  argument.replaceAllUsesExcept(address, moved);
}

void settle(LLVM::LLVMFuncOp kernel, unsigned i, StringRef target) {
  StringRef byValue = LLVM::LLVMDialect::getByValAttrName(), byRef = LLVM::LLVMDialect::getByRefAttrName();
  bool value = bool(kernel.getArgAttr(i, byValue));
  auto type = kernel.getArgAttrOfType<TypeAttr>(i, value ? byValue : byRef);
  if (!type)
    return;
  if (target == "nvvm") {
    kernel.removeArgAttr(i, byRef);
    kernel.setArgAttr(i, byValue, type);
    return;
  }
  kernel.removeArgAttr(i, byValue);
  kernel.setArgAttr(i, byRef, type);
  auto alignment = kernel.getArgAttrOfType<IntegerAttr>(i, LLVM::LLVMDialect::getAlignAttrName());
  // A launch on the CPU aligns what it passes as its type asks for.
  if (value || (alignment && target == "host"))
    useCopy(kernel.getArgument(i), type, alignment);
  if (target == "host")
    kernel.removeArgAttr(i, LLVM::LLVMDialect::getAlignAttrName());
}

void copyInside(LLVM::LLVMFuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto type = function.getArgAttrOfType<TypeAttr>(i, LLVM::LLVMDialect::getByValAttrName())) {
      function.removeArgAttr(i, LLVM::LLVMDialect::getByValAttrName());
      useCopy(function.getArgument(i), type,
              function.getArgAttrOfType<IntegerAttr>(i, LLVM::LLVMDialect::getAlignAttrName()));
    }
}

/// A call of a function that copies itself.
void passAddresses(LLVM::CallOp call) {
  auto callee = call.getCalleeAttr()
                    ? SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(call, call.getCalleeAttr())
                    : LLVM::LLVMFuncOp();
  ArrayAttr attributes = call.getArgAttrsAttr();
  if (!attributes || (callee && callee.isExternal()))
    return;
  auto plain = llvm::map_to_vector(attributes, [](Attribute each) -> Attribute {
    NamedAttrList kept(cast<DictionaryAttr>(each));
    kept.erase(LLVM::LLVMDialect::getByValAttrName());
    return kept.getDictionary(each.getContext());
  });
  call.setArgAttrsAttr(ArrayAttr::get(call.getContext(), plain));
}

} // namespace

void settleArgumentsByValue(gpu::GPUModuleOp module, StringRef target) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    if (!function->hasAttr(gpu::GPUDialect::getKernelFuncAttrName())) {
      if (target == "rocdl")
        copyInside(function);
      continue;
    }
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      settle(function, i, target);
  }
  if (target == "rocdl")
    module.walk(passAddresses);
}

} // namespace offload
