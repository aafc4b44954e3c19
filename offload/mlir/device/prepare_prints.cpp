//===- prepare_prints.cpp - printf and assertions in kernels --------------===//
//
// Targets take printf's arguments in different ways, none of which checks them against the format. Here the
// format gets the lengths that its arguments have, so that any number prints right: integers of at most 32
// bits are passed as int, others as long long, and floats as double. On the CPU, printf is the C library's.
//
// Where MLIR has no lowering of cf.assert that works, a failed one prints and traps; on the CPU it ends the
// launch (host_abi.h).
//
//===----------------------------------------------------------------------===//

#include "device/prepare_device.h"
#include "names.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace offload {
namespace {

constexpr char kTrap[] = "__offload_trap";

class FormatRepair {
public:
  FormatRepair(gpu::PrintfOp op, bool takesStars)
      : op(op), b(op), rest(op.getFormat()), takesStars(takesStars) {}

  LogicalResult run() {
    rest = rest.rtrim('\0'); // of a text of C
    if (rest.contains('\0'))
      return op.emitOpError("has a zero byte in its format, where printf would end: leave it out");
    while (!rest.empty()) {
      char c = take();
      if (c != '%')
        continue;
      if (rest.starts_with("%")) {
        take();
      } else if (failed(conversion())) {
        return failure();
      }
    }
    if (used != op.getArgs().size())
      return op.emitOpError() << "has " << op.getArgs().size() << " arguments, but its format takes " << used;
    op.setFormat(format);
    op.getArgsMutable().assign(values);
    return success();
  }

private:
  char take() {
    format += rest.front();
    rest = rest.drop_front();
    return format.back();
  }

  FailureOr<Value> next() {
    if (used == op.getArgs().size())
      return op.emitOpError() << "has " << used << " arguments, but its format takes more";
    return op.getArgs()[used++];
  }

  LogicalResult starOrDigits() {
    if (rest.starts_with("*")) {
      FailureOr<Value> value = next();
      if (failed(value))
        return failure();
      if (!takesStars)
        return writtenOut(*value);
      take();
      return integer(*value, /*isSigned=*/true, 32);
    }
    while (!rest.empty() && isdigit(rest.front()))
      take();
    return success();
  }

  /// A width or precision as digits, where the target's printf takes it from the format alone.
  LogicalResult writtenOut(Value value) {
    APInt number;
    if (isa<FloatType>(value.getType()))
      return notForStar(value);
    if (!matchPattern(value, m_ConstantInt(&number)))
      return op.emitOpError()
             << "has '*' in its format for a number that only the kernel knows, and printf of "
                "this target takes widths and precisions from the format alone: write it there";
    rest = rest.drop_front();
    int64_t printed = number.sextOrTrunc(32).getSExtValue();
    bool isPrecision = format.back() == '.';
    // A precision below zero is none; a width below zero is one on the left.
    if (isPrecision && printed < 0)
      format.pop_back();
    else
      llvm::raw_string_ostream(format) << printed;
    return success();
  }

  LogicalResult notForStar(Value value) {
    return op.emitOpError() << "has '*' in its format for an argument of type " << value.getType();
  }

