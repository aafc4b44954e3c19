//===- session.h - One MLIR context with its diagnostics ------------------===//
//
// Session owns an MLIRContext and collects every diagnostic that is emitted in it; IRModule owns one IR tree
// and keeps its session alive. Neither is thread-safe: one session belongs to one thread at a time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace offload {

/// A diagnostic with its position resolved; line and column count from 1 and are 0 where there is none.
struct Diagnostic {
  std::string severity;
  std::string message;
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  std::vector<Diagnostic> notes;
};

/// Thrown where a step fails; carries what the context reported during that step.
class Failure : public std::runtime_error {
public:
  Failure(const std::string &what, std::vector<Diagnostic> diagnostics)
      : std::runtime_error(what), diagnostics(std::move(diagnostics)) {}
  std::vector<Diagnostic> diagnostics;
};

class Session {
public:
  Session();
  ~Session();

  mlir::MLIRContext &context() { return *ctx; }

  /// The operations of a dialect, by name; none where there is no such dialect.
  std::vector<std::string> operationsOf(const std::string &dialect);

  /// The diagnostics since the last call.
  std::vector<Diagnostic> takeDiagnostics();

  /// Throws Failure with the diagnostics so far; `what` stands in where there are none.
  [[noreturn]] void fail(const std::string &what);

  /// Throws Failure where an error was reported since the last call of takeDiagnostics.
  void failOnErrors(const std::string &what);

private:
  std::unique_ptr<mlir::MLIRContext> ctx;
  mlir::DiagnosticEngine::HandlerID handler;
  std::vector<Diagnostic> diagnostics;
};

class IRModule {
public:
  IRModule(std::shared_ptr<Session> session, mlir::OwningOpRef<mlir::ModuleOp> op)
      : session(std::move(session)), op(std::move(op)) {}

  /// Parses MLIR text or bytecode. SSA names of function and kernel arguments are kept in the argument
  /// attribute `offload.name`. `alone`: it is the whole program, which has every kernel that it launches.
  /// Throws Failure.
  static std::shared_ptr<IRModule> parse(std::shared_ptr<Session> session, llvm::StringRef data,
                                         const std::string &filename, bool alone);

  /// Runs passes on the builtin.module: a textual pipeline without its anchor
  /// ("canonicalize,gpu.module(cse)"). Where a pass fails and `reproducer` names a file, the IR before that
  /// pass and the pass are written there, as mlir-opt --run-reproducer reads them. Throws Failure.
  void run(const std::string &pipeline, bool verifyEach, const std::string &reproducer);

  /// In the generic form, which no operation's own printer can leave something out of, or as people write it.
  std::string text(bool withLocations, bool generic) const;
  std::shared_ptr<IRModule> clone() const;

  /// Names of all operations, outside and inside gpu.module, each once.
  std::pair<std::vector<std::string>, std::vector<std::string>> operationNames() const;

  mlir::ModuleOp get() const { return const_cast<IRModule *>(this)->op.get(); }

  std::shared_ptr<Session> session;

private:
  mlir::OwningOpRef<mlir::ModuleOp> op; // after `session`: the IR dies before its context
};

/// The first file position inside a location; invalid (line 0) where it has none.
Diagnostic resolveLocation(mlir::Location loc);

/// lld resets LLVM's command-line options, which everything else reads: linking holds this alone, the rest
/// shares it.
std::shared_mutex &optionsLock();
using SharedLock = std::shared_lock<std::shared_mutex>;

} // namespace offload
