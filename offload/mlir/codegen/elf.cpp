//===- elf.cpp - Linking with lld, reading ELF files and AMDGPU metadata --===//

#include "codegen/llvm_module.h"

#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/BinaryFormat/AMDGPUMetadataVerifier.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/BinaryFormat/MsgPackReader.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/AMDGPUMetadata.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/JSON.h"
#include <csignal>
#include <exception>
#include <system_error>
#include <thread>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace offload {

/// Runs lld, and returns whether all went well. At a damaged object file it ends its process where nothing
/// recovers from crashes, and what it had to say is lost.
static bool runLld(ArrayRef<const char *> words, raw_ostream &output, raw_ostream &errors) {
  constexpr int firstSignal = 128;
  CrashRecoveryContext::Enable();
  scope_exit<void (*)()> asBefore(CrashRecoveryContext::Disable);
  lld::Result result{};
  std::exception_ptr thrown; // LLVM's containers throw where they cannot grow
  auto link = [&] {
    try {
      result = lld::lldMain(words, output, errors, {{lld::Gnu, &lld::elf::link}});
      // It left where it was, and its state is still there.
      if (!result.canRunAgain && result.retCode <= firstSignal)
        CrashRecoveryContext().RunSafely([] { lld::CommonLinkerContext::destroy(); });
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  // lld 22 keeps the sections of all inputs, half a megabyte for a library, until the thread ends that has
  // linked.
  try {
    std::thread(link).join();
  } catch (const std::system_error &) { // the system has no more threads for us
    link();
  }
  if (thrown)
    std::rethrow_exception(thrown);
  // A crash stays one, and is reported as one.
  if (!result.canRunAgain && result.retCode > firstSignal) {
    CrashRecoveryContext::Disable();
    std::raise(result.retCode - firstSignal);
  }
  return result.retCode == 0 && result.canRunAgain;
}

void linkElf(const std::vector<std::string> &arguments) {
  std::lock_guard<std::shared_mutex> alone(optionsLock()); // lld keeps its own state in globals, too
  // Of several threads no crash can be recovered from, they stay, and what they keep stays with them.
  // Libraries are small: to start and to wake threads takes a third of lld's time.
  std::vector<const char *> words = {"ld.lld", "--threads=1"};
  for (const std::string &argument : arguments)
    words.push_back(argument.c_str());
  std::string output, errors;
  raw_string_ostream outputStream(output), errorStream(errors);
  if (!runLld(words, outputStream, errorStream))
    throw Failure("lld failed: " + errors, {});
}

/// Calls `take` on every note of the ELF file until it returns true.
static void eachNote(const std::string &elf, function_ref<bool(const object::ELF64LE::Note &)> take) {
  auto file = object::ELF64LEFile::create(elf);
  if (!file) {
    consumeError(file.takeError());
    return;
  }
  auto headers = file->program_headers();
  if (!headers) {
    consumeError(headers.takeError());
    return;
  }
  for (const auto &header : *headers) {
    if (header.p_type != ELF::PT_NOTE)
      continue;
    Error error = Error::success();
    for (const auto &note : file->notes(header, error))
      if (take(note))
        break;
    consumeError(std::move(error));
  }
}

/// Does one whole object follow, with words as the keys of its maps? The document's own reader ends the
/// process at others.
static bool isPlain(msgpack::Reader &reader, unsigned depth = 0) {
  msgpack::Object object;
  Expected<bool> found = reader.read(object);
  if (!found) {
    consumeError(found.takeError());
    return false;
  }
  if (!*found || object.Kind == msgpack::Type::Extension || depth > 16)
    return false;
  if (object.Kind == msgpack::Type::Array)
    for (size_t i = 0; i < object.Length; ++i)
      if (!isPlain(reader, depth + 1))
        return false;
  if (object.Kind == msgpack::Type::Map)
    for (size_t i = 0; i < object.Length; ++i) {
      msgpack::Object key;
      Expected<bool> read = reader.read(key);
      if (!read)
        consumeError(read.takeError());
      else if (*read && key.Kind == msgpack::Type::String && isPlain(reader, depth + 1))
        continue;
      return false;
    }
  return true;
}

/// Python gets it as text.
static std::string nameOf(StringRef name) {
  if (!json::isUTF8(name))
    throw Failure("a name in it is no text", {});
  return name.str();
}

/// Calls `take` on the name and the metadata of every kernel of an AMDGPU code object.
static void eachKernel(const std::string &elf,
                       function_ref<void(std::string name, msgpack::MapDocNode &metadata)> take) {
  eachNote(elf, [&](const object::ELF64LE::Note &note) {
    if (note.getName() != "AMDGPU" || note.getType() != ELF::NT_AMDGPU_METADATA)
      return false;
    ArrayRef<uint8_t> bytes = note.getDesc(4);
    StringRef blob(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    msgpack::Reader reader(blob);
    msgpack::Document document;
    if (!isPlain(reader) || !document.readFromBlob(blob, false) || !document.getRoot().isMap())
      throw Failure("its metadata cannot be read", {});
    msgpack::DocNode kernels = document.getRoot().getMap()["amdhsa.kernels"];
    if (!kernels.isArray())
      return true;
    for (msgpack::DocNode &kernel : kernels.getArray()) {
      if (!kernel.isMap() || !kernel.getMap()[".name"].isString())
        throw Failure("its metadata have a kernel without a name", {});
      take(nameOf(kernel.getMap()[".name"].getString()), kernel.getMap());
    }
    return true;
  });
}

static std::optional<int64_t> numberOf(msgpack::DocNode value) {
  if (value.getKind() == msgpack::Type::UInt)
    return int64_t(value.getUInt());
  return value.getKind() == msgpack::Type::Int ? std::optional(value.getInt()) : std::nullopt;
}

KernelResources amdgpuResources(const std::string &elf) {
  static constexpr std::pair<const char *, const char *> fields[] = {
      {"vgpr", ".vgpr_count"},
      {"agpr", ".agpr_count"},
      {"sgpr", ".sgpr_count"},
      {"vgpr_spills", ".vgpr_spill_count"},
      {"sgpr_spills", ".sgpr_spill_count"},
      {"shared_bytes", ".group_segment_fixed_size"},
      {"private_bytes", ".private_segment_fixed_size"},
      {"kernarg_bytes", ".kernarg_segment_size"},
      {"wavefront_size", ".wavefront_size"},
      {"max_threads", ".max_flat_workgroup_size"},
  };
  KernelResources result;
  eachKernel(elf, [&](std::string kernel, msgpack::MapDocNode &metadata) {
    Resources values;
    for (auto [name, key] : fields)
      if (std::optional<int64_t> value = numberOf(metadata[key]))
        values.push_back({name, *value});
    result.push_back({std::move(kernel), std::move(values)});
  });
  return result;
}

KernelParameters amdgpuParameters(const std::string &elf) {
  KernelParameters result;
  eachKernel(elf, [&](std::string kernel, msgpack::MapDocNode &metadata) {
    msgpack::DocNode arguments = metadata[".args"];
    if (!arguments.isArray())
      return;
    std::vector<int64_t> sizes;
    for (msgpack::DocNode &argument : arguments.getArray()) {
      if (!argument.isMap() || !argument.getMap()[".value_kind"].isString())
        return;
      std::optional<int64_t> size = numberOf(argument.getMap()[".size"]);
      if (!size)
        return;
      // What the runtime adds comes last.
      if (!argument.getMap()[".value_kind"].getString().starts_with("hidden_"))
        sizes.push_back(*size);
    }
    result.push_back({std::move(kernel), std::move(sizes)});
  });
  return result;
}

template <typename T> static T orThrow(Expected<T> value) {
  if (!value)
    throw Failure(toString(value.takeError()), {});
  return std::move(*value);
}

ElfFile readElf(const std::string &data) {
  using Elf = object::ELF64LEFile;
  StringRef bytes(data);
  bool known = data.size() > ELF::EI_DATA && bytes.starts_with(ELF::ElfMagic) &&
               data[ELF::EI_CLASS] == ELF::ELFCLASS64 && data[ELF::EI_DATA] == ELF::ELFDATA2LSB;
  if (!known)
    throw Failure("not a 64-bit little-endian ELF file", {});
  Elf file = orThrow(Elf::create(bytes));
  const Elf::Elf_Ehdr &header = file.getHeader();
  ElfFile result{header.e_machine, header.e_type, header.e_ident[ELF::EI_ABIVERSION], header.e_flags, {}, {}};
  for (const Elf::Elf_Phdr &segment : orThrow(file.program_headers()))
    if (segment.p_offset > data.size() || segment.p_filesz > data.size() - segment.p_offset)
      throw Failure("the file ends inside a segment", {});
  const Elf::Elf_Shdr *symbols = nullptr;
  Elf::Elf_Shdr_Range sections = orThrow(file.sections());
  for (const Elf::Elf_Shdr &section : sections) {
    bool held = section.sh_type != ELF::SHT_NOBITS && section.sh_type != ELF::SHT_NULL;
    ArrayRef<uint8_t> content;
    if (held)
      content = orThrow(file.getSectionContents(section));
    result.sections.push_back({nameOf(orThrow(file.getSectionName(section))), section.sh_info,
                               section.sh_size, std::string(content.begin(), content.end())});
    if (section.sh_type == ELF::SHT_SYMTAB || (section.sh_type == ELF::SHT_DYNSYM && !symbols))
      symbols = &section;
  }
  if (!symbols)
    return result;
  StringRef names = orThrow(file.getStringTableForSymtab(*symbols, sections));
  for (const Elf::Elf_Sym &symbol : orThrow(file.symbols(symbols)))
    result.symbols.push_back({nameOf(orThrow(symbol.getName(names))), symbol.st_other,
                              symbol.getType() == ELF::STT_FUNC, symbol.getBinding() != ELF::STB_LOCAL,
                              symbol.st_shndx != ELF::SHN_UNDEF});
  return result;
}

std::vector<std::string> archiveSymbols(const std::string &data) {
  auto archive = orThrow(object::Archive::create(MemoryBufferRef(data, "archive")));
  if (!archive->hasSymbolTable())
    throw Failure("the archive has no index", {});
  std::vector<std::string> result;
  for (const object::Archive::Symbol &symbol : archive->symbols())
    result.push_back(nameOf(symbol.getName()));
  return result;
}

} // namespace offload
