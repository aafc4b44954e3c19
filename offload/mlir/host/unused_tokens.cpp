//===- unused_tokens.cpp - offload-wait-for-unused-tokens -----------------===//
//
// Work whose token nothing uses is waited for where the token's block ends: nobody else can. What comes after
// the block, in a later iteration or behind the function's return, uses the memory again. Tokens that loops
// and branches hand on, and those that a function is given, are such work, too; so this is done while there
// are loops and branches.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace offload {
namespace {

/// On a stream that the rest of a program made which is lowered in part: there it is waited for, and goes.
bool isOnStreamOfLoweredCode(Value token) {
  while (auto op = token.getDefiningOp<gpu::AsyncOpInterface>()) {
    if (op.getAsyncDependencies().empty())
      return false;
    token = op.getAsyncDependencies().front();
  }
  return token.getDefiningOp<UnrealizedConversionCastOp>() != nullptr;
}

struct WaitForUnusedTokens : public PassWrapper<WaitForUnusedTokens, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WaitForUnusedTokens)

  StringRef getArgument() const final { return "offload-wait-for-unused-tokens"; }
  StringRef getDescription() const final { return "Wait for work whose token nothing uses"; }
  void getDependentDialects(DialectRegistry &registry) const final { registry.insert<gpu::GPUDialect>(); }

  void runOnOperation() final {
    SmallVector<Value> unused;
    auto note = [&](ValueRange values) {
      llvm::copy_if(values, std::back_inserter(unused), [](Value value) {
        return isa<gpu::AsyncTokenType>(value.getType()) && value.use_empty() &&
               !isOnStreamOfLoweredCode(value);
      });
    };
    getOperation()->walk([&](Operation *op) {
      auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
      bool isTheAuthors = launch && launch.getAsyncObject();
      if (!isTheAuthors && !isa<CallOpInterface>(op)) // a function has waited for what it returns
        note(op->getResults());
      for (Region &region : op->getRegions())
        for (Block &block : region)
          note(block.getArguments());
    });
    for (Value token : unused) {
      OpBuilder b(token.getParentBlock()->getTerminator());
      gpu::WaitOp::create(b, token.getLoc(), Type(), token);
    }
  }
};

} // namespace

void registerWaitForUnusedTokensPass() { PassRegistration<WaitForUnusedTokens>(); }

} // namespace offload
