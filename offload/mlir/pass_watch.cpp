//===- pass_watch.cpp - The instrumentation of pass managers --------------===//

#include "pass_watch.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace offload {

static thread_local std::vector<PassTime> times;

std::vector<PassTime> takePassTimes() {
  std::vector<PassTime> taken;
  taken.swap(times);
  return taken;
}

static std::string nameOf(Pass *pass) {
  return (pass->getArgument().empty() ? pass->getName() : pass->getArgument()).str();
}

/// What runs the passes of `gpu.module(…)`: its time is theirs.
static bool isNest(Pass *pass) { return pass->getName() == "mlir::detail::OpToOpPassAdaptor"; }

void PassWatch::runBeforePass(Pass *pass, Operation *) {
  if (isNest(pass))
    return;
  running.emplace_back(Clock::now(), std::make_unique<CrashNote>("the pass " + nameOf(pass)));
}

void PassWatch::finish(Pass *pass) {
  if (running.empty() || isNest(pass))
    return;
  std::chrono::duration<double> taken = Clock::now() - running.back().first;
  times.emplace_back(nameOf(pass), taken.count());
  running.pop_back();
}

void PassWatch::runAfterPass(Pass *pass, Operation *) { finish(pass); }

void PassWatch::runAfterPassFailed(Pass *pass, Operation *) {
  if (failed.empty()) // the innermost one comes first
    failed = nameOf(pass);
  finish(pass);
}

} // namespace offload
