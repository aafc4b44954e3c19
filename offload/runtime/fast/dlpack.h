// dlpack.h: DLPack 1.1's structures, and what both ways of getting at them do (dmlc.github.io/dlpack).
#pragma once

#include "plan.h"

namespace offload {

struct Tensor {
  void *data;
  int32_t deviceType, deviceId, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides; // in elements; no strides: row-major
  uint64_t byteOffset;
};

struct Versioned { // an unversioned one is its tensor, as far as it is read
  uint32_t major, minor;
  void *context;
  void (*deleter)(Versioned *);
  uint64_t flags;
  Tensor tensor;
};

// What other packages' objects are asked with, made with the module. In the midst of a call, what Python
// collects while it makes them may let another thread go on, and that would wait for them, with Python's
// lock.
struct Protocol {
  PyObject *dlpack, *isNegated, *functions, *requiresGradient; // names
  PyObject *byVersion, *byVersionAndStream;                    // names of arguments
  PyObject *version;                                           // that is asked for
};
extern Protocol protocol;

constexpr uint64_t readOnlyFlag = 1, copiedFlag = 2;

// Whether a tensor with these flags is that of an array itself, which may be written to.
inline bool mayWrite(uint64_t flags) { return !(flags & (readOnlyFlag | copiedFlag)); }
// The tensor that a capsule holds, which may be written to where `writes`; null for others.
const Tensor *tensorOf(PyObject *capsule, bool writes);
// Whether torch would export it with wrong signs; see interchange.py. True too where an interrupt comes in
// between, which is then set.
bool isNegated(PyObject *value);
// What an object's own code raises, Python finds again and tells. An interrupt (Ctrl-C) comes once: it stays
// set, and is raised.
inline void forgetError() {
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
    PyErr_Clear();
}
// Writes the descriptor of a tensor, wherever it is. False where it does not fit.
bool fillFromTensor(const Argument &argument, const Tensor &tensor, int64_t *words);

} // namespace offload
