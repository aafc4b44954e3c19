// caller.cpp: the type Caller: calls its plan where that takes the arguments, and its method _call otherwise.
#include "caller.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace py = pybind11;

namespace offload {
namespace {

struct Caller {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<const Plan> plan;
};

PyObject *slowName, *failedName, *launchedName;

PyObject *callPython(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  PyObject *method = PyObject_GetAttr(self, slowName);
  if (!method)
    return nullptr;
  PyObject *result = PyObject_Vectorcall(method, args, nargsf, kwnames);
  Py_DECREF(method);
  return result;
}

// Python raises what the runtime says of the code.
PyObject *raise(PyObject *self, int32_t code) {
  PyObject *number = PyLong_FromLong(code);
  PyObject *result = number ? PyObject_CallMethodObjArgs(self, failedName, number, nullptr) : nullptr;
  Py_XDECREF(number);
  return result;
}

PyObject *inPython(PyObject *self, PyObject *arguments) {
  return PyObject_CallMethodObjArgs(self, launchedName, arguments, nullptr);
}

// An interrupt that came during the launch is raised by the first code of Python after it, and what the
// kernel uses may not be kept yet. It is here, and the interrupt stays the error; a few more may come in
// between.
void keepAllTheSame(PyObject *self, PyObject *arguments) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *pending = nullptr;
  for (int tries = 0; !pending && tries < 4; ++tries) {
    PyErr_Clear();
    pending = inPython(self, arguments);
  }
  PyErr_Clear();
  Py_XDECREF(pending);
  PyErr_Restore(type, value, traceback);
}

PyObject *launched(PyObject *self, PyObject *arguments, const Runtime &runtime) {
  PyObject *result = nullptr;
  int32_t code = 0;
  if (!afterLaunch(self, arguments, runtime, &result, &code))
    result = inPython(self, arguments);
  if (!result && PyErr_Occurred()) {
    keepAllTheSame(self, arguments);
    code = 0;
  }
  Py_DECREF(arguments);
  return code ? raise(self, code) : result;
}

PyObject *vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const Plan *plan = reinterpret_cast<Caller *>(self)->plan.get();
  PyObject *result = nullptr;
  int32_t code = 0;
  if (plan) {
    if (plan->goesOn() && !beforeLaunch(self, plan->itsRuntime()))
      return nullptr;
    const size_t given = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    const bool taken = !kwnames && given == plan->count()
                           ? plan->call(self, args, &result, &code)
                           : plan->callByName(self, args, given, kwnames, &result, &code);
    if (taken && code)
      return raise(self, code);
    if (taken)
      return plan->goesOn() && result ? launched(self, result, plan->itsRuntime()) : result;
    if (PyErr_Occurred()) // an interrupt
      return nullptr;
  }
  return callPython(self, args, nargsf, kwnames);
}

PyObject *make(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self) {
    Caller *caller = reinterpret_cast<Caller *>(self);
    caller->vectorcall = vectorcall;
    new (&caller->plan) std::shared_ptr<const Plan>();
  }
  return self;
}

void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<Caller *>(self)->plan.~shared_ptr();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char *>("Calls its plan where that takes the arguments, its method _call otherwise.")},
    {Py_tp_new, reinterpret_cast<void *>(make)},
    {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    "offload.runtime._fast.Caller",
    sizeof(Caller),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    slots,
};

} // namespace

Runtime::Runtime(uintptr_t table) {
  const mgpuApi *api = reinterpret_cast<const mgpuApi *>(table);
  lastError = api->mgpuGetLastError;
  backendName = api->mgpuBackendName;
  streamDevice = api->mgpuStreamDevice;
  streamDriver = api->mgpuStreamDriver;
  launch = api->mgpuKernelLaunch;
  setStream = api->mgpuSetThreadStream;
  capturing = api->mgpuStreamCapturing;
  waitStream = api->mgpuStreamWaitStream;
  synchronize = api->mgpuStreamSynchronize;
  threadsDevice = api->mgpuGetDefaultDevice;
  mark = api->mgpuStreamMark;
  destroyEvent = api->mgpuEventDestroy;
}

bool Runtime::uses(const char *backend) const {
  const char *now = backendName();
  return now && std::strcmp(now, backend) == 0;
}

Plan::~Plan() {
  for (PyObject *name : names.names)
    Py_DECREF(name);
}

size_t Plan::find(PyObject *name) const {
  const std::vector<PyObject *> &all = names.names;
  for (size_t i = 0; i < all.size(); ++i) // names in a program's text are interned, and so are these
    if (all[i] == name)
      return i;
  for (size_t i = 0; i < all.size(); ++i)
    if (PyUnicode_Compare(all[i], name) == 0)
      return i;
  return all.size();
}

// As `is_here` of streams.py.
static bool isHere(PyObject *stream, void *handle, const Runtime &runtime) {
  PyObject *device = slot(stream, types.streamHere), *thread = slot(stream, types.streamThread);
  if (device == Py_None)
    return true;
  if (!device || !PyLong_CheckExact(device) || PyLong_AsLong(device) != runtime.threadsDevice())
    return false;
  if (thread == Py_None)
    return true;
  if (!thread || !PyLong_CheckExact(thread) || PyLong_AsLongLong(thread) != threadNumber())
    return false;
  if (handle)
    return true;
  void *entered = runtime.setStream(nullptr);
  runtime.setStream(entered);
  return !entered;
}

