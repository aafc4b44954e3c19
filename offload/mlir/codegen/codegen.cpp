//===- codegen.cpp - Translation, optimization, code ------------------------===//

#include "codegen/cpu/aligned_starts.h"
#include "codegen/cpu/ascending_loads.h"
#include "codegen/cpu/clamp_loops.h"
#include "codegen/cpu/long_chains.h"
#include "codegen/cpu/many_calls.h"
#include "codegen/cpu/mirrored_indices.h"
#include "codegen/cpu/odd_loads.h"
#include "codegen/cpu/odd_products.h"
#include "codegen/cpu/seldom_arrays.h"
#include "codegen/cpu/serial_sums.h"
#include "codegen/cpu/streaming_stores.h"
#include "codegen/cpu/strided_lanes.h"
#include "codegen/cpu/workgroup_on_stack.h"
#include "codegen/gpu/amd_kernels.h"
#include "codegen/gpu/bulk_stores.h"
#include "codegen/gpu/double_extremes.h"
#include "codegen/gpu/half_quotients.h"
#include "codegen/gpu/long_blocks.h"
#include "codegen/gpu/narrow_quotients.h"
#include "codegen/gpu/zero_signs.h"
#include "codegen/llvm_module.h"
#include "codegen/math/reciprocal_roots.h"
#include "codegen/math/vector_math.h"
#include "codegen/parts.h"
#include "codegen/private_memory.h"
#include "codegen/shared_operands.h"
#include "codegen/slow_ranges.h"
#include "device/check_lowered.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InstSimplifyPass.h"
#include "llvm/Transforms/Scalar/LowerMatrixIntrinsics.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"

#include <set>

using namespace llvm;

namespace offload {

static std::unique_ptr<TargetMachine> createMachine(const MachineOptions &options, std::string &error) {
  initializeTargets();
  const Target *target = TargetRegistry::lookupTarget(Triple(options.triple), error);
  if (!target)
    return nullptr;
  TargetOptions target_options;
  target_options.UseInitArray = true; // no loader of today runs constructors in .ctors
  // On AMD GPUs instructions say so themselves: those of its library may not, see allowFastMath().
  if (options.fastMath && !Triple(options.triple).isAMDGCN())
    target_options.AllowFPOpFusion = FPOpFusion::Fast;
  auto level = options.level == 0   ? CodeGenOptLevel::None
               : options.level == 1 ? CodeGenOptLevel::Less
               : options.level == 2 ? CodeGenOptLevel::Default
                                    : CodeGenOptLevel::Aggressive;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(Triple(options.triple), options.cpu,
                                                                    options.features, target_options,
                                                                    Reloc::PIC_, std::nullopt, level));
}

namespace {
/// What LLVM reports becomes diagnostics instead of text on stderr and exit.
struct CollectErrors : public DiagnosticHandler {
  CollectErrors(std::shared_ptr<std::vector<Diagnostic>> reported, const Positions &positions,
                std::string chip)
      : reported(std::move(reported)), positions(positions), chip(std::move(chip)) {}
  bool handleDiagnostics(const DiagnosticInfo &info) override {
    if (info.getSeverity() == DS_Error)
      reported->push_back(positions.explain(info, chip));
    return true;
  }
  std::shared_ptr<std::vector<Diagnostic>> reported;
  const Positions &positions;
  std::string chip;
};
} // namespace

LLVMModule::LLVMModule(std::shared_ptr<Session> session, MachineOptions options)
    : session(std::move(session)), options(std::move(options)), context(std::make_unique<LLVMContext>()) {
  std::string error;
  machine = createMachine(this->options, error);
  if (!machine)
    throw Failure("no code generator for " + this->options.triple + ": " + error, {});
  reported = std::make_shared<std::vector<Diagnostic>>();
  std::string chip = this->options.cpu.empty() ? "this machine" : this->options.cpu;
  context->setDiagnosticHandler(std::make_unique<CollectErrors>(reported, positions, chip));
}

