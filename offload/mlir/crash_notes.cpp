//===- crash_notes.cpp - Notes in LLVM's crash dump -----------------------===//

#include "crash_notes.h"

#include "llvm/Support/raw_ostream.h"

namespace offload {

// The words in front are what offload/compiler/crashes.py looks for.
void CrashNote::print(llvm::raw_ostream &stream) const { stream << "offload was at: " << text << "\n"; }

void watchCrashes() {
  // LLVM would ask the user to report its bugs there, with a backtrace that a stripped libLLVM cannot give.
  llvm::setBugReportMsg("");
  llvm::EnablePrettyStackTrace();
}

} // namespace offload