bool workOn(PyObject *stream, const Runtime &runtime, Work &work) {
  PyObject *name = slot(stream, types.streamBackend);
  const char *text = name ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text || !runtime.uses(text)) {
    PyErr_Clear();
    return false;
  }
  PyObject *number = slot(stream, types.handle);
  work.token = slot(stream, types.streamToken);
  work.stream = number && number != Py_None ? PyLong_AsVoidPtr(number) : nullptr;
  work.foreign = slot(stream, types.streamOwned) == Py_False && !isDefault(work.stream);
  const bool here = isHere(stream, work.stream, runtime);
  if (!PyErr_Occurred())
    return number && work.token && here;
  PyErr_Clear();
  return false;
}

bool Plan::callByName(PyObject *self, PyObject *const *args, size_t given, PyObject *kwnames,
                      PyObject **result, int32_t *code) const {
  PyObject *bound[maxNamed] = {};
  PyObject *stream = nullptr;
  if (given > count() || count() > maxNamed || names.names.size() != count())
    return false;
  for (size_t i = 0; i < given; ++i)
    bound[i] = args[i];
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i), *value = args[given + static_cast<size_t>(i)];
    const size_t index = find(name);
    if (index < count() ? bound[index] != nullptr : !names.takesStream || stream)
      return false;
    if (index < count())
      bound[index] = value;
    else if (PyUnicode_CompareWithASCIIString(name, "stream") == 0)
      stream = value;
    else
      return false;
  }
  for (size_t i = 0; i < count(); ++i) {
    if (!bound[i] && i < required)
      return false;
    if (!bound[i])
      bound[i] = Py_None;
  }
  if (!stream)
    return call(self, bound, result, code);
  Work work;
  if (Py_TYPE(stream) != types.stream || slot(stream, types.streamNative) != names.native ||
      !workOn(stream, runtime, work))
    return false;
  void *previous = runtime.setStream(work.stream);
  const bool taken = call(self, bound, result, code);
  runtime.setStream(previous);
  return taken;
}

bool Plan::fill(PyObject *const *args, Kept &kept, int64_t *words, int32_t device, const Work &work,
                Producers *producers) const {
  Place place;
  place.token = work.token;
  place.producers = producers;
  place.consumer = work.foreign && producers ? runtime.streamDriver(work.stream) : nullptr;
  bool asked = false, placed = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument &argument = arguments[i];
    if (argument.kind != Kind::memref) {
      if (!fillScalar(argument, args[i], words))
        return false;
    } else {
      const bool ours = Py_TYPE(args[i]) == types.deviceArray;
      if (!asked && (argument.onDevice || ours)) {
        place.backend = runtime.backendName();
        asked = true;
      }
      if (!placed && argument.onDevice && (ours || producers)) {
        const bool host = place.backend && std::strcmp(place.backend, "host") == 0; // all memory is the CPU's
        place.device = host ? anyDevice : device == itsDevice ? runtime.streamDevice(work.stream) : device;
        placed = true;
      }
      if (!fillDescriptor(argument, args[i], place, kept, words))
        return false;
    }
    words += argument.words();
  }
  return true;
}

bool Plan::mayWait(const Producers &producers, const Work &work) const {
  for (size_t i = 0; i < producers.count; ++i) {
    void *stream = producers.streams[i];
    if (stream == work.stream)
      continue;
    if (runtime.capturing(stream) ||
        (isDefault(stream) && runtime.streamDevice(work.stream) != runtime.threadsDevice()))
      return false; // every device has a default stream: the thread's is another one
  }
  return true;
}

PyObject *makeCallerType() {
  slowName = PyUnicode_InternFromString("_call");
  failedName = PyUnicode_InternFromString("_failed");
  launchedName = PyUnicode_InternFromString("_launched");
  return slowName && failedName && launchedName ? PyType_FromSpec(&spec) : nullptr;
}

void arm(py::handle caller, std::unique_ptr<Plan> plan) {
  Caller *self = reinterpret_cast<Caller *>(caller.ptr());
  // A plan in use by another thread must not go away: the first one stays.
  if (!self->plan)
    self->plan = std::move(plan);
}

void share(py::handle from, py::handle to) {
  Caller *self = reinterpret_cast<Caller *>(to.ptr());
  if (!self->plan)
    self->plan = reinterpret_cast<Caller *>(from.ptr())->plan;
}

void inheritCall(py::handle subclass) {
  PyTypeObject *type = reinterpret_cast<PyTypeObject *>(subclass.ptr());
  if (type->tp_call != PyVectorcall_Call || type->tp_vectorcall_offset != offsetof(Caller, vectorcall))
    throw std::invalid_argument("a class that replaces __call__ is called through it");
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(type);
}

} // namespace offload