/// Whose operations may stand in a lowered module.
static llvm::StringRef targetName(mlir::Operation *root, const Triple &triple) {
  if (!mlir::isa<mlir::gpu::GPUModuleOp>(root))
    return "";
  return triple.isNVPTX() ? "nvvm" : triple.isAMDGPU() ? "rocdl" : "host";
}

void keepCallsInPlace(llvm::Module &module) {
  for (Function &function : module) {
    if (!function.isDeclaration())
      function.addFnAttr(Attribute::Convergent);
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
            assembly ? assembly->hasSideEffects() : !call->getCalledFunction())
          call->addFnAttr(Attribute::Convergent);
  }
}

std::shared_ptr<LLVMModule> LLVMModule::translate(const IRModule &module, const MachineOptions &options) {
  SharedLock shared(optionsLock());
  std::shared_ptr<LLVMModule> result(new LLVMModule(module.session, options));
  mlir::Operation *root = module.get();
  for (auto device : module.get().getOps<mlir::gpu::GPUModuleOp>())
    root = device;
  // Asked again for targets whose pipelines end without offload-check-lowered.
  if (refuseUnlowered(root, targetName(root, Triple(options.triple))))
    module.session->fail("some operations could not be lowered");
  result->positions.collect(module.get());
  // Accesses get the alignment of their type while they are made; with LLVM's default layout that is 4 for
  // i64, and a GPU would load each in two halves.
  llvm::DataLayout layout = result->machine->createDataLayout();
  root->setAttr(mlir::LLVM::LLVMDialect::getDataLayoutAttrName(),
                mlir::StringAttr::get(root->getContext(), layout.getStringRepresentation()));
  // Verified below: MLIR would print what is wrong to stderr.
  result->module =
      mlir::translateModuleToLLVMIR(root, *result->context, "offload", /*disableVerification=*/true);
  if (!result->module)
    module.session->fail("the module cannot be translated to LLVM IR");
  // Some faults are reported and passed over, and an operand is missing.
  module.session->failOnErrors("the module cannot be translated to LLVM IR");
  result->positions.markInlineAssembly(*result->module);
  result->module->setTargetTriple(Triple(options.triple));
  result->module->setDataLayout(layout);
  result->module->setSourceFileName("");
  placeMemory(*result->module);
  if (result->isForGpu()) {
    llvm::for_each(*result->module, hoistMemory);
    keepCallsInPlace(*result->module);
    if (result->machine->getTargetTriple().isNVPTX())
      keepMemoryLoopsRolled(*result->module);
  }
  std::string wrong;
  raw_string_ostream stream(wrong);
  if (verifyModule(*result->module, &stream))
    throw Failure("the translation is not valid LLVM IR",
                  {result->positions.explainInvalid(wrong, *result->module)});
  return result;
}

std::unique_ptr<llvm::Module> LLVMModule::presentable() const {
  std::unique_ptr<llvm::Module> copy = CloneModule(*module);
  if (positions.forMessagesAlone())
    StripDebugInfo(*copy);
  for (Function &function : *copy)
    for (Instruction &instruction : instructions(function))
      instruction.setMetadata("srcloc", nullptr);
  return copy;
}

std::string LLVMModule::text() {
  join();
  std::string result;
  raw_string_ostream stream(result);
  presentable()->print(stream, nullptr);
  return result;
}

std::string LLVMModule::bitcode() {
  join();
  std::string result;
  raw_string_ostream stream(result);
  WriteBitcodeToFile(*presentable(), stream);
  return result;
}

bool LLVMModule::isForGpu() const {
  const Triple &triple = machine->getTargetTriple();
  return triple.isAMDGPU() || triple.isNVPTX();
}

void LLVMModule::addFunctionAttribute(const std::string &name, const std::string &value) {
  for (Function &function : *module)
    if (!function.isDeclaration())
      function.addFnAttr(name, value);
}

void LLVMModule::addModuleFlag(const std::string &name, uint32_t value) {
  module->addModuleFlag(llvm::Module::Error, name, value);
}

