// exchange.cpp: arrays of other packages on a GPU, for launches, through the C functions that DLPack 1.3 lets
// a Python type have: its methods in Python take longer than the launch. interchange.py does the same, and
// says why not.
#include "dlpack.h"

namespace offload {
namespace {

struct Functions { // DLPackExchangeAPI
  uint32_t major, minor;
  const Functions *previous;
  void *allocate;
  int (*fromObject)(void *object, Versioned **made);
  void *toObject, *view;
  int (*currentStream)(int32_t deviceType, int32_t device, void **stream);
};

constexpr int complexCode = 5; // torch's may be conjugated when they are read: Python asks

// What a type has itself: one that inherits it may be something else than memory.
const Functions *read(PyTypeObject *type) {
  static PyObject *const name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  PyObject *found = name ? PyObject_GetAttr(reinterpret_cast<PyObject *>(type), name) : nullptr;
  PyObject *inherited =
      found && type->tp_base ? PyObject_GetAttr(reinterpret_cast<PyObject *>(type->tp_base), name) : nullptr;
  PyErr_Clear();
  const Functions *functions = nullptr;
  if (found && found != inherited && PyCapsule_IsValid(found, "dlpack_exchange_api"))
    functions = static_cast<const Functions *>(PyCapsule_GetPointer(found, "dlpack_exchange_api"));
  while (functions && functions->major != 1)
    functions = functions->previous;
  Py_XDECREF(found);
  Py_XDECREF(inherited);
  return functions && functions->fromObject && functions->currentStream ? functions : nullptr;
}

// The functions live as long as the process, and so do the few types that have them.
const Functions *functionsOf(PyTypeObject *type) {
  static struct {
    PyTypeObject *type;
    const Functions *functions;
  } known[8];
  static size_t count = 0;
  for (size_t i = 0; i < count; ++i)
    if (known[i].type == type)
      return known[i].functions;
  const Functions *functions = read(type);
  if (functions && count < sizeof known / sizeof *known) {
    Py_INCREF(type);
    known[count++] = {type, functions};
  }
  return functions;
}

// The DLPack device type of a backend's memory; 0 for none.
int32_t memoryOf(const char *backend) {
  for (const auto &[name, type] : types.memories)
    if (name == backend)
      return type;
  return 0;
}

// torch exports none that does; these functions do not ask.
bool needsGradient(PyObject *value) {
  static PyObject *const name = PyUnicode_InternFromString("requires_grad");
  PyObject *answer = name ? PyObject_GetAttr(value, name) : nullptr;
  if (!answer)
    PyErr_Clear();
  Py_XDECREF(answer);
  return answer == Py_True;
}

// Remembers the stream that the package's work is on.
bool comesFrom(const Functions *functions, int32_t deviceType, int32_t device, Producers &producers) {
  if (producers.count && producers.asked == functions)
    return true;
  void *stream = nullptr;
  if (producers.count == producers.streams.size() ||
      functions->currentStream(deviceType, device, &stream) != 0) {
    PyErr_Clear();
    return false;
  }
  producers.asked = functions;
  producers.streams[producers.count++] = stream ? stream : defaultStream;
  return true;
}

} // namespace

bool fillFromExchange(const Argument &argument, PyObject *value, const Place &place, int64_t *words) {
  const Functions *functions =
      argument.dlpackCode < 0 || argument.dlpackCode == complexCode ? nullptr : functionsOf(Py_TYPE(value));
  if (!functions || isNegated(value) || needsGradient(value))
    return false;
  Versioned *managed = nullptr;
  if (functions->fromObject(value, &managed) != 0 || !managed) {
    PyErr_Clear();
    return false;
  }
  const Tensor &tensor = managed->tensor;
  const int32_t type = memoryOf(place.backend);
  const bool fits = managed->major == 1 && (argument.readOnly || !(managed->flags & readOnlyFlag)) &&
                    tensor.deviceType == type && tensor.deviceId == place.device &&
                    fillFromTensor(argument, tensor, words);
  if (managed->deleter)
    managed->deleter(managed); // the array itself, which the call has, keeps the memory
  return fits && comesFrom(functions, type, place.device, *place.producers);
}

} // namespace offload
