// scalar.cpp: numbers as the words of registers.
#include "plan.h"

#include <cmath>
#include <cstring>

namespace offload {
namespace {

bool isNumpy(PyObject *value, PyTypeObject *kind) { return kind && PyType_IsSubtype(Py_TYPE(value), kind); }

// Errors of a number that does not fit are Python's to tell.
bool nothing() {
  PyErr_Clear();
  return false;
}

bool fitInteger(const Argument &argument, PyObject *number, int64_t *word) {
  if (argument.kind == Kind::unsignedInt) {
    const unsigned long long bits = PyLong_AsUnsignedLongLong(number);
    if (bits == static_cast<unsigned long long>(-1) && PyErr_Occurred())
      return nothing();
    *word = static_cast<int64_t>(bits);
    return bits <= argument.high;
  }
  int overflow = 0;
  const long long bits = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (bits == -1 && PyErr_Occurred())
    return nothing();
  *word = bits;
  return !overflow && bits >= argument.low && bits <= static_cast<int64_t>(argument.high);
}

bool fillInteger(const Argument &argument, PyObject *value, int64_t *word) {
  if (PyLong_CheckExact(value))
    return fitInteger(argument, value, word);
  if (!isNumpy(value, types.integer))
    return false;
  PyObject *number = PyNumber_Index(value);
  if (!number)
    return nothing();
  const bool fits = fitInteger(argument, number, word);
  Py_DECREF(number);
  return fits;
}

bool realOf(PyObject *value, double *out) {
  if (PyFloat_CheckExact(value)) {
    *out = PyFloat_AS_DOUBLE(value);
    return true;
  }
  if (PyLong_CheckExact(value) || isNumpy(value, types.floating) || isNumpy(value, types.integer)) {
    *out = PyFloat_AsDouble(value);
    if (*out == -1 && PyErr_Occurred())
      return nothing();
    return !std::isinf(*out); // which a longdouble may not be: Python's to tell
  }
  return false;
}

// The float32 nearest to a number; false where it has none, which is an error unless the number has none
// either.
bool narrow(double number, float *out) {
  *out = static_cast<float>(number);
  return !std::isinf(*out) || std::isinf(number);
}

template <class T> int64_t bitsOf(T number) {
  int64_t word = 0;
  std::memcpy(&word, &number, sizeof number);
  return word;
}

bool halfBits(double number, int64_t *word) {
  unsigned char bytes[2];
#if PY_VERSION_HEX >= 0x030B0000
  const int failed = PyFloat_Pack2(number, reinterpret_cast<char *>(bytes), 1);
#else
  const int failed = _PyFloat_Pack2(number, bytes, 1);
#endif
  if (failed)
    return nothing();
  *word = bytes[0] | bytes[1] << 8;
  return true;
}

// As dtypes.py rounds: to the nearest, ties to even, NaNs quiet.
bool bfloatBits(double number, int64_t *word) {
  float single;
  if (std::isnan(number)) {
    *word = 0x7FC0;
    return true;
  }
  if (!narrow(number, &single))
    return false;
  uint64_t bits = static_cast<uint64_t>(bitsOf(single));
  if ((bits & 0xFFFF) == 0x8000) { // the middle of two, where the number itself may be beside it
    const double near = std::fabs(static_cast<double>(single)), own = std::fabs(number);
    bits += static_cast<uint64_t>(own > near) - static_cast<uint64_t>(own < near);
  }
  *word = static_cast<int64_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF);
  return std::isinf(number) || (*word & 0x7FFF) != 0x7F80;
}

bool fillReal(Kind kind, double number, int64_t *word) {
  float single;
  switch (kind) {
  case Kind::float64:
    *word = bitsOf(number);
    return true;
  case Kind::float32:
    if (!narrow(number, &single))
      return false;
    *word = bitsOf(single);
    return true;
  case Kind::float16:
    return halfBits(number, word);
  default:
    return bfloatBits(number, word);
  }
}

// complex64 fills one word, real part first, complex128 two.
bool fillComplex(const Argument &argument, PyObject *value, int64_t *words) {
  double real = 0, imaginary = 0;
  if (PyComplex_CheckExact(value)) {
    real = PyComplex_RealAsDouble(value);
    imaginary = PyComplex_ImagAsDouble(value);
  } else if (!realOf(value, &real)) {
    return false;
  }
  if (argument.size == 16) {
    words[0] = bitsOf(real);
    words[1] = bitsOf(imaginary);
    return true;
  }
  float parts[2];
  if (!narrow(real, &parts[0]) || !narrow(imaginary, &parts[1]))
    return false;
  std::memcpy(words, parts, sizeof parts);
  return true;
}

} // namespace

bool fillScalar(const Argument &argument, PyObject *value, int64_t *words) {
  double number;
  switch (argument.kind) {
  case Kind::boolean:
    words[0] = value == Py_True;
    return PyBool_Check(value);
  case Kind::signedInt:
  case Kind::unsignedInt:
    return fillInteger(argument, value, words);
  case Kind::complex:
    return fillComplex(argument, value, words);
  default:
    return realOf(value, &number) && fillReal(argument.kind, number, words);
  }
}

} // namespace offload
