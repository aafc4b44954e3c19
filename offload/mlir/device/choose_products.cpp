//===- choose_products.cpp - offload-choose-products ------------------------===//
//
// Products of matrices for which a kernel has code for matrix units, once for each size of a subgroup, and
// code for chips without (loops/block_tiles.cpp): of that what this chip is to do. Likewise of rows which
// GPUs go through several elements at once (loops/wide_rows.cpp).
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"
#include "loops/wide_rows.h"
#include "names.h"
#include "passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
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
      if (op->removeAttr(kWideRows) && target == "host" && op.elseBlock() && !op.getNumResults())
        wide.push_back(op);
    });
    for (scf::IfOp choice : wide) // no one is in another
      keep(choice, choice.elseBlock());
    for (scf::IfOp choice : choices) { // inner ones first: what is left of them goes with the outer ones
      auto units = choice->getAttrOfType<DenseI64ArrayAttr>(kMatrixUnits);
      if (!units || units.size() != 2 || !choice.elseBlock() || choice.getNumResults())
        continue; // it is not block_tiles.cpp's
      bool has = hasUnits(units[0], units[1]);
      keep(choice, has ? choice.thenBlock() : choice.elseBlock());
    }
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name in the registry")};
  Option<std::string> chip{*this, "chip", llvm::cl::desc("its chip")};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("threads of a subgroup"),
                                llvm::cl::init(32)};

private:
  static void keep(scf::IfOp choice, Block *kept) {
    kept->getTerminator()->erase();
    choice->getBlock()->getOperations().splice(choice->getIterator(), kept->getOperations());
    choice.erase();
  }

  /// Whether the chip has units for factors of so many bits, distributed over so many threads.
  bool hasUnits(int64_t subgroup, int64_t bits) {
    if (subgroup != subgroupSize)
      return false;
    if (target == "nvvm") {
      StringRef name = chip;
      unsigned number = 0;
      return name.consume_front("sm_") && !name.consumeInteger(10, number) && number >= (bits == 8 ? 75 : 70);
    }
    if (target != "rocdl")
      return false;
    MatrixUnits units = unitsOf(chip);
    return units == MatrixUnits::Mfma ? subgroup == 64 : units != MatrixUnits::None && subgroup == 32;
  }
};

} // namespace

void registerChooseProductsPass() { PassRegistration<ChooseProducts>(); }

} // namespace offload
