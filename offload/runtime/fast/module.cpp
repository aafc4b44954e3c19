// module.cpp: the Python module offload.runtime._fast, used by offload/runtime/plans.py alone.
#include "caller.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <stdexcept>

namespace py = pybind11;

namespace offload {
namespace {

// The offset of a slot (__slots__) in the objects of a class.
Py_ssize_t slotOf(py::handle type, const char *name) {
  py::object member = type.attr(name);
  if (Py_TYPE(member.ptr()) != &PyMemberDescr_Type)
    throw std::invalid_argument(std::string(name) + " is no slot");
  return reinterpret_cast<PyMemberDescrObject *>(member.ptr())->d_member->offset;
}

PyTypeObject *typeOf(py::handle object) { return reinterpret_cast<PyTypeObject *>(object.inc_ref().ptr()); }

void setNumpy(py::handle array, py::handle scalar, py::handle floating, py::handle integer) {
  types.array = typeOf(array);
  types.scalar = typeOf(scalar);
  types.floating = typeOf(floating);
  types.integer = typeOf(integer);
}

void setDeviceArray(py::handle array, py::handle memory, py::handle uses, py::handle allocation) {
  types.memory = slotOf(array, "_memory");
  types.owner = slotOf(array, "_owner");
  types.uses = slotOf(array, "_uses");
  types.usedUntil = slotOf(uses, "mark");
  types.pointer = slotOf(array, "pointer");
  types.dtype = slotOf(array, "dtype");
  types.shape = slotOf(array, "shape");
  types.strides = slotOf(array, "strides");
  types.backend = slotOf(memory, "backend");
  types.index = slotOf(memory, "device");
  types.allocation = typeOf(allocation);
  types.deviceArray = typeOf(array);
}

void setStream(py::handle stream, long mostOpen) {
  types.streamOpen = slotOf(stream, "open");
  types.streamLazy = slotOf(stream, "lazy");
  types.streamLock = slotOf(stream, "lock");
  types.streamKept = slotOf(stream, "kept");
  types.streamProcess = slotOf(stream, "_process");
  types.streamToken = slotOf(stream, "token");
  types.streamHere = slotOf(stream, "_here");
  types.streamThread = slotOf(stream, "_thread");
  types.streamOwned = slotOf(stream, "_owned");
  types.mostOpen = mostOpen;
  types.handle = slotOf(stream, "handle");
  types.streamNative = slotOf(stream, "native");
  types.streamBackend = slotOf(stream, "backend");
  types.stream = typeOf(stream);
}

void setMark(py::handle mark) {
  types.token = slotOf(mark, "token");
  types.done = slotOf(mark, "done");
  types.launches = slotOf(mark, "launches");
  types.counted = slotOf(mark, "pendings");
  types.event = slotOf(mark, "_event");
  types.number = slotOf(mark, "number");
  types.serial = slotOf(mark, "serial");
  types.markHandle = slotOf(mark, "_handle");
  types.markLock = slotOf(mark, "_lock");
  types.markNative = slotOf(mark, "_native");
  types.markProcess = slotOf(mark, "_process");
  types.markStream = slotOf(mark, "_stream");
  types.mark = typeOf(mark);
}

void setLaunch(py::handle launch, py::handle pending) {
  types.pendingNative = slotOf(pending, "_native");
  types.pendingMark = slotOf(pending, "_mark");
  types.pendingCounts = slotOf(pending, "_counts");
  types.pendingKeep = slotOf(pending, "_keep");
  types.pending = typeOf(pending);
  types.launchStream = slotOf(launch, "stream");
  types.launch = typeOf(launch);
}

Names readNames(py::handle given, bool takesStream) {
  Names names;
  for (py::handle name : given) {
    PyObject *text = name.inc_ref().ptr();
    PyUnicode_InternInPlace(&text);
    names.names.push_back(text);
  }
  names.takesStream = takesStream;
  return names;
}

std::vector<Argument> readAll(py::handle descriptions) {
  std::vector<Argument> arguments;
  for (py::handle description : descriptions)
    arguments.push_back(readArgument(description));
  return arguments;
}

// From pairs of arguments and dimensions, and the number or None, as offload/artifact/meta.py has them.
std::vector<EqualWords> readEqual(py::handle given, const std::vector<Argument> &arguments) {
  std::vector<size_t> starts;
  size_t words = 0;
  for (const Argument &argument : arguments) {
    starts.push_back(words);
    words += argument.words();
  }
  std::vector<EqualWords> all;
  for (py::handle each : given) {
    EqualWords equal;
    for (py::handle pair : each.attr("dimensions")) {
      auto [argument, dimension] = pair.cast<std::pair<size_t, size_t>>();
      equal.places.push_back(starts.at(argument) + 3 + dimension);
    }
    if (py::object size = each.attr("size"); !size.is_none())
      equal.number = size.cast<int64_t>();
    all.push_back(std::move(equal));
  }
  return all;
}

void armFunction(py::handle caller, py::handle native, uintptr_t api, uintptr_t function,
                 py::handle arguments, py::handle result, py::handle names, bool takesStream, bool brief,
                 bool onAnyDevice, py::handle equal) {
  Argument described{};
  if (!result.is_none())
    described = readArgument(result);
  std::vector<Argument> all = readAll(arguments);
  std::vector<EqualWords> same = readEqual(equal, all);
  auto plan = planFunction(Runtime(api), function, std::move(all), result.is_none() ? nullptr : &described,
                           brief, onAnyDevice, std::move(same));
  Names named = readNames(names, takesStream);
  named.native = native.ptr();
  plan->setNames(std::move(named));
  arm(caller, std::move(plan));
}

void armLaunch(py::handle caller, uintptr_t api, uintptr_t slot, py::handle arguments,
               std::array<intptr_t, 6> sizes, std::array<intptr_t, 3> cluster, int32_t shared,
               bool barePointers, bool goesOn, py::handle names) {
  const How how{sizes, cluster, shared, barePointers, goesOn};
  auto plan = planLaunch(Runtime(api), slot, readAll(arguments), how);
  plan->setNames(readNames(names, false));
  arm(caller, std::move(plan));
}

} // namespace
} // namespace offload

