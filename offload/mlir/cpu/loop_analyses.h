//===- loop_analyses.h - LLVM's analyses of one function's loops ------------===//
#pragma once

#include "llvm/Passes/PassBuilder.h"

namespace offload {

struct LoopAnalyses {
  LoopAnalyses() {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
  }

  llvm::PassBuilder builder;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
};

} // namespace offload
