// pending.cpp: what Python would do around a launch that nobody waits for: kernel.py's `put`, streams.py's
// `mark` and the marks of pending.py, which say why.
#include "caller.h"

#include <atomic>
#include <cstring>

namespace offload {
namespace {

PyObject *putName, *keepName, *usedUntilName;

void store(PyObject *object, Py_ssize_t offset, PyObject *value) {
  PyObject **place = reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
  PyObject *before = *place;
  *place = Py_NewRef(value);
  Py_XDECREF(before); // the last: it may run Python code
}

// The same for a new reference; false where it is null.
bool storeNew(PyObject *object, Py_ssize_t offset, PyObject *value) {
  if (value)
    store(object, offset, value);
  Py_XDECREF(value);
  return value;
}

// As `is_ours` of a DeviceArray.
bool isOurs(PyObject *array) {
  PyObject *owner = slot(array, types.owner);
  while (owner && Py_TYPE(owner) == types.deviceArray)
    owner = slot(owner, types.owner);
  return owner && Py_TYPE(owner) == types.allocation;
}

bool isNumber(PyObject *value) {
  return PyFloat_Check(value) || PyLong_Check(value) || PyComplex_Check(value) ||
         PyObject_TypeCheck(value, types.scalar);
}

// Of two marks in order, the later one has the larger.
std::atomic<long long> serials{0};

long long serialOf(PyObject *mark) {
  PyObject *number = slot(mark, types.serial);
  return number && PyLong_CheckExact(number) ? PyLong_AsLongLong(number) : 0;
}

// How many launches a mark has got; -1 where it does not say.
long launchesOf(PyObject *mark) {
  PyObject *number = slot(mark, types.launches);
  return number && PyLong_CheckExact(number) ? PyLong_AsLong(number) : -1;
}

bool isMark(PyObject *value) { return value && Py_TYPE(value) == types.mark; }

bool setSerial(PyObject *mark) { return storeNew(mark, types.serial, PyLong_FromLongLong(nextSerial())); }

// Mark(...) of pending.py, without its serial: a new reference, or null with an error set.
PyObject *newMark(PyObject *stream) {
  PyObject *mark = types.mark->tp_alloc(types.mark, 0);
  if (!mark)
    return nullptr;
  const Py_ssize_t same[][2] = {
      {types.markNative, types.streamNative}, {types.markProcess, types.streamProcess},
      {types.markHandle, types.handle},       {types.markLock, types.streamLock},
      {types.number, types.streamKept},       {types.token, types.streamToken}};
  for (const auto &[to, from] : same)
    store(mark, to, slot(stream, from));
  store(mark, types.event, Py_None);
  store(mark, types.done, Py_False);
  if (storeNew(mark, types.markStream, PyWeakref_NewRef(stream, nullptr)) &&
      storeNew(mark, types.launches, PyLong_FromLong(0)) &&
      storeNew(mark, types.counted, PyObject_CallNoArgs(reinterpret_cast<PyObject *>(&PyBaseObject_Type))))
    return mark;
  Py_DECREF(mark);
  return nullptr;
}

// Its method of that name, without the stream's lock: who holds that has taken the mark off the stream.
bool put(PyObject *mark, PyObject *stream, const Runtime &runtime) {
  if (slot(mark, types.event) != Py_None || slot(mark, types.done) == Py_True)
    return true;
  if (slot(stream, types.streamOpen) == mark)
    store(stream, types.streamOpen, Py_None);
  PyObject *number = slot(mark, types.markHandle);
  void *handle = number == Py_None ? nullptr : PyLong_AsVoidPtr(number);
  if (PyErr_Occurred())
    return false;
  if (slot(stream, types.streamLazy) == Py_True && runtime.capturing(handle)) {
    PyObject *result = PyObject_CallMethodNoArgs(mark, putName); // which says so
    Py_XDECREF(result);
    return result;
  }
  PyObject *kept = Py_NewRef(slot(stream, types.streamKept)); // what is kept has been launched
  PyThreadState *state = PyEval_SaveThread();
  void *event = runtime.mark(handle);
  PyEval_RestoreThread(state);
  bool done = true;
  if (event && slot(mark, types.event) != Py_None) { // another thread has come first
    runtime.destroyEvent(event);
  } else if (event) {
    done = storeNew(mark, types.event, PyLong_FromVoidPtr(event));
    store(mark, types.number, kept);
  }
  Py_DECREF(kept);
  return done;
}

// The mark that the launch goes before: a new reference, or null with an error set.
PyObject *markFor(PyObject *stream) {
  const bool lazy = slot(stream, types.streamLazy) == Py_True;
  PyObject *open = slot(stream, types.streamOpen);
  if (lazy && isMark(open))
    return Py_NewRef(open);
  PyObject *mark = newMark(stream);
  if (!mark)
    return nullptr;
  open = slot(stream, types.streamOpen); // making it may have run anything, and another thread
  if (lazy && isMark(open)) {
    Py_INCREF(open);
    Py_DECREF(mark);
    return open;
  }
  if (!setSerial(mark)) {
    Py_DECREF(mark);
    return nullptr;
  }
  if (lazy)
    store(stream, types.streamOpen, mark);
  return mark;
}

bool useUntil(PyObject *array, PyObject *mark) {
  PyObject *uses = slot(array, types.uses), *before = slot(uses, types.usedUntil);
  const bool alike = isMark(before) && slot(before, types.token) == slot(mark, types.token);
  if (alike && serialOf(before) >= serialOf(mark)) // another thread has come first with a later one
    return true;
  if (before == Py_None || alike || (isMark(before) && slot(before, types.done) == Py_True)) {
    store(uses, types.usedUntil, mark);
    return true;
  }
  PyObject *result = PyObject_CallMethodOneArg(array, usedUntilName, mark);
  Py_XDECREF(result);
  return result;
}

// Lets the stream keep what is not ours; with `all`, everything.
bool keep(PyObject *stream, PyObject *mark, PyObject *arguments, bool all) {
  PyObject *kept = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
    PyObject *value = PyTuple_GET_ITEM(arguments, i);
    const bool ours = Py_TYPE(value) == types.deviceArray && isOurs(value);
    if (value == Py_None || isNumber(value) || (ours && !all))
      continue;
    if (!kept && !(kept = PyList_New(0)))
      return false;
    if (PyList_Append(kept, value) < 0) {
      Py_DECREF(kept);
      return false;
    }
  }
  if (!kept)
    return true;
  PyObject *result = PyObject_CallMethodObjArgs(stream, keepName, mark, kept, nullptr);
  Py_DECREF(kept);
  Py_XDECREF(result);
  return result;
}

PyObject *makePending(PyObject *stream, PyObject *mark, PyObject *arguments) {
  PyObject *pending = types.pending->tp_alloc(types.pending, 0);
  if (pending) {
    store(pending, types.pendingNative, slot(stream, types.streamNative));
    store(pending, types.pendingMark, mark);
    store(pending, types.pendingCounts, slot(mark, types.counted));
    store(pending, types.pendingKeep, arguments);
  }
  return pending;
}

// *code as `afterLaunch` has it; the result too.
PyObject *leave(PyObject *stream, PyObject *mark, PyObject *arguments, const Runtime &runtime,
                int32_t *code) {
  // First what lets memory stay: keeping may wait, and be interrupted.
  const bool lazy = slot(stream, types.streamLazy) == Py_True;
  if (lazy && !storeNew(mark, types.launches, PyLong_FromLong(launchesOf(mark) + 1)))
    return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i)
    if (PyObject *value = PyTuple_GET_ITEM(arguments, i);
        Py_TYPE(value) == types.deviceArray && !useUntil(value, mark))
      return nullptr;
  if (!keep(stream, mark, arguments, false))
    return nullptr;
  if (slot(stream, types.streamLazy) != Py_True) { // which it may have become
    if (!put(mark, stream, runtime))
      return nullptr;
    *code = runtime.lastError();
    if (*code) {
      keep(stream, mark, arguments, true);
      return nullptr;
    }
  }
  return makePending(stream, mark, arguments);
}

} // namespace

