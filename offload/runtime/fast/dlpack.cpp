// dlpack.cpp: memref descriptors from arrays of other packages in the CPU's memory, seen through DLPack 1.1
// (dmlc.github.io/dlpack). interchange.py does the same for all memory, and says why not.
#include "dlpack.h"

namespace offload {
namespace {

struct Managed {
  Tensor tensor;
  void *context;
  void (*deleter)(Managed *);
};

constexpr int32_t cpu = 1;

PyObject *exported; // what consumers still use, by address: export.py's

// Whether there can be an array of this shape at `start`.
bool isSound(const Argument &argument, const Tensor &tensor, uintptr_t start) {
  if ((argument.rank && !tensor.shape) || start < tensor.byteOffset)
    return false;
  bool empty = false;
  int64_t bytes = argument.size;
  for (size_t i = 0; i < argument.rank; ++i) {
    if (tensor.shape[i] < 0)
      return false;
    empty = empty || tensor.shape[i] == 0;
    if (!empty && __builtin_mul_overflow(bytes, tensor.shape[i], &bytes))
      return false;
  }
  return empty || tensor.data;
}

// Ends what a capsule holds; one that was consumed has another name.
template <typename Kind> void release(PyObject *capsule, const char *name) {
  if (!PyCapsule_IsValid(capsule, name))
    return;
  auto *managed = static_cast<Kind *>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

} // namespace

Protocol protocol;

bool nameProtocol() {
  protocol.dlpack = PyUnicode_InternFromString("__dlpack__");
  protocol.isNegated = PyUnicode_InternFromString("is_neg");
  protocol.functions = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  protocol.requiresGradient = PyUnicode_InternFromString("requires_grad");
  protocol.byVersion = Py_BuildValue("(s)", "max_version");
  protocol.byVersionAndStream = Py_BuildValue("(ss)", "max_version", "stream");
  protocol.version = Py_BuildValue("(ii)", 1, 1);
  return protocol.dlpack && protocol.isNegated && protocol.functions && protocol.requiresGradient &&
         protocol.byVersion && protocol.byVersionAndStream && protocol.version;
}

const Tensor *tensorOf(PyObject *capsule, bool writes) {
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return static_cast<const Tensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
    return nullptr;
  const auto *managed = static_cast<const Versioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  return managed->major == 1 && (!writes || mayWrite(managed->flags)) ? &managed->tensor : nullptr;
}

bool isNegated(PyObject *value) {
  PyObject *answer = PyObject_CallMethodNoArgs(value, protocol.isNegated);
  if (!answer) {
    forgetError();
    return PyErr_Occurred();
  }
  Py_DECREF(answer);
  return answer == Py_True;
}

bool fillFromTensor(const Argument &argument, const Tensor &tensor, int64_t *words) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byteOffset;
  if (tensor.lanes != 1 || tensor.code != argument.dlpackCode || tensor.bits != 8 * argument.size ||
      tensor.ndim != argument.rank || start % argument.alignment)
    return false;
  if (!isSound(argument, tensor, start) || !takesShape(argument, tensor.shape))
    return false;
  words[0] = words[1] = static_cast<int64_t>(start) - argument.offset * argument.size;
  words[2] = argument.offset;
  for (size_t i = 0; i < argument.rank; ++i)
    words[3 + i] = tensor.shape[i];
  return takesStrides(argument, tensor.shape, tensor.strides, 1, words + 3 + argument.rank);
}

void keepExported(PyObject *dict) { exported = Py_NewRef(dict); }

void releaseExported(void *managed) {
  if (!Py_IsInitialized()) // the process ends, and the memory with it
    return;
  const PyGILState_STATE state = PyGILState_Ensure();
  {
    // A consumer may let go in the midst of an error, as `numpy.from_dlpack(x)[100]` does.
    const pybind11::error_scope kept;
    PyObject *address = PyLong_FromVoidPtr(managed);
    if (!address || PyDict_DelItem(exported, address) < 0)
      PyErr_Clear();
    Py_XDECREF(address);
  }
  PyGILState_Release(state);
}

void releaseUnused(PyObject *capsule) {
  // A consumer that refuses the tensor lets go of the capsule while its error is set.
  const pybind11::error_scope kept;
  release<Managed>(capsule, "dltensor");
  release<Versioned>(capsule, "dltensor_versioned");
}

bool fillFromDlpack(const Argument &argument, PyObject *value, Kept &kept, int64_t *words) {
  if (argument.dlpackCode < 0 || kept.full() || isNegated(value))
    return false;
  PyObject *given[] = {value, protocol.version};
  PyObject *capsule = PyObject_VectorcallMethod(protocol.dlpack, given, 1, protocol.byVersion);
  if (!capsule) {
    forgetError();
    return false;
  }
  kept.keep(capsule);
  const Tensor *tensor = tensorOf(capsule, !argument.readOnly);
  return tensor && tensor->deviceType == cpu && fillFromTensor(argument, *tensor, words);
}

} // namespace offload
