//===- choose_products.cpp - offload-choose-products ------------------------===//
//
// Products of matrices for which a kernel has code for matrix units, once for each size of a subgroup, and
// code for chips without (loops/block_tiles.cpp): of that what this chip is to do. Workgroup memory of the
// other code goes with it. Likewise of rows which GPUs go through several elements at once
// (loops/wide_rows.cpp).
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct ChooseProducts : public PassWrapper<ChooseProducts, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseProducts)

  ChooseProducts() = default;
  ChooseProducts(const ChooseProducts &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-choose-products"; }
  StringRef getDescription() const final { return "Keep the code for a chip's matrix units, or the other"; }

  void runOnOperation() final {
    SmallVector<scf::IfOp> choices;
    getOperation().walk([&](scf::IfOp op) {
      if (op->hasAttr(kMatrixUnits))
        choices.push_back(op);
    });
    SmallVector<scf::IfOp> wide;
    getOperation().walk([&](scf::IfOp op) {
      if (op->removeAttr(kWideRows) && (target == "host" || narrowIndex) && op.elseBlock() &&
          !op.getNumResults())
        wide.push_back(op);
    });
    for (scf::IfOp choice : wide) { // no one is in another
      Value condition = choice.getCondition();
      keep(choice, choice.elseBlock());
      eraseUnused(condition); // it asks for addresses, which narrow indices do not hold
    }
    SetVector<gpu::GPUFuncOp> kernels;
    for (scf::IfOp choice : choices) { // inner ones first: what is left of them goes with the outer ones
      auto units = choice->getAttrOfType<DenseI64ArrayAttr>(kMatrixUnits);
      if (!units || units.size() < 2 || !choice.elseBlock() || choice.getNumResults())
        continue; // it is not block_tiles.cpp's
      bool byRegisters = units[0] && units.size() > 2, has = hasUnits(units[0], units[1], byRegisters);
      has = has && (target == "rocdl" || !choice->hasAttr(kBFloats));
      if (auto kernel = choice->getParentOfType<gpu::GPUFuncOp>()) {
        kernels.insert(kernel);
        if (has && target == "nvvm" && units.size() > 2) // that many blocks are to find room together
          kernel->setAttr("nvvm.minctasm", Builder(kernel).getI32IntegerAttr(int32_t(units[2])));
      }
      keep(choice, has ? choice.thenBlock() : choice.elseBlock());
    }
    for (gpu::GPUFuncOp kernel : kernels) {
      eraseUnusedMemory(kernel);
      alignMemory(kernel);
    }
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name in the registry")};
  Option<std::string> chip{*this, "chip", llvm::cl::desc("its chip")};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("threads of a subgroup"),
                                llvm::cl::init(32)};
  Option<bool> narrowIndex{*this, "narrow-index", llvm::cl::desc("index has fewer bits than an address"),
                           llvm::cl::init(false)};

private:
  static void keep(scf::IfOp choice, Block *kept) {
    kept->getTerminator()->erase();
    choice->getBlock()->getOperations().splice(choice->getIterator(), kept->getOperations());
    choice.erase();
  }

  /// Erases what nothing uses of what a number is computed from.
  static void eraseUnused(Value number) {
    llvm::SmallSetVector<Operation *, 8> candidates;
    auto add = [&](Value value) {
      if (Operation *op = value.getDefiningOp())
        candidates.insert(op);
    };
    add(number);
    while (!candidates.empty()) {
      Operation *op = candidates.pop_back_val();
      if (!isOpTriviallyDead(op))
        continue;
      SmallVector<Value> operands(op->getOperands());
      op->erase();
      llvm::for_each(operands, add);
    }
  }

  static void eraseUnusedMemory(gpu::GPUFuncOp kernel) {
    unsigned count = kernel.getNumWorkgroupAttributions(), first = kernel.getFunctionType().getNumInputs();
    ArrayAttr all = kernel.getWorkgroupAttribAttrs().value_or(ArrayAttr());
    SmallVector<Attribute> kept;
    unsigned left = 0, number = first;
    for (unsigned i = 0; i < count; ++i) {
      if (kernel.getArgument(number).use_empty()) {
        kernel.front().eraseArgument(number);
        continue;
      }
      ++number;
      ++left;
      if (all)
        kept.push_back(all[i]);
    }
    Builder b(kernel.getContext());
    kernel->setAttr(gpu::GPUFuncOp::getNumWorkgroupAttributionsAttrName(), b.getI64IntegerAttr(left));
    if (all)
      kernel.setWorkgroupAttribAttrsAttr(b.getArrayAttr(kept));
  }

  /// Pieces of 16 bytes begin at multiples of them.
  static void alignMemory(gpu::GPUFuncOp kernel) {
    IntegerAttr bytes = Builder(kernel).getI64IntegerAttr(16);
    for (int i = 0, count = int(kernel.getNumWorkgroupAttributions()); i < count; ++i)
      kernel.setWorkgroupAttributionAttr(i, LLVM::LLVMDialect::getAlignAttrName(), bytes);
  }

  /// Whether the chip has units for factors of so many bits, distributed over so many threads; `byRegisters`:
  /// those of nvgpu.mma.sync, with its copies. GPUs have threads (no subgroup), and registers for these (no
  /// bits).
  bool hasUnits(int64_t subgroup, int64_t bits, bool byRegisters) {
    bool isGpu = target == "nvvm" || target == "rocdl";
    if (!subgroup && !bits)
      return isGpu;
    if (narrowIndex) // whether an address is a multiple of 16 it cannot say
      return false;
    if (!subgroup)
      return isGpu;
    if (subgroup != subgroupSize)
      return false;
    if (target == "nvvm") {
      StringRef name = chip;
      unsigned number = 0;
      return name.consume_front("sm_") && !name.consumeInteger(10, number) &&
             number >= (byRegisters ? 80
                        : bits == 8 ? 75
                                    : 70);
    }
    if (target != "rocdl" || byRegisters)
      return false;
    MatrixUnits units = unitsOf(chip);
    return units == MatrixUnits::Mfma ? subgroup == 64 : units != MatrixUnits::None && subgroup == 32;
  }
};

} // namespace

void registerChooseProductsPass() { PassRegistration<ChooseProducts>(); }

} // namespace offload
