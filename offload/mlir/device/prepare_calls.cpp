//===- prepare_calls.cpp - Refuses recursion in device code ---------------===//
//
// Kernels have no stack whose depth anyone could know: the CPU inlines all functions, and GPUs reserve memory
// for each thread before a launch.
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace offload {
namespace {

struct CallWalk {
  explicit CallWalk(gpu::GPUModuleOp module) : symbols(module) {}

  /// Follows the calls of `function`; fails at the first that comes back to a function on the way.
  LogicalResult follow(Operation *function) {
    if (done.contains(function))
      return success();
    open.insert(function);
    WalkResult walked = function->walk([&](CallOpInterface call) {
      auto name = dyn_cast_or_null<SymbolRefAttr>(
          llvm::dyn_cast_if_present<SymbolRefAttr>(call.getCallableForCallee()));
      Operation *callee = name ? symbols.lookup(name.getRootReference()) : nullptr;
      if (!callee)
        return WalkResult::advance();
      if (open.contains(callee)) {
        call->emitOpError() << "calls '" << name.getRootReference().getValue()
                            << "' recursively: device code cannot call recursive functions; write a loop";
        return WalkResult::interrupt();
      }
      return failed(follow(callee)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    open.erase(function);
    done.insert(function);
    return failure(walked.wasInterrupted());
  }

  SymbolTable symbols;
  llvm::DenseSet<Operation *> open, done;
};

} // namespace

LogicalResult refuseRecursion(gpu::GPUModuleOp module) {
  CallWalk walk(module);
  for (auto function : module.getOps<FunctionOpInterface>())
    if (failed(walk.follow(function)))
      return failure();
  return success();
}

} // namespace offload
