// plan.cpp: plans from the descriptions that Python makes.
#include "plan.h"

#include <stdexcept>

namespace py = pybind11;

namespace offload {

Types types;

static std::vector<int64_t> sizes(py::handle given) {
  std::vector<int64_t> out;
  for (py::handle size : given)
    out.push_back(size.is_none() ? dynamic : size.cast<int64_t>());
  return out;
}

static Kind kindOf(const std::string &name) {
  static const std::pair<const char *, Kind> names[] = {
      {"memref", Kind::memref},    {"bool", Kind::boolean},      {"int", Kind::signedInt},
      {"uint", Kind::unsignedInt}, {"float64", Kind::float64},   {"float32", Kind::float32},
      {"float16", Kind::float16},  {"bfloat16", Kind::bfloat16}, {"complex", Kind::complex},
  };
  for (const auto &[text, kind] : names)
    if (name == text)
      return kind;
  throw std::invalid_argument("no argument is a " + name);
}

Argument readArgument(py::handle description) {
  Argument argument{};
  argument.kind = kindOf(description["kind"].cast<std::string>());
  argument.size = description["size"].cast<uint8_t>();
  if (argument.kind == Kind::signedInt) {
    argument.low = argument.size == 8 ? INT64_MIN : -(int64_t(1) << (8 * argument.size - 1));
    argument.high = (uint64_t(1) << (8 * argument.size - 1)) - 1;
  } else if (argument.kind == Kind::unsignedInt) {
    argument.high = argument.size == 8 ? UINT64_MAX : (uint64_t(1) << (8 * argument.size)) - 1;
  }
  if (argument.kind != Kind::memref)
    return argument;
  argument.shape = sizes(description["shape"]);
  if (argument.shape.size() > maxRank)
    throw std::invalid_argument("a memref of such a rank goes through ctypes");
  argument.rank = static_cast<uint8_t>(argument.shape.size());
  argument.identity = description["strides"].is_none();
  if (!argument.identity)
    argument.strides = sizes(description["strides"]);
  argument.alignment = description["alignment"].cast<uint8_t>();
  if (!description["dlpack"].is_none())
    argument.dlpackCode = description["dlpack"].cast<int>();
  argument.optional = description["optional"].cast<bool>();
  argument.readOnly = description["read_only"].cast<bool>();
  argument.offset = description["offset"].cast<int64_t>();
  std::string space = description["space"].cast<std::string>();
  argument.onDevice = space == "device";
  argument.onHost = space == "host";
  size_t index = 0;
  for (py::handle dtype : description["dtypes"])
    if (index < argument.dtypes.size())
      argument.dtypes[index++] = dtype.inc_ref().ptr(); // NumPy keeps them for ever; so may we.
  return argument;
}

Layout layoutOf(const std::vector<Argument> &arguments) {
  Layout layout;
  for (const Argument &argument : arguments) {
    layout.words += argument.words();
    layout.arrays = layout.arrays || argument.kind == Kind::memref;
  }
  return layout;
}

} // namespace offload