void LLVMModule::defineConstant(const std::string &name, unsigned bits, uint32_t value,
                                unsigned addressSpace) {
  Type *type = IntegerType::get(*context, bits);
  GlobalVariable *global = module->getGlobalVariable(name);
  if (!global)
    global = new GlobalVariable(*module, type, /*isConstant=*/true, GlobalValue::LinkOnceODRLinkage, nullptr,
                                name, nullptr, GlobalValue::NotThreadLocal, addressSpace);
  global->setInitializer(ConstantInt::get(type, value));
  global->setLinkage(GlobalValue::LinkOnceODRLinkage);
  global->setVisibility(GlobalValue::HiddenVisibility);
  global->setUnnamedAddr(GlobalValue::UnnamedAddr::Local);
  global->setConstant(true);
}

void LLVMModule::answerReflection(const std::string &property, uint32_t value) {
  Function *reflect = module->getFunction("__nvvm_reflect");
  if (!reflect)
    return;
  for (User *user : make_early_inc_range(reflect->users())) {
    auto *call = dyn_cast<CallInst>(user);
    StringRef asked;
    if (!call || !getConstantStringInfo(call->getArgOperand(0)->stripPointerCasts(), asked) ||
        asked != property)
      continue;
    call->replaceAllUsesWith(ConstantInt::get(call->getType(), value));
    call->eraseFromParent();
  }
}

std::vector<std::string> LLVMModule::undefinedFunctions() const {
  std::vector<std::string> names;
  if (!module) // lost to a fatal error, see generate()
    return names;
  for (const Function &function : *module)
    // Not isIntrinsic(), which says so of every name that begins with 'llvm.'.
    if (function.isDeclaration() && function.getIntrinsicID() == Intrinsic::not_intrinsic &&
        !function.use_empty())
      names.push_back(function.getName().str());
  return names;
}

std::vector<std::string> LLVMModule::undefinedVariables() const {
  constexpr unsigned kOfBlocks = 3; // on every GPU
  std::vector<std::string> names;
  if (!module)
    return names;
  for (const GlobalVariable &variable : module->globals())
    if (variable.hasExternalLinkage() && variable.isDeclaration() && !variable.use_empty() &&
        variable.getAddressSpace() != kOfBlocks)
      names.push_back(variable.getName().str());
  return names;
}

void LLVMModule::setDebugFolder(const std::string &path) {
  for (DICompileUnit *unit : module->debug_compile_units()) {
    DIFile *file = unit->getFile();
    if (file && !sys::path::is_absolute(file->getDirectory()))
      unit->replaceOperandWith(0,
                               DIFile::get(*context,
                                           (Twine(file->getDirectory()) +
                                            (file->getDirectory().empty() ? "" : "/") + file->getFilename())
                                               .str(),
                                           path));
  }
}

void LLVMModule::internalize(const std::vector<std::string> &kept) {
  std::set<std::string> names(kept.begin(), kept.end());
  internalizeModule(*module,
                    [&](const GlobalValue &value) { return names.count(value.getName().str()) != 0; });
}

void LLVMModule::internalizeFunctions(const std::vector<std::string> &kept) {
  StringSet<> names;
  for (const std::string &name : kept)
    names.insert(name);
  // LLVM sees no uses in assembly.
  auto addWords = [&](StringRef assembly) {
    auto isInName = [](char c) { return isAlnum(c) || c == '_' || c == '$'; };
    while (!assembly.empty()) {
      assembly = assembly.drop_until(isInName);
      names.insert(assembly.take_while(isInName));
      assembly = assembly.drop_while(isInName);
    }
  };
  addWords(module->getModuleInlineAsm());
  for (const Function &function : *module)
    for (const Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction); call && call->isInlineAsm())
        addWords(cast<InlineAsm>(call->getCalledOperand())->getAsmString());
  internalizeModule(*module, [&](const GlobalValue &value) {
    return !isa<Function>(value) || names.contains(value.getName());
  });
}

