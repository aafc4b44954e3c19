//===- llvm_module.h - LLVM IR of one device module or of the host --------===//
//
// An LLVM module in a context of its own, from translation to machine code. Not thread-safe; different
// modules may be used from different threads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/positions.h"
#include "session.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace offload {

/// What code is generated for.
struct MachineOptions {
  std::string triple;
  std::string cpu;
  std::string features;
  int level = 3;         // 0 to 3
  bool fastMath = false; // allow contraction and reassociation everywhere
};

/// Resources of a kernel by name, in the order in which they are shown.
using Resources = std::vector<std::pair<std::string, int64_t>>;
using KernelResources = std::vector<std::pair<std::string, Resources>>;

/// The most threads of a block, by kernel.
using ThreadLimits = std::map<std::string, uint32_t>;

/// How the host target runs a kernel's threads.
struct HostWay {
  bool coroutines = false; // threads that wait for others are coroutines even where loops would do
  uint32_t warpSize = 32;  // 32 or 64
  bool strips = true;      // neighbouring threads go through their loops together, for the vectorizer
  uint32_t registers = 0;  // bytes of the vector registers, where they hold little of a strip
};

/// Lanes of a subgroup may meet in a call. LLVM, which made one call of those in both sides of a branch,
/// takes the attribute away again where it sees that they do not.
void keepCallsInPlace(llvm::Module &module);

class LLVMModule {
public:
  /// Translates a module without gpu.module operations (host), or the one gpu.module in it (device).
  static std::shared_ptr<LLVMModule> translate(const IRModule &module, const MachineOptions &options);

  std::string text();
  std::string bitcode();

  /// Adds a function attribute to every function that is defined here.
  void addFunctionAttribute(const std::string &name, const std::string &value);
  /// Adds an integer module flag that must agree across modules.
  void addModuleFlag(const std::string &name, uint32_t value);
  /// Defines a constant that device libraries read (hidden, in `addressSpace`); `bits` is 8 or 32.
  void defineConstant(const std::string &name, unsigned bits, uint32_t value, unsigned addressSpace);
  /// Answers the questions that a device library asks about a property (NVIDIA's __nvvm_reflect).
  void answerReflection(const std::string &property, uint32_t value);
  /// Links the functions that this module lacks from the target's own library, a bitcode file, and makes them
  /// internal. Throws Failure.
  void linkNeeded(const std::string &path);
  /// The same for a user's bitcode or LLVM IR text, which must be for this module's triple and data layout.
  void linkLibrary(const std::string &path);
  /// The first of the linked libraries that defines the function, if any does.
  std::optional<std::string> libraryOf(const std::string &function) const {
    auto found = passed.find(function);
    return found == passed.end() ? std::nullopt : std::optional(found->second);
  }
  /// Where the relative source names of line information start.
  void setDebugFolder(const std::string &path);
  /// The functions that are declared but neither defined nor intrinsics.
  std::vector<std::string> undefinedFunctions() const;
  /// The variables of that kind; a block's memory, whose size a launch tells, is none of them.
  std::vector<std::string> undefinedVariables() const;
  /// Forgets functions that are to run when the code is loaded or unloaded where no kernel sees what they
  /// write. Call once all is linked.
  void dropUnseenLoading();
  /// The functions that are to run when the code is loaded or unloaded, as far as LLVM has not run them.
  std::vector<std::string> functionsOfLoading() const;
  /// Where a function is defined or, without a body, first called; line 0 where that is not known.
  Diagnostic positionOf(const std::string &function) const { return positions.of(function); }
  /// Makes everything but `kept` internal, so that what is not needed goes.
  void internalize(const std::vector<std::string> &kept);
  /// The same of functions alone, and not of those that assembly in the code names.
  void internalizeFunctions(const std::vector<std::string> &kept);

  /// Gives the kernels of the host target functions of mathematics that vectorize, in place of libm's. Call
  /// before lowerKernelsForHost.
  void useVectorMath();
  /// Turns kernels of the host target into functions that run blocks (host_abi.h). Throws Failure.
  void lowerKernelsForHost(const std::vector<std::string> &kernels, const ThreadLimits &limits,
                           const HostWay &way);
  /// What lowerKernelsForHost found out about the kernels.
  const KernelResources &hostResources() const { return resources; }

