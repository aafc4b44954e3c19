// array.cpp: memref descriptors from arrays of NumPy and of lib.device.
#include "plan.h"

#include <pybind11/numpy.h>

#include <cstring>

namespace offload {
namespace {

// pybind11's picture of an ndarray, the same in NumPy 1 and 2: headers of NumPy are not needed.
using Array = pybind11::detail::PyArray_Proxy;
constexpr int contiguous = 0x0001, aligned = 0x0100, writeable = 0x0400;
static_assert(sizeof(ssize_t) == sizeof(int64_t), "sizes are 64-bit");

bool knows(const Argument &argument, PyObject *dtype) {
  return dtype && (dtype == argument.dtypes[0] || dtype == argument.dtypes[1]);
}

void rowMajor(const int64_t *shape, size_t rank, int64_t *strides) {
  int64_t step = 1;
  for (size_t i = rank; i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
}

bool fillFromNumpy(const Argument &argument, PyObject *value, int64_t *words) {
  const Array *array = reinterpret_cast<const Array *>(value);
  const int needed = aligned | (argument.readOnly ? 0 : writeable) | (argument.identity ? contiguous : 0);
  if (array->nd != argument.rank || !knows(argument, array->descr) || (array->flags & needed) != needed)
    return false;
  const int64_t *shape = reinterpret_cast<const int64_t *>(array->dimensions);
  if (!takesShape(argument, shape))
    return false;
  const int64_t base = reinterpret_cast<int64_t>(array->data) - argument.offset * argument.size;
  words[0] = words[1] = base;
  words[2] = argument.offset;
  for (size_t i = 0; i < argument.rank; ++i)
    words[3 + i] = shape[i];
  if (argument.identity) { // NumPy has seen that it is row-major
    rowMajor(shape, argument.rank, words + 3 + argument.rank);
    return true;
  }
  return takesStrides(argument, shape, reinterpret_cast<const int64_t *>(array->strides), argument.size,
                      words + 3 + argument.rank);
}

// Whether nothing has to be waited for, given the mark that an array has.
bool isFree(PyObject *mark, const Place &place) {
  return mark == Py_None ||
         (mark && Py_TYPE(mark) == types.mark &&
          (slot(mark, types.done) == Py_True || (place.token && slot(mark, types.token) == place.token)));
}

bool fillFromDevice(const Argument &argument, PyObject *value, const Place &place, int64_t *words) {
  if (!argument.identity || argument.onHost || !place.backend)
    return false;
  PyObject *memory = slot(value, types.memory), *shape = slot(value, types.shape);
  PyObject *uses = slot(value, types.uses);
  if (!memory || !shape || !uses || !knows(argument, slot(value, types.dtype)) ||
      slot(value, types.strides) != Py_None || !isFree(slot(uses, types.usedUntil), place) ||
      !PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) != argument.rank)
    return false;
  PyObject *name = slot(memory, types.backend);
  const char *text = name ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text || std::strcmp(text, place.backend) != 0) {
    PyErr_Clear();
    return false;
  }
  PyObject *index = slot(memory, types.index), *pointer = slot(value, types.pointer);
  if (place.device >= 0 && argument.onDevice && (!index || PyLong_AsLong(index) != place.device)) {
    PyErr_Clear();
    return false;
  }
  words[0] = words[1] = pointer ? static_cast<int64_t>(PyLong_AsUnsignedLongLong(pointer)) : -1;
  words[2] = 0;
  for (size_t i = 0; i < argument.rank; ++i)
    words[3 + i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, static_cast<Py_ssize_t>(i)));
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  rowMajor(words + 3, argument.rank, words + 3 + argument.rank);
  return takesShape(argument, words + 3);
}

void fillNothing(const Argument &argument, int64_t *words) {
  int64_t *shape = words + 3, *strides = shape + argument.rank;
  words[0] = words[1] = 0;
  words[2] = argument.offset;
  for (size_t i = 0; i < argument.rank; ++i)
    shape[i] = argument.shape[i] == dynamic ? 0 : argument.shape[i];
  rowMajor(shape, argument.rank, strides);
  for (size_t i = 0; i < argument.strides.size(); ++i)
    if (argument.strides[i] != dynamic)
      strides[i] = argument.strides[i];
}

} // namespace

bool takesShape(const Argument &argument, const int64_t *shape) {
  for (size_t i = 0; i < argument.rank; ++i)
    if (argument.shape[i] != dynamic && argument.shape[i] != shape[i])
      return false;
  return true;
}

bool takesStrides(const Argument &argument, const int64_t *shape, const int64_t *own, int64_t parts,
                  int64_t *strides) {
  bool empty = false;
  for (size_t i = 0; i < argument.rank; ++i)
    empty = empty || shape[i] == 0;
  rowMajor(shape, argument.rank, strides);
  for (size_t i = 0; i < argument.rank; ++i) {
    const int64_t wanted = argument.identity ? strides[i] : argument.strides[i];
    if (shape[i] == 1 || empty) {
      if (wanted != dynamic)
        strides[i] = wanted;
      continue;
    }
    if (own && own[i] % parts)
      return false;
    if (own)
      strides[i] = own[i] / parts;
    if (wanted != dynamic && wanted != strides[i])
      return false;
  }
  return true;
}

bool fillDescriptor(const Argument &argument, PyObject *value, const Place &place, Kept &kept,
                    int64_t *words) {
  if (value == Py_None) {
    if (argument.optional)
      fillNothing(argument, words);
    return argument.optional;
  }
  if (Py_TYPE(value) == types.deviceArray)
    return fillFromDevice(argument, value, place, words);
  if (argument.onDevice && (!place.backend || std::strcmp(place.backend, "host") != 0))
    return place.backend && place.producers && fillFromExchange(argument, value, place, kept, words);
  if (Py_TYPE(value) == types.array)
    return fillFromNumpy(argument, value, words);
  return !PyObject_TypeCheck(value, types.array) && !PyObject_TypeCheck(value, types.deviceArray) &&
         fillFromDlpack(argument, value, kept, words);
}

} // namespace offload