PYBIND11_MODULE(_fast, m) {
  using namespace offload;
  m.doc() = "Calls of functions and kernels without ctypes.";
  PyObject *caller = makeCallerType();
  if (!caller || !nameMethods() || !nameProtocol())
    throw py::error_already_set();
  m.attr("Caller") = py::reinterpret_steal<py::object>(caller);
  m.attr("ABI_VERSION") = MGPU_ABI_VERSION;
  m.def("inherit_call", &inheritCall);
  m.def("dlpack_destructor", [] { return reinterpret_cast<uintptr_t>(&releaseUnused); });
  m.def("dlpack_deleter", [](py::handle exported) {
    keepExported(exported.ptr());
    return reinterpret_cast<uintptr_t>(&releaseExported);
  });
  m.def("set_numpy", &setNumpy);
  m.def("set_device_array", &setDeviceArray);
  m.def("set_stream", &setStream);
  m.def("set_mark", &setMark);
  m.def("set_launch", &setLaunch);
  m.def("set_memories", [](const std::vector<std::tuple<std::string, int32_t, long>> &memories) {
    for (const auto &[backend, type, defaultStream] : memories)
      types.memories.push_back({backend, type, defaultStream});
  });
  m.def("end_event", &endEvent);
  m.def("opened", &opened);
  m.def("replace", &replace);
  m.def("next_serial", &nextSerial);
  m.def("thread_number", &threadNumber);
  m.def("arm_function", &armFunction);
  m.def("arm_launch", &armLaunch);
  m.def("share_plan", &share);
}