/// What `fast` allows: reassociation, approximations, fused operations; NaN and infinity keep their meaning.
/// AMD's approximate division of f64 has NaN for x / 0 and x / inf. What AMD's library adds, it adds in an
/// order that keeps what sums lose: in another one log1p(1e-20) was 0, and sines of large angles any number.
static void allowFastMath(llvm::Module &module, const std::set<std::string> &deviceLibrary) {
  bool isAmd = module.getTargetTriple().isAMDGCN(), divides = !isAmd;
  FastMathFlags flags;
  flags.setAllowReassoc();
  flags.setAllowReciprocal();
  flags.setAllowContract();
  flags.setNoSignedZeros();
  for (Function &function : module) {
    if (isAmd && deviceLibrary.count(function.getName().str()))
      continue;
    for (Instruction &instruction : instructions(function))
      if (isa<FPMathOperator>(instruction)) {
        bool approximate = divides || instruction.getOpcode() != Instruction::FDiv ||
                           !instruction.getType()->getScalarType()->isDoubleTy();
        flags.setApproxFunc(approximate);
        instruction.setFastMathFlags(flags | instruction.getFastMathFlags());
      }
  }
}

void LLVMModule::useVectorMath() {
  SharedLock shared(optionsLock());
  // Ours depends on the order of its operations.
  if (options.fastMath)
    allowFastMath(*module, deviceLibrary);
  options.fastMath = false;
  offload::useVectorMath(*module, has("+sse4.1"), has("+fma"));
}

bool LLVMModule::has(const std::string &x86Feature) const {
  return !machine->getTargetTriple().isX86() || machine->getMCSubtargetInfo()->checkFeatures(x86Feature);
}

bool LLVMModule::roundsVectorsOfBfloatWrongly() const {
  return machine->getTargetTriple().isAArch64() && !machine->getMCSubtargetInfo()->checkFeatures("+bf16");
}

void LLVMModule::lowerKernelsForHost(const std::vector<std::string> &kernels, const ThreadLimits &limits,
                                     const HostWay &way) {
  SharedLock shared(optionsLock());
  // Blocks of one function move into others there, and debug locations may not.
  positions.rememberIntrinsics(*module);
  if (positions.forMessagesAlone())
    StripDebugInfo(*module);
  // The instructions of AVX-512 and later that round to bf16 make zeros of denormals, both ways.
  widenSmallFloats(*module, !has("+f16c"), machine->getTargetTriple().isX86());
  std::string error;
  holdsHostKernels = true;
  HostWay vectorized = way;
  vectorized.strips = options.level >= 2; // as the vectorizer is, see optimize()
  if (machine->getTargetTriple().isX86() && !has("+avx512f"))
    vectorized.registers = has("+avx") ? 384 : 192; // twelve of sixteen: others are for what is loaded
  resources = offload::lowerKernelsForHost(*module, kernels, limits, vectorized, error);
  defineFarMath(*module);
  // LLVM uses half of AVX-512, for the sake of its first generation.
  if (machine->getTargetTriple().isX86() && has("+avx512vbmi2"))
    addFunctionAttribute("prefer-vector-width", "512");
  raw_string_ostream stream(error);
  if (error.empty() && verifyModule(*module, &stream))
    error = "internal error in the host target's kernel lowering: " + error;
  if (!error.empty())
    throw Failure(error, {positions.explainFunction(error)});
}

void runPasses(llvm::Module &module, PassBuilder &builder, ModulePassManager passes) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  passes.run(module, modules);
}

void LLVMModule::optimize() {
  if (holdsHostKernels)
    divide();
  if (parts.empty())
    optimizeWhole();
  else
    sideBySide(parts.size(), "llvm of kernels for " + options.triple,
               [&](size_t i) { parts[i]->optimizeWhole(); });
}

std::vector<std::string> LLVMModule::emitObjects() {
  if (parts.empty())
    return {emit(/*assembly=*/false)};
  std::vector<std::string> objects(parts.size());
  sideBySide(parts.size(), "object of kernels for " + options.triple,
             [&](size_t i) { objects[i] = parts[i]->emit(/*assembly=*/false); });
  return objects;
}

