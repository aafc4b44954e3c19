// exchange.cpp: arrays of other packages on a GPU, for launches: through the C functions that DLPack 1.3 lets
// a Python type have, else through its methods, which take longer than the launch where they are Python's.
// interchange.py does the same, and says why not.
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
  PyObject *const name = protocol.functions;
  PyObject *found = PyObject_GetAttr(reinterpret_cast<PyObject *>(type), name);
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

// A backend's memory; null for none.
const Memory *memoryOf(const char *backend) {
  for (const Memory &memory : types.memories)
    if (memory.backend == backend)
      return &memory;
  return nullptr;
}

// torch exports none that does; these functions do not ask. True too for an interrupt.
bool needsGradient(PyObject *value) {
  PyObject *answer = PyObject_GetAttr(value, protocol.requiresGradient);
  if (!answer) {
    forgetError();
    return PyErr_Occurred();
  }
  Py_DECREF(answer);
  return answer == Py_True;
}

bool addStream(Producers &producers, const void *asked, void *stream) {
  if (producers.count == producers.streams.size())
    return false;
  producers.asked = asked;
  producers.streams[producers.count++] = stream;
  return true;
}

// Remembers the stream that the package's work is on.
bool comesFrom(const Functions *functions, int32_t deviceType, int32_t device, Producers &producers) {
  if (producers.count && producers.asked == functions)
    return true;
  void *stream = nullptr;
  if (functions->currentStream(deviceType, device, &stream) != 0) {
    forgetError();
    return false;
  }
  return addStream(producers, functions, stream ? stream : defaultStream);
}

// The capsule of an array, behind whose package's work the stream is then that the launch is on where others
// know it, or else the driver's default one; null, without an error, where there is none.
PyObject *exported(PyObject *value, const Memory &memory, void *consumer) {
  PyObject *stream = consumer ? PyLong_FromVoidPtr(consumer) : PyLong_FromLong(memory.defaultStream);
  PyObject *given[] = {value, protocol.version, stream};
  PyObject *capsule =
      stream ? PyObject_VectorcallMethod(protocol.dlpack, given, 1, protocol.byVersionAndStream) : nullptr;
  Py_XDECREF(stream);
  if (!capsule)
    forgetError();
  return capsule;
}

// Through the methods: 0.5 µs or so where they are written in C, as CuPy's are.
bool fillFromMethods(const Argument &argument, PyObject *value, const Place &place, Kept &kept,
                     int64_t *words) {
  const Memory *memory = memoryOf(place.backend);
  PyObject *capsule = memory && !kept.full() ? exported(value, *memory, place.consumer) : nullptr;
  if (!capsule)
    return false;
  kept.keep(capsule);
  const Tensor *tensor = tensorOf(capsule, !argument.readOnly);
  Producers &producers = *place.producers;
  const void *asked = types.memories.data(); // nobody's functions
  return tensor && tensor->deviceType == memory->type && tensor->deviceId == place.device &&
         fillFromTensor(argument, *tensor, words) &&
         (place.consumer || (producers.count && producers.asked == asked) ||
          addStream(producers, asked, defaultStream));
}

} // namespace

bool fillFromExchange(const Argument &argument, PyObject *value, const Place &place, Kept &kept,
                      int64_t *words) {
  if (argument.dlpackCode < 0 || argument.dlpackCode == complexCode || isNegated(value))
    return false;
  const Functions *functions = functionsOf(Py_TYPE(value));
  if (!functions)
    return fillFromMethods(argument, value, place, kept, words);
  if (needsGradient(value))
    return false;
  Versioned *managed = nullptr;
  if (functions->fromObject(value, &managed) != 0 || !managed) {
    forgetError();
    return false;
  }
  const Tensor &tensor = managed->tensor;
  const Memory *memory = memoryOf(place.backend);
  const bool fits = memory && managed->major == 1 && !(managed->flags & copiedFlag) &&
                    (argument.readOnly || mayWrite(managed->flags)) && tensor.deviceType == memory->type &&
                    tensor.deviceId == place.device && fillFromTensor(argument, tensor, words);
  if (managed->deleter)
    managed->deleter(managed); // the array itself, which the call has, keeps the memory
  return fits && comesFrom(functions, memory->type, place.device, *place.producers);
}

} // namespace offload
