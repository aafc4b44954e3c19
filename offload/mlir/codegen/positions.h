//===- positions.h - Where in the author's file LLVM's failures come from -===//
//
// Code generation speaks of functions and instructions of LLVM IR. Translation keeps the positions of all of
// them as debug locations that nothing is emitted for (emission kind: none), and here the words of LLVM
// become diagnostics at those positions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "session.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/Module.h"

#include <map>
#include <string>
#include <vector>

namespace offload {

class Positions {
public:
  /// Notes where the functions of lowered MLIR are defined and first called, and gives every function a debug
  /// scope, unless the program has debug information of its own. Call before the translation.
  void collect(mlir::ModuleOp holder);
  /// Marks inline assembly with its place. Call after the translation.
  void markInlineAssembly(llvm::Module &module);
  /// Notes where intrinsics are first called. Call before debug locations go.
  void rememberIntrinsics(const llvm::Module &module);
  /// Are the debug locations of the module there for messages alone?
  bool forMessagesAlone() const { return added; }

  /// What LLVM reports while it compiles: an error for the author.
  Diagnostic explain(const llvm::DiagnosticInfo &info, const std::string &chip) const;
  /// What LLVM says before it gives up; `module` is what it was working on.
  Diagnostic explainFatal(const std::string &reason, const llvm::Module &module,
                          const std::string &chip) const;
  /// An error about a function that is named in a message ('name').
  Diagnostic explainFunction(const std::string &message) const;
  /// An error of LLVM's verifier, which shows the instructions that it is about.
  Diagnostic explainInvalid(const std::string &message, const llvm::Module &module) const;
  /// Where a function is defined or, without a body, first called; without a line where that is not known.
  Diagnostic of(const std::string &function) const;

private:
  Diagnostic ofFunction(llvm::StringRef name) const;
  Diagnostic firstCall(const llvm::Module &module, const std::string &intrinsic) const;
  Diagnostic ofAssembly(const llvm::Module &module, llvm::StringRef message) const;

  std::map<std::string, Diagnostic> defined, used, intrinsics;
  std::vector<Diagnostic> assembly; // by srcloc - 1
  bool added = false;
};

/// Simplifies positions of inlined code that MLIR cannot make debug locations of.
void settlePositions(mlir::Operation *root);

/// A debug location as a position without a message.
Diagnostic positionOf(const llvm::DILocation *location);

} // namespace offload
