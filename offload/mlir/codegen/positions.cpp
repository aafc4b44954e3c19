//===- positions.cpp - Where in the author's file LLVM's failures come from ===//

#include "codegen/positions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/ModuleSlotTracker.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <regex>

using namespace llvm;

namespace offload {

void Positions::collect(mlir::ModuleOp holder) {
  settlePositions(holder);
  bool hasScopes = false;
  holder.walk([&](mlir::Operation *op) {
    if (auto function = mlir::dyn_cast<mlir::LLVM::LLVMFuncOp>(op)) {
      if (!function.isExternal())
        defined.try_emplace(function.getName().str(), resolveLocation(op->getLoc()));
      hasScopes |=
          op->getLoc()->findInstanceOf<mlir::FusedLocWith<mlir::LLVM::DISubprogramAttr>>() != nullptr;
    } else if (auto call = mlir::dyn_cast<mlir::LLVM::CallOp>(op)) {
      // LLVM demands a position of every call, and programs may come without any.
      if (!op->getLoc()->findInstanceOf<mlir::FileLineColLoc>())
        op->setLoc(mlir::FileLineColLoc::get(op->getContext(), "<unknown>", 0, 0));
      if (std::optional<StringRef> callee = call.getCallee())
        used.try_emplace(callee->str(), resolveLocation(op->getLoc()));
    } else if (auto address = mlir::dyn_cast<mlir::LLVM::AddressOfOp>(op)) {
      used.try_emplace(address.getGlobalName().str(), resolveLocation(op->getLoc()));
    }
  });
  if (hasScopes)
    return;
  mlir::PassManager manager(holder.getContext());
  manager.enableVerifier(false);
  manager.addPass(mlir::LLVM::createDIScopeForLLVMFuncOpPass({mlir::LLVM::DIEmissionKind::None}));
  added = mlir::succeeded(manager.run(holder));
}

void Positions::markInlineAssembly(llvm::Module &module) {
  LLVMContext &context = module.getContext();
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      if (!call || !call->isInlineAsm())
        continue;
      assembly.push_back(positionOf(call->getDebugLoc()));
      auto *number = ConstantInt::get(Type::getInt64Ty(context), assembly.size());
      call->setMetadata("srcloc", MDNode::get(context, ConstantAsMetadata::get(number)));
    }
}

static std::string fileName(const DIFile *file) {
  if (!file || file->getFilename() == "<unknown>")
    return "";
  SmallString<128> path(file->getDirectory());
  sys::path::append(path, file->getFilename());
  return std::string(path.str());
}

Diagnostic positionOf(const DILocation *location) {
  Diagnostic position;
  // Inlined code counts as where it was written.
  if (location && location->getLine()) {
    position.file = fileName(location->getFile());
    position.line = location->getLine();
    position.column = location->getColumn();
  }
  return position;
}

Diagnostic Positions::ofFunction(StringRef name) const {
  auto found = defined.find(name.str());
  return found == defined.end() ? Diagnostic() : found->second;
}

Diagnostic Positions::of(const std::string &function) const {
  Diagnostic position = ofFunction(function);
  auto found = used.find(function);
  return position.line || found == used.end() ? position : found->second;
}

void Positions::rememberIntrinsics(const llvm::Module &module) {
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction))
        if (const Function *callee = call->getCalledFunction(); callee && callee->isIntrinsic())
          intrinsics.try_emplace(callee->getName().str(), positionOf(call->getDebugLoc()));
}

static Diagnostic error(Diagnostic position, const Twine &message) {
  position.severity = "error";
  position.message = StringRef(message.str()).trim().str();
  return position;
}

Diagnostic Positions::explain(const DiagnosticInfo &info, const std::string &chip) const {
  Diagnostic position;
  std::string text;
  raw_string_ostream stream(text);
  DiagnosticPrinterRawOStream printer(stream);
  uint64_t cookie = 0;
  if (auto *assembled = dyn_cast<DiagnosticInfoSrcMgr>(&info)) {
    cookie = assembled->getLocCookie();
    const SMDiagnostic &message = assembled->getSMDiag();
    text = ("the inline assembly is refused for " + chip + ": " + message.getMessage()).str();
    if (!message.getLineContents().empty())
      text += "; it reads: " + message.getLineContents().trim().str();
  } else if (auto *inlined = dyn_cast<DiagnosticInfoInlineAsm>(&info)) {
    cookie = inlined->getLocCookie();
    text = ("the inline assembly is refused for " + chip + ": " + inlined->getMsgStr()).str();
  } else if (auto *unsupported = dyn_cast<DiagnosticInfoUnsupported>(&info)) {
    text = (chip + " does not support this: " + unsupported->getMessage()).str();
  } else {
    info.print(printer);
    static const std::regex place("^[^ ]*:\\d+:\\d+: "); // some say it themselves
    text = chip + ": " + std::regex_replace(text, place, "");
  }
  if (cookie > 0 && cookie <= assembly.size())
    position = assembly[cookie - 1];
  if (auto *base = dynamic_cast<const DiagnosticInfoWithLocationBase *>(&info)) {
    const DiagnosticInfoWithLocationBase &located = *base;
    if (located.isLocationAvailable()) {
      unsigned line = 0, column = 0;
      StringRef relative;
      located.getLocation(relative, line, column);
      position.file = located.getLocation().getAbsolutePath();
      position.line = line;
      position.column = column;
    }
    // The subprogram's position has no column; the function's own has.
    Diagnostic function = ofFunction(located.getFunction().getName());
    if (position.line == 0 || (position.line == function.line && position.column == 0))
      position = function;
  }
  return error(position, text);
}