  LogicalResult conversion() {
    while (!rest.empty() && StringRef("-+ #0").contains(rest.front()))
      take();
    if (failed(starOrDigits()))
      return failure();
    if (rest.starts_with(".")) {
      take();
      if (failed(starOrDigits()))
        return failure();
    }
    StringRef length = rest.take_while([](char c) { return StringRef("hlqjztL").contains(c); });
    rest = rest.drop_front(length.size());
    char kind = rest.empty() ? 0 : rest.front();
    bool isInteger = kind && StringRef("diuoxXcp").contains(kind);
    bool isFloat = kind && StringRef("fFeEgGaA").contains(kind);
    if (!isInteger && !isFloat) {
      std::string text; // as MLIR writes it: '\0A' for the end of a line
      llvm::raw_string_ostream stream(text);
      llvm::printEscapedString(rest.take_front(1), stream);
      return op.emitOpError() << "has a conversion '%" << text
                              << "' in its format: there are d i u o x X c p f F e E g G a A";
    }
    FailureOr<Value> value = next();
    if (failed(value))
      return failure();
    Type type = value->getType();
    if (isFloat != isa<FloatType>(type))
      return op.emitOpError() << "has '%" << StringRef(&kind, 1) << "' in its format for an argument of type "
                              << type;
    unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    if (bits > 64)
      return op.emitOpError() << "cannot print values of type " << type;
    if (isFloat) {
      if (bits < 64)
        value = arith::ExtFOp::create(b, op.getLoc(), b.getF64Type(), *value).getResult();
      values.push_back(*value);
    } else {
      unsigned passed = kind == 'c' ? 32 : kind == 'p' || bits > 32 ? 64 : 32;
      // CUDA's printf knows no hh: what is to be narrower becomes it here.
      unsigned narrow = length == "hh" ? 8 : length == "h" ? 16 : 32;
      if (passed == 64 && kind != 'p')
        format += "ll";
      else if (passed == 32 && kind != 'c' && bits > narrow)
        value = arith::TruncIOp::create(b, op.getLoc(), b.getIntegerType(narrow), *value).getResult();
      if (failed(integer(*value, (kind == 'd' || kind == 'i') && bits > 1, passed)))
        return failure();
    }
    take();
    return success();
  }

  LogicalResult integer(Value value, bool isSigned, unsigned bits) {
    Location loc = op.getLoc();
    Type wanted = b.getIntegerType(bits);
    if (isa<FloatType>(value.getType()))
      return notForStar(value);
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    unsigned width = value.getType().getIntOrFloatBitWidth();
    if (width > bits)
      value = arith::TruncIOp::create(b, loc, wanted, value);
    else if (width < bits && isSigned)
      value = arith::ExtSIOp::create(b, loc, wanted, value);
    else if (width < bits)
      value = arith::ExtUIOp::create(b, loc, wanted, value);
    values.push_back(value);
    return success();
  }

  gpu::PrintfOp op;
  OpBuilder b;
  StringRef rest; // of the format that was given
  bool takesStars;
  std::string format;
  unsigned used = 0;
  SmallVector<Value> values;
};

/// The strings of a module, each of them once.
class Texts {
public:
  explicit Texts(gpu::GPUModuleOp module) : module(module) {}

  /// A variable with the text and a zero byte behind it. MLIR's lowerings of prints and assertions take one
  /// that is there. For their own they try every name from the first on, and look through the module for
  /// each: a thousand took 15 seconds.
  LLVM::GlobalOp of(Location loc, StringRef text) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    std::string data = text.str(), name;
    data.push_back(0);
    StringAttr value = b.getStringAttr(data);
    LLVM::GlobalOp &global = known[value];
    if (global)
      return global;
    do
      name = "__offload_text_" + std::to_string(next++);
    while (module.lookupSymbol(name));
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), data.size());
    return global = LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                                           value);
  }

  Value addressOf(OpBuilder &b, Location loc, StringRef text) {
    return LLVM::AddressOfOp::create(b, loc, of(loc, text));
  }

private:
  gpu::GPUModuleOp module;
  llvm::DenseMap<StringAttr, LLVM::GlobalOp> known;
  unsigned next = 0;
};

/// printf and fflush: one call is one write, whole, whatever other threads print.
void callLibrary(gpu::PrintfOp op, Texts &texts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto module = op->getParentOfType<gpu::GPUModuleOp>();
  auto pointer = LLVM::LLVMPointerType::get(op.getContext());
  FailureOr<LLVM::LLVMFuncOp> print =
      LLVM::lookupOrCreateFn(b, module, "printf", {pointer}, b.getI32Type(), /*isVarArg=*/true);
  FailureOr<LLVM::LLVMFuncOp> flush = LLVM::lookupOrCreateFn(b, module, "fflush", {pointer}, b.getI32Type());
  if (!module.lookupSymbol("stdout")) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(top, loc, pointer, /*isConstant=*/false, LLVM::Linkage::External, "stdout",
                           Attribute());
  }
  SmallVector<Value> arguments{texts.addressOf(b, loc, op.getFormat())};
  llvm::append_range(arguments, op.getArgs());
  LLVM::CallOp::create(b, loc, *print, arguments);
  Value stream = LLVM::AddressOfOp::create(b, loc, pointer, "stdout");
  LLVM::CallOp::create(b, loc, *flush, LLVM::LoadOp::create(b, loc, pointer, stream).getResult());
  op.erase();
}

