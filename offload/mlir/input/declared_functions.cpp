//===- declared_functions.cpp - Functions of the runtime, as programs declare them ---===//
//
// A program may call the runtime (mgpu*) and MLIR's runner (printI64, printMemrefF32) by declaring their
// functions. The linker knows names alone: with other types than theirs, what they get is whatever a register
// held. Programs that an older MLIR lowered do that, whose runtime had fewer parameters.
//
//===----------------------------------------------------------------------===//

#include "names.h"
#include "program.h"

#include "mgpu.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <type_traits>

using namespace mlir;

namespace offload {
namespace {

/// A parameter or result by one letter: v nothing, p an address, b s i l an integer of 8 to 64 bits, h a
/// float of 16 bits, f d those of C, m what has several parts.
template <class T> constexpr char letterOf() {
  if constexpr (std::is_void_v<T>)
    return 'v';
  else if constexpr (std::is_pointer_v<T>)
    return 'p';
  else if constexpr (std::is_same_v<T, float>)
    return 'f';
  else if constexpr (std::is_same_v<T, double>)
    return 'd';
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 1 ? 'b' : sizeof(T) == 2 ? 's' : sizeof(T) == 4 ? 'i' : 'l';
  else
    return 'm';
}

/// The letters of a function of C, its result first.
template <class Result, class... Parameters> std::string lettersOf(Result (*)(Parameters...)) {
  return {letterOf<Result>(), letterOf<Parameters>()...};
}

const llvm::StringMap<std::string> &knownFunctions() {
  static const llvm::StringMap<std::string> known = [] {
    llvm::StringMap<std::string> made{
        {"printI64", "vl"},    {"printU64", "vl"},    {"printF32", "vf"},
        {"printF64", "vd"},    {"printF16", "vs"},    {"printBF16", "vs"},
        {"printOpen", "v"},    {"printClose", "v"},   {"printComma", "v"},
        {"printNewline", "v"}, {"printString", "vp"}, {"printFlops", "vd"},
        {"rtclock", "d"},      {"nanoTime", "l"},     {std::string(kInterface) + "nanoTime", "l"},
    };
#define MGPU_FUNCTION(ret, name, params) made[#name] = lettersOf(static_cast<ret(*) params>(nullptr));
#include "mgpu_functions.def"
#undef MGPU_FUNCTION
#define ELEMENT(name, type)                                                                                  \
  for (const char *call : {"printMemref", "printMemrefShape"}) {                                             \
    made[std::string(call) + #name] = "vlp";                                                                 \
    made[std::string(kInterface) + call + #name] = "vp";                                                     \
  }                                                                                                          \
  for (int rank = 0; rank < 5; ++rank)                                                                       \
    made[std::string(kInterface) + "printMemref" + std::to_string(rank) + "d" #name] = "vp";                 \
  made[std::string(kInterface) + "verifyMemRef" #name] = made["verifyMemRef" #name] = "lpp";
#include "runner/elements.def"
#undef ELEMENT
    return made;
  }();
  return known;
}

char letterOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() <= 8    ? 'b'
           : integer.getWidth() <= 16 ? 's'
           : integer.getWidth() <= 32 ? 'i'
           : integer.getWidth() <= 64 ? 'l'
                                      : 'm';
  if (type.isIndex())
    return 'l';
  if (isa<LLVM::LLVMPointerType>(type))
    return 'p';
  if (isa<NoneType, LLVM::LLVMVoidType>(type))
    return 'v';
  return type.isF32() ? 'f' : type.isF64() ? 'd' : type.isF16() || type.isBF16() ? 'h' : 'm';
}

/// Appends how an argument is passed: a memref in its parts, or as the address of one. Of a memref an address
/// is 'a' and a number 'n', each of which is never meant as the other. False for what is passed in ways that
/// nothing here knows.
bool append(std::string &letters, Type type, bool byAddress, bool bare) {
  auto memref = dyn_cast<MemRefType>(type);
  if (byAddress && isa<BaseMemRefType>(type))
    letters += 'a';
  else if (memref && bare && fitsBarePointer(type))
    letters += 'a';
  else if (memref)
    letters += "aan" + std::string(2 * memref.getRank(), 'n');
  else if (isa<UnrankedMemRefType>(type))
    letters += "na";
  else
    letters += letterOf(type);
  return letters.back() != 'm';
}

/// The letters of a declared function, result first; empty where that is unknown.
std::string lettersOf(FunctionOpInterface function, bool byAddress, bool bare) {
  ArrayRef<Type> results = function.getResultTypes();
  std::string letters(1, results.empty() ? 'v' : results.size() == 1 ? letterOf(results[0]) : 'm');
  auto lowered = dyn_cast<LLVM::LLVMFuncOp>(*function);
  if (lowered && lowered.isVarArg())
    return {};
  for (Type type : function.getArgumentTypes())
    if (!append(letters, type, byAddress, bare))
      return {};
  return letters;
}

/// Wider integers leave what a function does not look at; narrower ones leave what it looks at to chance.
/// Addresses are integers of 64 bits.
bool fits(char given, char taken) {
  if (given == 'a')
    return taken == 'p';
  if (given == 'n')
    return taken != 'p' && fits('l', taken);
  StringRef widths = "bsil";
  size_t from = widths.find(given == 'p' ? 'l' : given), to = widths.find(taken == 'p' ? 'l' : taken);
  bool address = given == 'p' || taken == 'p';
  if (from == StringRef::npos || to == StringRef::npos)
    return given == taken;
  return address ? from == to : from >= to;
}

/// Does a call by the declared letters give the function what it takes, and get what it returns?
bool fits(StringRef declared, StringRef known, bool lastIsUnread) {
  bool result = declared[0] == 'v' || declared[0] == 'm' || known[0] == 'm' || fits(known[0], declared[0]);
  size_t taken = known.size() - (lastIsUnread && declared.size() == known.size() - 1);
  return result && declared.size() >= taken &&
         llvm::all_of(llvm::seq<size_t>(1, taken), [&](size_t i) { return fits(declared[i], known[i]); });
}

/// A function's letters as types of the LLVM dialect.
std::string spelled(StringRef letters) {
  auto typeOf = [](char letter) {
    return llvm::StringSwitch<std::string>(StringRef(&letter, 1))
        .Case("p", "!llvm.ptr")
        .Case("b", "i8")
        .Case("s", "i16")
        .Case("i", "i32")
        .Case("l", "i64")
        .Case("f", "f32")
        .Default("f64");
  };
  std::string parameters = llvm::join(llvm::map_range(letters.drop_front(), typeOf), ", ");
  bool hasResult = letters[0] != 'v' && letters[0] != 'm';
  return "(" + parameters + ")" + (hasResult ? " -> " + typeOf(letters[0]) : "");
}

/// Whether a function of the runner, by the end of its name, reads elements of that type as what they are.
bool readsElements(StringRef suffix, Type element) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    unsigned bits = integer.getWidth() == 1 ? 8 : integer.getWidth();
    return suffix == "I" + std::to_string(bits) || (bits == 64 && suffix == "Ind");
  }
  if (auto complex = dyn_cast<ComplexType>(element))
    return suffix == (complex.getElementType().isF32()   ? "C32"
                      : complex.getElementType().isF64() ? "C64"
                                                         : "");
  if (element.isIndex())
    return suffix == "Ind" || suffix == "I64";
  return suffix == (element.isF16()    ? "F16"
                    : element.isBF16() ? "BF16"
                    : element.isF32()  ? "F32"
                    : element.isF64()  ? "F64"
                                       : "");
}

/// What a function of the runner goes through, by its name, where it is declared for something else: memrefs
/// of any rank (printMemrefF32), or of the one in its name (printMemref1dF32), with elements of the type
/// behind that.
std::string misread(FunctionOpInterface function, StringRef name) {
  bool apart = !name.consume_front(kInterface) && name.starts_with("verifyMemRef");
  if (!name.consume_front("verifyMemRef") && !name.consume_front("printMemref"))
    return {};
  bool ranked = name.size() > 2 && llvm::isDigit(name[0]) && name[1] == 'd';
  bool anyElement = name.consume_front("Shape");
  StringRef suffix = ranked ? name.drop_front(2) : name;
  for (Type type : function.getArgumentTypes()) {
    auto memref = dyn_cast<BaseMemRefType>(type);
    if (!memref)
      continue;
    if (ranked && (!memref.hasRank() || cast<MemRefType>(type).getRank() != name[0] - '0'))
      return "memrefs of rank " + name.take_front(1).str();
    if (!ranked && memref.hasRank())
      return "unranked memrefs: cast what it is called with (memref.cast)";
    if (apart)
      return "two memrefs that come with one rank: declare it with llvm.emit_c_interface";
    if (!anyElement && !readsElements(suffix, memref.getElementType()))
      return "elements of the type at the end of its name";
  }
  return {};
}

} // namespace

/// Whether a function gets a ranked memref in its parts: no more than these, or they are taken for parameters
/// that have nothing to do with a memref.
static bool takesParts(FunctionOpInterface function, bool bare) {
  return llvm::any_of(function.getArgumentTypes(),
                      [&](Type type) { return isa<MemRefType>(type) && !(bare && fitsBarePointer(type)); });
}

void checkDeclared(const IRModule &module, bool bare, const std::vector<std::string> &defined) {
  llvm::StringSet<> elsewhere(llvm::from_range, defined);
  for (auto function : module.get().getOps<FunctionOpInterface>()) {
    if (!function.isExternal())
      continue;
    bool byAddress = isa<func::FuncOp>(*function) && // an llvm.func has its own name with it, too
                     function->hasAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName());
    std::string name = ((byAddress ? kInterface : "") + function.getName()).str();
    auto known = knownFunctions().find(name);
    if (known == knownFunctions().end() || elsewhere.contains(name) ||
        SymbolTable::symbolKnownUseEmpty(function, module.get()))
      continue;
    std::string declared = lettersOf(function, byAddress, bare);
    bool lastIsUnread = name == "mgpuLaunchKernel"; // the number of parameters, which came later
    std::string through = misread(function, name);
    if (!through.empty())
      function.emitError("'") << function.getName() << "' is declared as " << function.getFunctionType()
                              << ", and it goes through " << through;
    else if ((!byAddress && takesParts(function, bare) && declared.size() != known->getValue().size()) ||
             (!declared.empty() && !fits(declared, known->getValue(), lastIsUnread)))
      function.emitError("'") << function.getName()
                              << "' is declared with other types than it has, which are "
                              << spelled(known->getValue())
                              << " in the LLVM dialect: declare it with these, or define it in one of the "
                                 "sources or in an object (--object)";
  }
  module.session->failOnErrors("declared functions");
}

} // namespace offload