/// The first call of an intrinsic that an error names without its types.
Diagnostic Positions::firstCall(const llvm::Module &module, const std::string &intrinsic) const {
  Positions now;
  now.rememberIntrinsics(module);
  for (const auto &calls : {now.intrinsics, intrinsics})
    for (const auto &[name, position] : calls)
      if (position.line && (name == intrinsic || StringRef(name).starts_with(intrinsic + ".")))
        return position;
  return {};
}

/// The inline assembly whose text a message quotes.
Diagnostic Positions::ofAssembly(const llvm::Module &module, StringRef message) const {
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      const MDNode *number = call && call->isInlineAsm() ? call->getMetadata("srcloc") : nullptr;
      if (!number)
        continue;
      std::string text(cast<InlineAsm>(call->getCalledOperand())->getAsmString());
      if (message.contains("'" + text + "'"))
        return assembly[mdconst::extract<ConstantInt>(number->getOperand(0))->getZExtValue() - 1];
    }
  return {};
}

/// The intrinsic of a processor that LLVM means where it cannot give types of it registers: one of another
/// processor's, or the only one. Empty: nothing tells.
static std::string meantIntrinsic(const llvm::Module &module) {
  StringRef own = Triple::getArchTypePrefix(module.getTargetTriple().getArch());
  std::vector<std::string> owns;
  for (const Function &function : module.functions()) {
    if (!function.isTargetIntrinsic() || function.use_empty())
      continue;
    if (function.getName().split('.').second.split('.').first != own)
      return function.getName().str();
    owns.push_back(function.getName().str());
  }
  return owns.size() == 1 ? owns.front() : "";
}

Diagnostic Positions::explainFatal(const std::string &reason, const llvm::Module &module,
                                   const std::string &chip) const {
  static const std::regex intrinsic("Cannot select: intrinsic %([A-Za-z0-9_.]+)"),
      function("In function: (\\S+)"), place(", ([^\\s,]+):(\\d+):(\\d+)");
  std::smatch found;
  std::string name;
  if (std::regex_search(reason, found, intrinsic))
    name = found[1];
  else if (StringRef(reason).starts_with("Do not know how to"))
    name = meantIntrinsic(module);
  if (!name.empty())
    return error(
        firstCall(module, name),
        chip + " has no instruction for " + name +
            ": build for a chip that has, name the feature that it needs (features=+NAME), or leave " + chip +
            " out");
  Diagnostic position;
  if (std::regex_search(reason, found, function))
    position = ofFunction(found[1].str());
  // The first line shows the value that has no instruction; the others what it is made of.
  std::string first = reason.substr(0, reason.find('\n'));
  if (std::regex_search(first, found, place)) {
    position.file = found[1];
    position.line = static_cast<unsigned>(std::stoul(found[2]));
    position.column = static_cast<unsigned>(std::stoul(found[3]));
    first = first.substr(0, static_cast<size_t>(found.position(0)));
  }
  if (position.line == 0 && StringRef(reason).contains("inline asm"))
    position = ofAssembly(module, reason);
  if (position.line == 0 && defined.size() == 1)
    position = defined.begin()->second;
  if (StringRef(first).starts_with("Cannot select"))
    return error(position, chip + " has no instruction for this operation (LLVM: " + first + ")");
  return error(position, "LLVM cannot compile this for " + chip + ": " + first);
}

Diagnostic Positions::explainFunction(const std::string &message) const {
  static const std::regex quoted("'([^']+)'");
  for (std::sregex_iterator it(message.begin(), message.end(), quoted), end; it != end; ++it)
    if (Diagnostic position = of((*it)[1].str()); position.line)
      return error(position, message);
  return error({}, message);
}

/// What is wrong with a call whose instruction has an operand inside of itself that is no constant.
static std::string variableOperand(const Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  const Function *callee = call ? call->getCalledFunction() : nullptr;
  if (!callee)
    return "";
  for (unsigned i = 0; i < call->arg_size(); ++i)
    if (call->paramHasAttr(i, Attribute::ImmArg) && !isa<ConstantInt, ConstantFP>(call->getArgOperand(i)))
      return ("argument " + Twine(i + 1) + " of " + callee->getName() +
              " is part of the instruction: it must be a constant")
          .str();
  return "";
}

Diagnostic Positions::explainInvalid(const std::string &message, const llvm::Module &module) const {
  for (const Function &function : module) {
    // A function's values and metadata have the numbers that they have in the message only as the first one.
    ModuleSlotTracker slots(&module, /*ShouldInitializeAllMetadata=*/false);
    for (const Instruction &instruction : instructions(function)) {
      Diagnostic position = positionOf(instruction.getDebugLoc());
      if (!position.line)
        continue;
      if (std::string wrong = variableOperand(instruction); !wrong.empty())
        return error(position, wrong);
      std::string shown;
      raw_string_ostream stream(shown);
      instruction.print(stream, slots);
      if (StringRef(message).contains(shown))
        return error(position, message);
    }
  }
  // What it says of whole functions ends with a line that has the function's name.
  StringRef text = StringRef(message).trim(), last = text.rsplit('\n').second;
  if (last.consume_front("ptr @"))
    if (Diagnostic position = of(last.trim('"').str()); position.line)
      return error(position, last.trim('"') + ": " + text.split('\n').first);
  return explainFunction(message);
}

} // namespace offload