void LLVMModule::optimizeWhole() {
  SharedLock shared(optionsLock());
  if (options.fastMath)
    allowFastMath(*module, deviceLibrary);
  if (isForGpu())
    keepHalfQuotients(*module);
  if (roundsVectorsOfBfloatWrongly())
    widenSmallFloats(*module, /*half=*/false, /*bfloat=*/true);
  writeOddProducts(*module);
  if (machine->getTargetTriple().isX86())
    widenOddLoads(*module);
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = options.level >= 2;
  PassInstrumentationCallbacks callbacks;
  skipSlowRanges(callbacks);
  PassBuilder builder(machine.get(), tuning, std::nullopt, &callbacks);
  if (holdsHostKernels) {
    bool x86 = machine->getTargetTriple().isX86(), estimates = x86 && has("+avx512vl");
    builder.registerVectorizerStartEPCallback([x86](FunctionPassManager &passes, OptimizationLevel) {
      passes.addPass(LoopSimplifyPass());
      passes.addPass(ClampLoopsPass());
      passes.addPass(InstSimplifyPass());
      passes.addPass(SimplifyCFGPass());
      passes.addPass(MirroredIndicesPass());
      passes.addPass(FarVariantsPass());
      if (x86) {
        passes.addPass(LoopSimplifyPass());
        passes.addPass(AlignedStartsPass());
      }
      passes.addPass(WorkgroupOnStackPass());
      passes.addPass(SerialSumsPass());
    });
    builder.registerOptimizerLastEPCallback(
        [x86, estimates](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) {
          passes.addPass(FarMathPass());
          FunctionPassManager functions;
          if (estimates) {
            functions.addPass(ReciprocalRootsPass());
            functions.addPass(DCEPass());
          }
          if (x86)
            functions.addPass(StridedLanesPass());
          functions.addPass(SeldomArraysPass());
          functions.addPass(SROAPass(SROAOptions::PreserveCFG));
          // Unrolled steps of threads that waited for each other: what one stored, the next one loads.
          functions.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
          if (x86)
            addStreamingStores(functions);
          functions.addPass(AscendingLoadsPass());
          passes.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
        });
  }
  if (tuning.LoopVectorization)
    builder.registerVectorizerStartEPCallback(
        [](FunctionPassManager &passes, OptimizationLevel) { passes.addPass(SharedOperandsPass()); });
  if (isForGpu()) // addresses that went through descriptors do no longer
    builder.registerOptimizerEarlyEPCallback(
        [](ModulePassManager &passes, OptimizationLevel, ThinOrFullLTOPhase) {
          passes.addPass(createModuleToFunctionPassAdaptor(HoistMemoryPass()));
        });
  const OptimizationLevel levels[] = {OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
                                      OptimizationLevel::O3};
  OptimizationLevel level = levels[options.level];
  ModulePassManager passes;
  // LLVM's pipelines leave these to who makes them.
  if (any_of(*module, [](const Function &each) { return each.getName().starts_with("llvm.matrix."); }))
    passes.addPass(createModuleToFunctionPassAdaptor(LowerMatrixIntrinsicsPass()));
  passes.addPass(level == OptimizationLevel::O0 ? builder.buildO0DefaultPipeline(level)
                                                : builder.buildPerModuleDefaultPipeline(level));
  if (machine->getTargetTriple().isAMDGPU()) {
    denyRecursion(*module);
    placeGlobals(*module);
  }
  reported->clear();
  runPasses(*module, builder, std::move(passes));
  if (!reported->empty())
    throw Failure("LLVM's optimizer for " + options.triple + " failed", std::move(*reported));
  const MCSubtargetInfo *chip = machine->getMCSubtargetInfo();
  if (machine->getTargetTriple().isAMDGPU()) {
    writeNarrowQuotients(*module, level != OptimizationLevel::O0);
    compareIdleAtomics(*module);
    writeUnknownAtomics(*module, chip->checkFeatures("+gfx12-insts"));
    sumBytesAlone(*module, *machine);
    writeHalfQuotients(*module); // products, of which the next looks at the signs
    keepZeroSigns(*module, chip->checkFeatures("+fma-mix-insts"));
    if (!chip->checkFeatures("+ieee-minimum-maximum-insts"))
      writeDoubleExtremes(*module);
    if (chip->checkFeatures("+architected-sgprs"))
      splitBlockIds(*module);
    if (!chip->checkFeatures("+architected-flat-scratch") && !chip->checkFeatures("+enable-flat-scratch"))
      addressDynamicMemory(*module, chip->checkFeatures("+wavefrontsize32") ? 5 : 6);
  }
  if (machine->getTargetTriple().isNVPTX()) {
    keepMemoryLoopsRolled(*module); // LLVM has made loops and functions others
    hideMemorySizes(*module);
    writeAlignments(*module);
    chooseTruth(*module);
    holdBulkAddresses(*module);
    if (options.level > 0) // the code generator's
      divideLongBlocks(*module);
  }
  if (!isForGpu() && !holdsHostKernels && options.level > 0)
    keepInMemoryAcrossCalls(*module);
  if (machine->getTargetTriple().isX86() && options.level > 0)
    divideLongChains(*module);
}

