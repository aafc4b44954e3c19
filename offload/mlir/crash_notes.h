//===- crash_notes.h - What a thread was doing when LLVM crashed ----------===//
#pragma once

#include "llvm/Support/PrettyStackTrace.h"

#include <string>

namespace offload {

/// A line that LLVM's crash handler prints while this object is alive. Of one thread; the newest goes first.
class CrashNote : public llvm::PrettyStackTraceEntry {
public:
  explicit CrashNote(std::string text) : text(std::move(text)) {}
  void print(llvm::raw_ostream &stream) const override;

private:
  std::string text;
};

/// Readies a process that does nothing but compile: a crash prints the notes to stderr, then ends the process
/// with its signal. Not for a process of someone else's, whose signal handlers it takes.
void watchCrashes();

} // namespace offload
