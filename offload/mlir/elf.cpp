//===- elf.cpp - Linking with lld and reading AMDGPU metadata -------------===//

#include "llvm_module.h"

#include "lld/Common/Driver.h"
#include "llvm/BinaryFormat/AMDGPUMetadataVerifier.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/AMDGPUMetadata.h"

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace offload {

void linkElf(const std::vector<std::string> &arguments) {
  std::lock_guard<std::shared_mutex> alone(optionsLock()); // lld keeps its own state in globals, too
  std::vector<const char *> words = {"ld.lld"};
  for (const std::string &argument : arguments)
    words.push_back(argument.c_str());
  std::string output, errors;
  raw_string_ostream outputStream(output), errorStream(errors);
  lld::Result result = lld::lldMain(words, outputStream, errorStream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0 || !result.canRunAgain)
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
  eachNote(elf, [&](const object::ELF64LE::Note &note) {
    if (note.getName() != "AMDGPU" || note.getType() != ELF::NT_AMDGPU_METADATA)
      return false;
    msgpack::Document document;
    ArrayRef<uint8_t> bytes = note.getDesc(4);
    if (!document.readFromBlob(StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()), false))
      return true;
    msgpack::DocNode kernels = document.getRoot().getMap()["amdhsa.kernels"];
    if (!kernels.isArray())
      return true;
    for (msgpack::DocNode &kernel : kernels.getArray()) {
      msgpack::MapDocNode map = kernel.getMap();
      Resources values;
      for (auto [name, key] : fields) {
        msgpack::DocNode value = map[key];
        if (value.getKind() == msgpack::Type::UInt)
          values.push_back({name, int64_t(value.getUInt())});
        else if (value.getKind() == msgpack::Type::Int)
          values.push_back({name, value.getInt()});
      }
      result.push_back({map[".name"].getString().str(), std::move(values)});
    }
    return true;
  });
  return result;
}

} // namespace offload
