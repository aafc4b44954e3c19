//===- session.cpp - Context set-up, parsing, pass pipelines --------------===//

#include "session.h"
#include "device/unverified.h"
#include "names.h"
#include "pass_watch.h"
#include "passes.h"
#include "program.h"
#include "tensors/size_bounds.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <mutex>
#include <set>

using namespace mlir;

namespace offload {

/// Of a message: those of a deep recursion say little more.
static constexpr size_t kMostCallers = 8;

std::shared_mutex &optionsLock() {
  static std::shared_mutex lock;
  return lock;
}

static void registerPassesOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    mlir::registerAllPasses();
    registerOffloadPasses();
  });
}

static const DialectRegistry &dialects() {
  static const DialectRegistry registry = [] {
    DialectRegistry r;
    registerSizeBounds(r);
    registerAllDialects(r);
    registerAllExtensions(r);
    registerAllToLLVMIRTranslations(r);
    return r;
  }();
  return registry;
}

Diagnostic resolveLocation(Location loc) {
  Diagnostic position;
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      position.file = file.getFilename().str();
      position.line = file.getLine();
      position.column = file.getColumn();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return position;
}

/// Notes for the places that a position was called from, the next one first: who has made the program may
/// have made it by functions of functions, and calls that were inlined are such, too.
static void addCallers(Location loc, std::vector<Diagnostic> &notes) {
  if (auto named = dyn_cast<NameLoc>(loc))
    return addCallers(named.getChildLoc(), notes);
  if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty())
    return addCallers(fused.getLocations().front(), notes);
  auto call = dyn_cast<CallSiteLoc>(loc);
  if (!call)
    return;
  addCallers(call.getCallee(), notes);
  Diagnostic caller = resolveLocation(call.getCaller());
  caller.severity = "note";
  caller.message = "called from here";
  if (caller.line > 0 && notes.size() < kMostCallers)
    notes.push_back(std::move(caller));
  addCallers(call.getCaller(), notes);
}

static Diagnostic convert(const mlir::Diagnostic &diagnostic) {
  Diagnostic result = resolveLocation(diagnostic.getLocation());
  result.message = diagnostic.str();
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    result.severity = "error";
    break;
  case DiagnosticSeverity::Warning:
    result.severity = "warning";
    break;
  case DiagnosticSeverity::Note:
    result.severity = "note";
    break;
  case DiagnosticSeverity::Remark:
    result.severity = "remark";
    break;
  }
  if (diagnostic.getSeverity() != DiagnosticSeverity::Note)
    addCallers(diagnostic.getLocation(), result.notes);
  for (const mlir::Diagnostic &note : diagnostic.getNotes())
    result.notes.push_back(convert(note));
  return result;
}

Session::Session() {
  registerPassesOnce();
  // One session works on one thread; threads of its own would only cost start-up time.
  ctx = std::make_unique<MLIRContext>(dialects(), MLIRContext::Threading::DISABLED);
  ctx->printOpOnDiagnostic(false);
  handler = ctx->getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    diagnostics.push_back(convert(diagnostic));
    return success();
  });
}

Session::~Session() { ctx->getDiagEngine().eraseHandler(handler); }

std::vector<std::string> Session::operationsOf(const std::string &dialect) {
  std::vector<std::string> names;
  ctx->getOrLoadDialect(dialect);
  // MLIR 22 can be asked for those of one dialect, and does not find them all.
  for (RegisteredOperationName name : ctx->getRegisteredOperations())
    if (name.getDialectNamespace() == dialect)
      names.push_back(name.getStringRef().str());
  return names;
}

std::vector<Diagnostic> Session::takeDiagnostics() {
  std::vector<Diagnostic> taken;
  taken.swap(diagnostics);
  return taken;
}

void Session::fail(const std::string &what) { throw Failure(what, takeDiagnostics()); }

void Session::failOnErrors(const std::string &what) {
  for (const Diagnostic &diagnostic : diagnostics)
    if (diagnostic.severity == "error")
      fail(what);
}

/// The identifier of `%name` at the place where the text defines a value; empty for numbers (`%0`).
static StringRef definedName(SMRange range) {
  if (!range.isValid())
    return {};
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return !text.empty() && !llvm::isDigit(text.front()) ? text : StringRef();
}