/// "file:line:col: " where the location has these.
std::string placeOf(Location loc) {
  std::string text;
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    llvm::raw_string_ostream(text) << place.getFilename().getValue() << ":" << place.getLine() << ":"
                                   << place.getColumn() << ": ";
  return text;
}

/// A function that traps and that nothing is inlined from or into. Where chips of AMD's have no trap of their
/// own (gfx11), LLVM 22 puts a loop in its place, and does not finish the code behind it in a function.
LLVM::LLVMFuncOp trap(gpu::GPUModuleOp module) {
  if (auto found = module.lookupSymbol<LLVM::LLVMFuncOp>(kTrap))
    return found;
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {});
  auto function = LLVM::LLVMFuncOp::create(b, module.getLoc(), kTrap, type, LLVM::Linkage::Internal);
  function.setPassthroughAttr(b.getStrArrayAttr({"noinline", "noreturn", "cold"}));
  b.setInsertionPointToStart(function.addEntryBlock(b));
  LLVM::Trap::create(b, module.getLoc());
  LLVM::UnreachableOp::create(b, module.getLoc());
  return function;
}

/// A text as part of a format, as far as C reads it.
std::string literally(StringRef text) {
  std::string format;
  for (char c : text.split('\0').first)
    format += c == '%' ? std::string("%%") : std::string(1, c);
  return format;
}

void lowerAssertion(cf::AssertOp op, const Lanes &lanes, Texts &texts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value yes = arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1);
  Value failed = arith::XOrIOp::create(b, loc, op.getArg(), yes);
  auto branch = scf::IfOp::create(b, loc, failed);
  OpBuilder in = branch.getThenBodyBuilder();
  std::string text = placeOf(loc);
  if (lanes.printsByLibrary()) {
    auto pointer = LLVM::LLVMPointerType::get(op.getContext());
    FailureOr<LLVM::LLVMFuncOp> fail =
        LLVM::lookupOrCreateFn(in, op->getParentOfType<gpu::GPUModuleOp>(), kFail, {pointer},
                               LLVM::LLVMVoidType::get(op.getContext()));
    LLVM::CallOp::create(in, loc, *fail, texts.addressOf(in, loc, text + op.getMsg().str()));
  } else {
    auto function = op->getParentOfType<FunctionOpInterface>();
    text =
        literally(text + function.getName().str()) +
        ": block (%lld, %lld, %lld), thread (%lld, %lld, %lld): assertion failed: " + literally(op.getMsg());
    SmallVector<Value> ids;
    for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
      ids.push_back(gpu::BlockIdOp::create(in, loc, axis));
    for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
      ids.push_back(gpu::ThreadIdOp::create(in, loc, axis));
    gpu::PrintfOp::create(in, loc, text + "\n", ids);
    LLVM::CallOp::create(in, loc, trap(op->getParentOfType<gpu::GPUModuleOp>()), ValueRange());
  }
  op.erase();
}

} // namespace

LogicalResult lowerPrints(gpu::GPUModuleOp module, const Lanes &lanes) {
  Texts texts(module);
  module.walk([&](cf::AssertOp op) {
    if (lanes.hasAssertions())
      texts.of(op.getLoc(), op.getMsg());
    else
      lowerAssertion(op, lanes, texts);
  });
  WalkResult walked = module.walk([&](gpu::PrintfOp op) {
    if (failed(FormatRepair(op, lanes.printsStars()).run()))
      return WalkResult::interrupt();
    if (unsigned most = lanes.mostPrinted(); op.getArgs().size() > most) {
      op.emitOpError() << "has " << op.getArgs().size() << " arguments, and printf of this target takes "
                       << most << " at a time: print them in several parts";
      return WalkResult::interrupt();
    }
    if (lanes.printsByLibrary())
      callLibrary(op, texts);
    else
      texts.of(op.getLoc(), op.getFormat());
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

} // namespace offload