/// Makes debug locations that are there for messages alone line directives.
static void showLines(llvm::Module &module) {
  NamedMDNode *units = module.getNamedMetadata("llvm.dbg.cu");
  if (!units)
    return;
  units->clearOperands();
  for (Function &function : module)
    if (DISubprogram *scope = function.getSubprogram(); scope && scope->getUnit()) {
      DICompileUnit *unit = scope->getUnit();
      auto *shown = DICompileUnit::getDistinct(module.getContext(), unit->getSourceLanguage(),
                                               unit->getFile(), unit->getProducer(), unit->isOptimized(),
                                               unit->getFlags(), 0, "", DICompileUnit::DebugDirectivesOnly,
                                               nullptr, nullptr, nullptr, nullptr, nullptr, 0, true, false,
                                               DICompileUnit::DebugNameTableKind::Default, false, "", "");
      scope->replaceUnit(shown);
      units->addOperand(shown);
    }
}

/// Does a program bring debug information of its own of a kind that ptxas refuses in optimized code?
static bool describesVariables(const llvm::Module &module) {
  return llvm::any_of(module.debug_compile_units(), [](const DICompileUnit *unit) {
    return unit->getEmissionKind() == DICompileUnit::FullDebug ||
           unit->getEmissionKind() == DICompileUnit::LineTablesOnly;
  });
}

std::string LLVMModule::generate(bool assembly, bool withLines) {
  SharedLock shared(optionsLock());
  reported->clear();
  SmallString<0> buffer;
  raw_svector_ostream stream(buffer);
  // Code generation changes the module: it works on a copy, so that another stage may still use this one.
  std::unique_ptr<llvm::Module> copy = CloneModule(*module);
  if ((withLines && positions.forMessagesAlone()) ||
      (options.level > 0 && machine->getTargetTriple().isNVPTX() && describesVariables(*copy)))
    showLines(*copy);
  auto passes = std::make_unique<legacy::PassManager>();
  CodeGenFileType type = assembly ? CodeGenFileType::AssemblyFile : CodeGenFileType::ObjectFile;
  bool refused = machine->getTargetTriple().isAMDGPU()
                     ? addAmdPassesToEmitFile(*passes, *machine, stream, type)
                     : machine->addPassesToEmitFile(*passes, stream, nullptr, type);
  if (refused)
    throw Failure("no " + std::string(assembly ? "assembly" : "object code") + " for " + options.triple, {});
  try {
    passes->run(*copy);
  } catch (Failure &failure) {
    // A fatal error of LLVM (see initializeTargets) left everything half done: not even destructors may run.
    (void)passes.release(), (void)copy.release();
    if (module) {
      std::string chip = options.cpu.empty() ? "this machine" : options.cpu;
      reported->push_back(positions.explainFatal(failure.what(), *module, chip));
    }
    (void)module.release(), (void)machine.release(), (void)context.release();
    throw Failure(failure.what(), std::move(*reported));
  }
  if (!reported->empty())
    throw Failure("the code generator for " + options.triple + " failed", std::move(*reported));
  return std::string(buffer.str());
}

} // namespace offload