/// Keeps the names that the author gave to arguments: SSA names are lost after parsing.
static void nameArguments(ModuleOp module, const AsmParserState &state) {
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    Block &entry = function.getFunctionBody().front();
    const AsmParserState::BlockDefinition *definition = state.getBlockDef(&entry);
    for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i) {
      std::string name;
      if (auto named = dyn_cast<NameLoc>(entry.getArgument(i).getLoc()))
        name = named.getName().str();
      else if (definition && i < definition->arguments.size())
        name = definedName(definition->arguments[i].loc).str();
      if (!name.empty() && !function.getArgAttr(i, kArgumentName))
        function.setArgAttr(i, kArgumentName, StringAttr::get(module.getContext(), name));
    }
  });
}

std::shared_ptr<IRModule> IRModule::parse(std::shared_ptr<Session> session, StringRef data,
                                          const std::string &filename, bool alone) {
  SharedLock shared(optionsLock());
  llvm::SourceMgr sources;
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(data, filename);
  bool isText = !isBytecode(buffer->getMemBufferRef());
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(&session->context(), /*verifyAfterParse=*/false);
  Block block;
  AsmParserState state;
  LocationAttr start = FileLineColLoc::get(&session->context(), filename, 1, 1);
  LogicalResult parsed = isText ? parseAsmSourceFile(sources, &block, config, &state)
                                : parseSourceFile(sources, &block, config, &start);
  if (failed(parsed))
    session->fail("the input cannot be parsed");
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &session->context(), start);
  if (!module)
    session->fail("the input is not one builtin.module");
  // Launches ask for an attribute of their module that says nothing more than that there are launches.
  if (module->walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); }).wasInterrupted())
    module->getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                                    UnitAttr::get(&session->context()));
  if (!alone)
    declareKernels(*module);
  if (failed(settleUnverified(*module)) || failed(verify(*module)))
    session->fail("the input is not valid");
  if (isText)
    nameArguments(*module, state);
  return std::make_shared<IRModule>(session, std::move(module));
}

void IRModule::run(const std::string &pipeline, bool verifyEach, const std::string &reproducer) {
  SharedLock shared(optionsLock());
  PassManager manager(&session->context(), ModuleOp::getOperationName());
  manager.enableVerifier(verifyEach);
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (failed(parsePassPipeline(pipeline, manager, stream)))
    session->fail("bad pass pipeline: " + message);
  std::string failedPass;
  manager.addInstrumentation(std::make_unique<PassWatch>(failedPass));
  if (!reproducer.empty())
    manager.enableCrashReproducerGeneration(reproducer, /*genLocalReproducer=*/true);
  if (succeeded(manager.run(op.get())))
    return;
  std::vector<Diagnostic> found = session->takeDiagnostics();
  // MLIR's own words about the reproducer stand at the module; ours follow below.
  llvm::erase_if(found, [](const Diagnostic &item) {
    return llvm::StringRef(item.message).starts_with("Failures have been detected");
  });
  bool explained = llvm::any_of(found, [](const Diagnostic &item) { return item.severity == "error"; });
  if (!explained)
    found.push_back({"error", "the pass " + failedPass + " failed without saying why", "", 0, 0, {}});
  std::string how;
  if (!reproducer.empty())
    how = "the IR before it is in " + reproducer + ", which mlir-opt --run-reproducer reads";
  else if (!explained || !llvm::StringRef(failedPass).starts_with("offload-")) // those say all there is
    how = "to get the IR before it as a file that mlir-opt --run-reproducer reads: offload build "
          "--reproducer DIR";
  if (!how.empty())
    found.push_back({"note", "the pass " + failedPass + " failed; " + how, "", 0, 0, {}});
  throw Failure("the pass " + failedPass + " failed", std::move(found));
}

std::string IRModule::text(bool withLocations, bool generic) const {
  std::string result;
  llvm::raw_string_ostream stream(result);
  OpPrintingFlags flags;
  if (withLocations)
    flags.enableDebugInfo(true, /*prettyForm=*/false);
  if (generic)
    flags.printGenericOpForm();
  get()->print(stream, flags);
  stream << "\n";
  return result;
}

std::shared_ptr<IRModule> IRModule::clone() const {
  return std::make_shared<IRModule>(session, OwningOpRef<ModuleOp>(cast<ModuleOp>(get()->clone())));
}

std::pair<std::vector<std::string>, std::vector<std::string>> IRModule::operationNames() const {
  std::set<std::string> host, device;
  get()->walk([&](Operation *inner) {
    bool inDevice = inner->getParentOfType<gpu::GPUModuleOp>() != nullptr;
    (inDevice ? device : host).insert(inner->getName().getStringRef().str());
  });
  return {{host.begin(), host.end()}, {device.begin(), device.end()}};
}

} // namespace offload
