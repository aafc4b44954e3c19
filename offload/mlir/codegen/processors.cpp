//===- processors.cpp - The processors that LLVM knows ----------------------===//

#include "codegen/llvm_module.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace llvm;

namespace offload {

void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
#define TARGET(name)                                                                                         \
  LLVMInitialize##name##TargetInfo();                                                                        \
  LLVMInitialize##name##Target();                                                                            \
  LLVMInitialize##name##TargetMC();                                                                          \
  LLVMInitialize##name##AsmPrinter();
#define ASSEMBLY_PARSER(name) LLVMInitialize##name##AsmParser();
#include "codegen/processors.def"
    // Where LLVM gives up (an instruction that the chip lacks, say) it would end the process. LLVM's code has
    // unwind tables, so an exception passes through it; what LLVM held is lost, see emit().
    install_fatal_error_handler([](void *, const char *reason, bool) { throw Failure(reason, {}); }, nullptr);
    // Floats from and to wider integers would be calls of compiler-rt, which neither GPUs nor libraries have.
    // All are the options' defaults from now on: lld resets all options.
    if (cl::Option *bits = cl::getRegisteredOptions().lookup("expand-fp-convert-bits"))
      static_cast<cl::opt<unsigned> *>(bits)->setInitialValue(64);
    // Of so many accesses in a block that may be of the same memory, the scheduler compares each with each,
    // and thousands take a minute. AMD's blocks of more are divided anyway (codegen/gpu/short_regions.cpp).
    if (cl::Option *accesses = cl::getRegisteredOptions().lookup("dag-maps-huge-region"))
      static_cast<cl::opt<unsigned> *>(accesses)->setInitialValue(256);
    // A register of more than a hundred values (one that a switch of thousands of cases sets, a vector of
    // hundreds of elements) is looked through for each copy that might be left out: for so many copies.
    if (cl::Option *copies = cl::getRegisteredOptions().lookup("large-interval-freq-threshold"))
      static_cast<cl::opt<unsigned> *>(copies)->setInitialValue(16);
    // AMD GPUs: a product of numbers of 24 bits to which one of 64 bits is added loses the mask of its
    // factors (x & 0xffffff) as if the instruction ignored the other bits, which v_mad_u64_u32 does not.
    if (cl::Option *products = cl::getRegisteredOptions().lookup("amdgpu-codegenprepare-mul24"))
      static_cast<cl::opt<bool> *>(products)->setInitialValue(false);
  });
}

static std::unique_ptr<MCSubtargetInfo> subtarget(const std::string &triple, const std::string &cpu = "",
                                                  const std::string &features = "") {
  initializeTargets();
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(Triple(triple), error);
  return std::unique_ptr<MCSubtargetInfo>(
      target ? target->createMCSubtargetInfo(Triple(triple), cpu, features) : nullptr);
}

bool isKnownProcessor(const std::string &triple, const std::string &cpu) {
  auto info = subtarget(triple);
  return info && info->isCPUStringValid(cpu);
}

std::vector<std::string> knownProcessors(const std::string &triple) {
  std::vector<std::string> names;
  if (auto info = subtarget(triple))
    for (const SubtargetSubTypeKV &processor : info->getAllProcessorDescriptions())
      names.push_back(processor.Key);
  return names;
}

std::vector<std::string> knownFeatures(const std::string &triple) {
  std::vector<std::string> names;
  if (auto info = subtarget(triple))
    for (const SubtargetFeatureKV &feature : info->getAllProcessorFeatures())
      names.push_back(feature.Key);
  return names;
}

std::vector<std::string> featuresOf(const std::string &triple, const std::string &cpu,
                                    const std::string &features) {
  std::vector<std::string> names;
  if (auto info = subtarget(triple, cpu, features))
    for (const SubtargetFeatureKV &feature : info->getAllProcessorFeatures())
      if (info->getFeatureBits()[feature.Value])
        names.push_back(feature.Key);
  return names;
}

std::string hostTriple() { return sys::getDefaultTargetTriple(); }
/// Whether this machine has what code for a processor uses; virtual machines hide some of what theirs has.
static bool runs(const std::string &cpu) {
  static const StringSet<> used = {
#define FEATURE(name, ...) name,
#define PROCESSOR(name, bits)
#include "host/processors_aarch64.def"
#define FEATURE(name, ...) name,
#define PROCESSOR(name, bits)
#include "host/processors_x86_64.def"
  };
  StringMap<bool> here = sys::getHostCPUFeatures();
  return none_of(featuresOf(hostTriple(), cpu, ""), [&](const std::string &feature) {
    auto found = here.find(feature);
    return used.contains(feature) && found != here.end() && !found->second;
  });
}

static std::string findHostProcessor() {
  std::string name = sys::getHostCPUName().str();
  if (runs(name))
    return name;
  if (!Triple(hostTriple()).isX86())
    return "aarch64";
  for (const char *level : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    if (runs(level))
      return level;
  return "x86-64";
}

std::string hostProcessor() {
  static const std::string found = findHostProcessor();
  return found;
}

} // namespace offload
