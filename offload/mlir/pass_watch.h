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

/// What is known of the passes of one run after it.
struct PassLog {
  std::string failed; ///< the innermost pass that failed; empty where none did
  std::vector<std::pair<std::string, double>> times;
};

/// Fills a PassLog, which must outlive it; notes the running pass for a crash. For a context without threads.
class PassWatch : public mlir::PassInstrumentation {
public:
  explicit PassWatch(PassLog &log) : log(log) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  using Clock = std::chrono::steady_clock;
  void finish(mlir::Pass *pass);

  PassLog &log;
  std::vector<std::pair<Clock::time_point, std::unique_ptr<CrashNote>>>
      running; // the last one is the innermost
};

} // namespace offload
