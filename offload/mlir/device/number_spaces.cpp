//===- number_spaces.cpp - offload-number-spaces --------------------------===//
//
// Memory spaces by name become the numbers that a target's pointers have, before vectors of memory are
// lowered: MLIR's lowering of these knows numbers alone. On the CPU all pointers are plain; there, a module's
// memory of a block gets the prefix that marks it.
//
//===----------------------------------------------------------------------===//

#include "device/vendor_rules.h"
#include "names.h"
#include "passes.h"
#include "spaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kWorkgroupNumber = 3; // on every GPU

struct NumberSpaces : public PassWrapper<NumberSpaces, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NumberSpaces)

  NumberSpaces() = default;
  NumberSpaces(const NumberSpaces &other) : PassWrapper(other) {}
  Option<unsigned> global{*this, "global", llvm::cl::desc("Everybody's memory"), llvm::cl::init(0)};
  Option<unsigned> workgroup{*this, "workgroup", llvm::cl::desc("A block's memory; 0 where all is one space"),
                             llvm::cl::init(0)};
  Option<unsigned> own{*this, "private", llvm::cl::desc("A thread's memory"), llvm::cl::init(0)};

  StringRef getArgument() const final { return "offload-number-spaces"; }
  StringRef getDescription() const final { return "Make memory spaces by name numbers of the target's"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<memref::MemRefDialect>();
  }

  void runOnOperation() final {
    gpu::GPUModuleOp module = getOperation();
    if (!workgroup)
      markWorkgroupGlobals(module);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](MemRefType type) -> std::optional<Type> {
      return MemRefType::get(type.getShape(), type.getElementType(), type.getLayout(),
                             numbered(type.getMemorySpace()));
    });
    replacer.addReplacement([&](UnrankedMemRefType type) -> std::optional<Type> {
      return UnrankedMemRefType::get(type.getElementType(), numbered(type.getMemorySpace()));
    });
    // What these operations give is by name, always.
    SmallVector<std::pair<Value, Type>> named;
    module.walk([&](Operation *op) {
      if (isa<gpu::DynamicSharedMemoryOp>(op) || !ownerOf(op->getName().getDialectNamespace()).empty())
        for (Value result : op->getResults())
          named.push_back({result, result.getType()});
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    for (auto [value, type] : named) {
      if (!isa<MemRefType>(type) || value.getType() == type)
        continue;
      OpBuilder b(value.getContext());
      b.setInsertionPointAfterValue(value);
      auto plain = memref::MemorySpaceCastOp::create(b, value.getLoc(), value.getType(), value);
      value.replaceAllUsesExcept(plain, plain);
      value.setType(type);
    }
    module.walk([](memref::MemorySpaceCastOp op) {
      if (op.getSource().getType() != op.getType())
        return;
      op.replaceAllUsesWith(op.getSource());
      op.erase();
    });
  }

  Attribute numbered(Attribute space) const {
    if (isa_and_nonnull<IntegerAttr>(space) && !workgroup)
      return {};
    std::optional<unsigned> number = numberOfSpace(space);
    if (auto named = dyn_cast_or_null<gpu::AddressSpaceAttr>(space))
      switch (named.getValue()) {
      case gpu::AddressSpace::Global:
        number = global;
        break;
      case gpu::AddressSpace::Workgroup:
        number = workgroup;
        break;
      case gpu::AddressSpace::Private:
        number = own;
        break;
      }
    if (!number)
      return space;
    return *number ? IntegerAttr::get(IntegerType::get(space.getContext(), 64), *number) : Attribute();
  }

  static void markWorkgroupGlobals(gpu::GPUModuleOp module) {
    SymbolTable symbols(module);
    for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>())) {
      if (isWorkgroup(global.getType().getMemorySpace()))
        (void)symbols.rename(global, (kSharedPrefix + global.getName()).str());
    }
    for (auto global : llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
      if (global.getAddrSpace() == kWorkgroupNumber)
        (void)symbols.rename(global, (kSharedPrefix + global.getSymName()).str());
  }
};

} // namespace

void registerNumberSpacesPass() { PassRegistration<NumberSpaces>(); }

} // namespace offload