  /// LLVM's default pipeline for the level of the options. Of many kernels of the host target, several at a
  /// time.
  void optimize();
  /// Machine code as assembly text or as an object file. Throws Failure.
  std::string emit(bool assembly) {
    join();
    return generate(assembly, /*withLines=*/false);
  }
  /// Machine code as object files that belong together: kernels of the host target are in several, where
  /// there are many of them. Throws Failure.
  std::vector<std::string> emitObjects();
  /// The assembly text with line directives, for messages about it.
  std::string emitWithLines() {
    join();
    return generate(/*assembly=*/true, /*withLines=*/true);
  }

  llvm::Module &get() { return *module; }

private:
  LLVMModule(std::shared_ptr<Session> session, MachineOptions options);

  /// Has the processor what x86 lacks here and there? Others have it.
  bool has(const std::string &x86Feature) const;
  bool isForGpu() const;
  void link(const std::string &path);
  /// What a library defines otherwise than it is called here, for people; empty where all fits.
  std::string misfitOf(const llvm::Module &library) const;
  /// LLVM 22 rounds vectors of f32 to bf16 by bits of another value where AArch64 has no instruction for it.
  bool roundsVectorsOfBfloatWrongly() const;
  void optimizeWhole();
  /// Fills `parts`, where the module has enough for several.
  void divide();
  /// Puts the optimized parts together again, for who asks for all of them.
  void join();
  std::string generate(bool assembly, bool withLines);
  /// A copy without what is there for messages alone.
  std::unique_ptr<llvm::Module> presentable() const;

  std::shared_ptr<Session> session;
  MachineOptions options;
  Positions positions;
  std::shared_ptr<std::vector<Diagnostic>> reported; // by LLVM, since the last step
  KernelResources resources;
  std::map<std::string, std::string> passed; // functions of users' libraries, needed or not, with the path
  std::set<std::string> deviceLibrary;       // functions of the target's own library
  bool holdsHostKernels = false;             // after lowerKernelsForHost
  std::vector<std::shared_ptr<LLVMModule>> parts; // which are optimized instead of the module
  bool isJoined = false;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module; // after `context`
};

/// Runs passes with the analyses that they need.
void runPasses(llvm::Module &module, llvm::PassBuilder &builder, llvm::ModulePassManager passes);

/// Makes LLVM's targets known, and LLVM throw Failure where it gives up. To be called before the first use of
/// either.
void initializeTargets();

/// Throws Failure with LLVM's message for bytes that are no valid bitcode.
void checkBitcode(const std::string &data);

/// Does LLVM know this processor name for the triple? Asked before code generation, which would abort.
bool isKnownProcessor(const std::string &triple, const std::string &cpu);
/// The names of a triple's features, as LLVM spells them.
std::vector<std::string> knownFeatures(const std::string &triple);
/// The features that code for a processor with further ones ("+v9a") uses.
std::vector<std::string> featuresOf(const std::string &triple, const std::string &cpu,
                                    const std::string &features);
std::vector<std::string> knownProcessors(const std::string &triple);
std::string hostTriple();
/// LLVM's name of this machine's processor, or the level of its architecture where it lacks what that has.
std::string hostProcessor();

/// Runs lld's ELF linker in this process. Throws Failure with its messages.
void linkElf(const std::vector<std::string> &arguments);

/// Resources of the kernels in an AMDGPU code object, from its metadata note.
KernelResources amdgpuResources(const std::string &elf);

/// The bytes of each parameter, by kernel.
using KernelParameters = std::vector<std::pair<std::string, std::vector<int64_t>>>;

/// Those of an AMDGPU code object, without what the runtime adds; kernels whose metadata do not tell are left
/// out.
KernelParameters amdgpuParameters(const std::string &elf);

/// A 64-bit little-endian ELF file, its tables and sections checked against its end.
struct ElfSection {
  std::string name;
  uint32_t info;
  uint64_t size;
  std::string data; // empty where the file holds none
};
struct ElfSymbol {
  std::string name;
  unsigned other; // st_other
  bool isFunction;
  bool isGlobal;
  bool isDefined;
};
struct ElfFile {
  unsigned machine;
  unsigned type;
  unsigned abiVersion;
  uint32_t flags;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols; // of the section .symtab, in order; without one, of .dynsym
};
/// Throws Failure for bytes that are no such file or are damaged.
ElfFile readElf(const std::string &data);
/// What an archive's index lists: what its members define for others. Throws Failure where there is none.
std::vector<std::string> archiveSymbols(const std::string &data);

/// The work of LLVMModule::lowerKernelsForHost (spmd.cpp); sets `error` where it fails.
KernelResources lowerKernelsForHost(llvm::Module &module, const std::vector<std::string> &kernels,
                                    const ThreadLimits &limits, const HostWay &way, std::string &error);

} // namespace offload