bool nameMethods() {
  putName = PyUnicode_InternFromString("put");
  keepName = PyUnicode_InternFromString("keep");
  usedUntilName = PyUnicode_InternFromString("used_until");
  return putName && keepName && usedUntilName;
}

PyObject *streamOf(PyObject *launch) {
  if (Py_TYPE(launch) != types.launch)
    return nullptr;
  PyObject *stream = slot(launch, types.launchStream);
  return stream && Py_TYPE(stream) == types.stream ? stream : nullptr;
}

bool beforeLaunch(PyObject *launch, const Runtime &runtime) {
  PyObject *stream = streamOf(launch);
  PyObject *mark = stream ? slot(stream, types.streamOpen) : nullptr;
  if (!isMark(mark))
    return true;
  PyObject *counted = slot(mark, types.counted);
  if (launchesOf(mark) < types.mostOpen && counted && Py_REFCNT(counted) == 1)
    return true;
  Py_INCREF(mark);
  const bool done = put(mark, stream, runtime);
  Py_DECREF(mark);
  return done;
}

bool afterLaunch(PyObject *launch, PyObject *arguments, const Runtime &runtime, PyObject **pending,
                 int32_t *code) {
  PyObject *stream = streamOf(launch);
  if (!stream)
    return false;
  Py_INCREF(stream); // finalizers may run
  PyObject *mark = markFor(stream);
  *pending = mark ? leave(stream, mark, arguments, runtime, code) : nullptr;
  Py_XDECREF(mark);
  Py_DECREF(stream);
  return true;
}

long long nextSerial() { return ++serials; }

long long threadNumber() {
  static std::atomic<long long> last{0};
  thread_local const long long own = ++last;
  return own;
}

pybind11::object opened(pybind11::object stream, pybind11::object mark) {
  pybind11::object open = stream.attr("open");
  if (!open.is_none())
    return open;
  mark.attr("serial") = nextSerial();
  stream.attr("open") = mark;
  return mark;
}

bool replace(pybind11::handle holder, pybind11::handle name, pybind11::handle before,
             pybind11::handle after) {
  pybind11::object now =
      pybind11::reinterpret_steal<pybind11::object>(PyObject_GetAttr(holder.ptr(), name.ptr()));
  if (!now)
    throw pybind11::error_already_set();
  if (now.ptr() != before.ptr())
    return false;
  if (PyObject_SetAttr(holder.ptr(), name.ptr(), after.ptr()) < 0)
    throw pybind11::error_already_set();
  return true;
}

pybind11::object endEvent(uintptr_t table, uintptr_t event) {
  const mgpuApi *api = reinterpret_cast<const mgpuApi *>(table);
  mgpuKeptError aside;
  aside.code = 0;
  aside.message[0] = 0;
  api->mgpuErrorExchange(&aside);
  api->mgpuEventDestroy(reinterpret_cast<void *>(event));
  api->mgpuErrorExchange(&aside);
  if (aside.code == 0)
    return pybind11::none();
  return pybind11::make_tuple(aside.code, pybind11::bytes(aside.message, std::strlen(aside.message)));
}

} // namespace offload
