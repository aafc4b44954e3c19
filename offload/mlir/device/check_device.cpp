//===- check_device.cpp - offload-check-device ----------------------------===//
//
// The first pass of every device pipeline: refuses what the chip does not have while every operation is still
// the author's own and knows its place.
//
//===----------------------------------------------------------------------===//

#include "device/vendor_rules.h"
#include "passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

struct CheckDevice : public PassWrapper<CheckDevice, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckDevice)

  CheckDevice() = default;
  CheckDevice(const CheckDevice &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-check-device"; }
  StringRef getDescription() const final { return "Refuse what a chip does not have"; }

  void runOnOperation() final {
    ChipName where{target, chip, said.empty() ? chip : said};
    bool refused = false;
    auto refuse = [&](Operation *op, const std::optional<std::string> &why) {
      if (why)
        op->emitError(*why);
      refused |= why.has_value();
    };
    getOperation()->walk([&](Operation *op) {
      refuse(op, whyNotFor(op, where));
      refuse(op, whyNotInKernels(op, where));
    });
    // Types speak of operations that were refused above; alone they stand in a kernel's signature.
    if (!refused)
      getOperation()->walk([&](Operation *op) {
        if (auto function = dyn_cast<FunctionOpInterface>(op))
          for (Type type : function.getArgumentTypes())
            refuse(op, whyNotFor(type, where));
      });
    if (refused)
      signalPassFailure();
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name")};
  Option<std::string> chip{*this, "chip", llvm::cl::desc("the chip, by a name that MLIR knows")};
  Option<std::string> said{*this, "said", llvm::cl::desc("its name in messages, where that is another")};
};

} // namespace

void registerCheckDevicePass() { PassRegistration<CheckDevice>(); }

} // namespace offload
