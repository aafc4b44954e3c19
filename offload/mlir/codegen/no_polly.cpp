//===- no_polly.cpp - Polly, where LLVM's archives expect it --------------===//
//
// Archives of an LLVM that was built with Polly, as Debian's is, call this where lld compiles bitcode, and
// come without it. Nothing here goes that way: all that lld is given is object code. An extension that loads
// libLLVM.so has no use for it.

#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder &) {}, nullptr};
}
