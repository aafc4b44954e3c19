//===- ready_parameters.cpp - What kernels of compiled code take ----------===//
//
// Nothing in a program says whether a kernel that came as machine code takes a memref as a descriptor, word
// by word, as MLIR lowers it, or as a plain pointer, as C++ does. The sizes of its parameters, which the
// bytes tell, do: each launch of it is marked with what it has to pass.
//
//===----------------------------------------------------------------------===//

#include "input/ready_images.h"
#include "names.h"
#include "program.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {

/// The bytes that a parameter may have for a value; empty where that is the target's own.
using Sizes = SmallVector<int64_t, 2>;

static const Sizes kPointer = {8};
/// Where a target has an index of 32 bits, half of one is read.
static const Sizes kIndex = {4, 8};

static Sizes sizesOf(Type type) {
  if (type.isIndex())
    return kIndex;
  if (type.isIntOrFloat())
    return {int64_t(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8))};
  return isa<LLVM::LLVMPointerType>(type) ? kPointer : Sizes();
}

static bool fits(gpu::LaunchFuncOp launch, ArrayRef<int64_t> bytes, bool plainPointers) {
  SmallVector<Sizes> passed;
  for (Type type : launch.getKernelOperands().getTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && plainPointers) {
      passed.push_back(kPointer);
    } else if (memref) {
      passed.append(2, kPointer);
      passed.append(1 + 2 * memref.getRank(), kIndex);
    } else if (isa<UnrankedMemRefType>(type)) {
      passed.append({kIndex, kPointer});
    } else {
      passed.push_back(sizesOf(type));
    }
  }
  return passed.size() == bytes.size() && llvm::all_of(llvm::zip(passed, bytes), [](auto pair) {
           auto &[sizes, given] = pair;
           return sizes.empty() || llvm::is_contained(sizes, given);
         });
}

static std::string listed(ArrayRef<int64_t> bytes) {
  std::string text = std::to_string(bytes.size()) + " parameters";
  for (auto [i, size] : llvm::enumerate(bytes))
    text += (i == 0 ? " of " : i + 1 == bytes.size() ? " and " : ", ") + std::to_string(size);
  return text + (bytes.empty() ? "" : " bytes");
}

/// Marks a launch, or says why nothing that it can pass is what the kernel takes.
static void mark(gpu::LaunchFuncOp launch, ArrayRef<int64_t> bytes, const std::string &image, bool bare) {
  bool words = fits(launch, bytes, /*plainPointers=*/false), plain = fits(launch, bytes, true);
  auto fail = [&] {
    return launch.emitOpError("passes ")
           << wordsOf(launch) << " words (" << launch.getNumKernelOperands()
           << " operands, memrefs as descriptors) to a kernel whose compiled code for " << image << " has "
           << listed(bytes);
  };
  if (!words && !plain) {
    fail() << ": neither these nor a plain pointer for each memref";
    return;
  }
  if (words && plain)
    return; // there is no memref
  if (plain)
    for (Type type : launch.getKernelOperands().getTypes())
      if (auto memref = dyn_cast<MemRefType>(type); memref && !memref.getLayout().isIdentity()) {
        launch.emitOpError("passes ")
            << type << " to a kernel that takes a plain pointer for it (its compiled code for " << image
            << " has " << listed(bytes) << "): make its layout the identity";
        return;
      }
  auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(launch, launch.getKernelAttr());
  if (kernel && !kernel.isExternal() && !isa<LLVM::LLVMFuncOp>(kernel) && plain != bare) {
    fail() << ", and its source would be compiled for " << (bare ? "plain pointers" : "descriptors")
           << ": build " << (bare ? "without" : "with") << " bare pointers";
    return;
  }
  auto before = launch->getAttrOfType<BoolAttr>(kPlainPointers);
  if (before && before.getValue() != plain) {
    fail() << "; code of the same kernel for another chip takes "
           << (plain ? "descriptors" : "plain pointers");
    return;
  }
  launch->setDiscardableAttr(kPlainPointers, BoolAttr::get(launch.getContext(), plain));
}

void noteParameters(IRModule &module, const std::string &name, const std::string &kernel,
                    const std::vector<int64_t> &bytes, const std::string &image, bool bare) {
  module.get().walk([&](gpu::LaunchFuncOp launch) {
    if (launch.getKernelModuleName() == name && launch.getKernelName() == kernel)
      mark(launch, bytes, image, bare);
  });
  module.session->failOnErrors("a launch does not fit its kernel");
}

} // namespace offload
