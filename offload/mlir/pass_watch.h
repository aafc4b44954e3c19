//===- pass_watch.h - Which pass runs, which one failed, how long each took ===//
#pragma once

#include "crash_notes.h"

#include "mlir/Pass/PassInstrumentation.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace offload {

/// A pass and how many seconds it took.
using PassTime = std::pair<std::string, double>;

/// The passes that ran in this thread since the last call, in order.
std::vector<PassTime> takePassTimes();

/// Keeps the times of passes, notes the running one for a crash, and writes the name of the innermost one
/// that failed to `failed`, which must outlive it. For a context without threads.
class PassWatch : public mlir::PassInstrumentation {
public:
  explicit PassWatch(std::string &failed) : failed(failed) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  using Clock = std::chrono::steady_clock;
  void finish(mlir::Pass *pass);

  std::string &failed;
  std::vector<std::pair<Clock::time_point, std::unique_ptr<CrashNote>>>
      running; // the last one is the innermost
};

} // namespace offload
