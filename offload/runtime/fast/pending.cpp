// pending.cpp: what Python would do around a launch that nobody waits for: kernel.py's `put`, for arrays
// whose memory is given back behind what uses it, on a stream that nobody else knows. See pending.py and
// streams.py.
#include "caller.h"

namespace offload {
namespace {

PyObject *putName, *openMarkName, *usedUntilName;

void store(PyObject *object, Py_ssize_t offset, PyObject *value) {
  PyObject **place = reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
  PyObject *before = *place;
  *place = Py_NewRef(value);
  Py_XDECREF(before); // the last: it may run Python code
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
         PyObject_TypeCheck(value, types.floating) || PyObject_TypeCheck(value, types.integer);
}

// How many launches a mark has got; -1 where it does not say.
long launchesOf(PyObject *mark) {
  PyObject *number = slot(mark, types.launches);
  return number && PyLong_CheckExact(number) ? PyLong_AsLong(number) : -1;
}

PyObject *streamOf(PyObject *launch) {
  if (Py_TYPE(launch) != types.launch)
    return nullptr;
  PyObject *stream = slot(launch, types.launchStream);
  return stream && Py_TYPE(stream) == types.stream ? stream : nullptr;
}

// The mark that further launches on the stream go before: a new reference.
PyObject *openMark(PyObject *stream) {
  PyObject *mark = slot(stream, types.streamOpen);
  if (mark && Py_TYPE(mark) == types.mark)
    return Py_NewRef(mark);
  return PyObject_CallMethodNoArgs(stream, openMarkName);
}

bool useUntil(PyObject *array, PyObject *mark) {
  PyObject *uses = slot(array, types.uses), *before = slot(uses, types.usedUntil);
  if (before == mark)
    return true;
  if (before == Py_None ||
      (before && Py_TYPE(before) == types.mark && slot(before, types.token) == slot(mark, types.token))) {
    store(uses, types.usedUntil, mark);
    return true;
  }
  PyObject *result = PyObject_CallMethodOneArg(array, usedUntilName, mark);
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

} // namespace

bool nameMethods() {
  putName = PyUnicode_InternFromString("put");
  openMarkName = PyUnicode_InternFromString("open_mark");
  usedUntilName = PyUnicode_InternFromString("used_until");
  return putName && openMarkName && usedUntilName;
}

bool beforeLaunch(PyObject *launch) {
  PyObject *stream = streamOf(launch);
  PyObject *mark = stream ? slot(stream, types.streamOpen) : nullptr;
  if (!mark || Py_TYPE(mark) != types.mark)
    return true;
  PyObject *counted = slot(mark, types.counted);
  if (launchesOf(mark) < types.mostOpen && counted && Py_REFCNT(counted) == 1)
    return true;
  Py_INCREF(mark); // the stream lets go of it
  PyObject *result = PyObject_CallMethodNoArgs(mark, putName);
  Py_DECREF(mark);
  Py_XDECREF(result);
  return result;
}

bool afterLaunch(PyObject *launch, PyObject *arguments, PyObject **pending) {
  *pending = nullptr;
  PyObject *stream = streamOf(launch);
  if (!stream || slot(stream, types.streamLazy) != Py_True)
    return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *value = PyTuple_GET_ITEM(arguments, i);
    const bool array = Py_TYPE(value) == types.deviceArray;
    if (array ? !isOurs(value) : value != Py_None && !isNumber(value))
      return false;
  }
  Py_INCREF(stream); // finalizers may run
  PyObject *mark = openMark(stream);
  bool done = mark;
  for (Py_ssize_t i = 0; done && i < count; ++i)
    if (PyObject *value = PyTuple_GET_ITEM(arguments, i); Py_TYPE(value) == types.deviceArray)
      done = useUntil(value, mark);
  if (done) {
    if (PyObject *launches = PyLong_FromLong(launchesOf(mark) + 1)) {
      store(mark, types.launches, launches);
      Py_DECREF(launches);
      *pending = makePending(stream, mark, arguments);
    }
  }
  Py_XDECREF(mark);
  Py_DECREF(stream);
  return true;
}

} // namespace offload
