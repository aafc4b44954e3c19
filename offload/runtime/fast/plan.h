// plan.h: what is known of a function before it is called: how each argument is checked and where it goes.
//
// A plan takes the common case and nothing else: arrays of NumPy and of lib.device that fit exactly, and
// plain numbers. Whatever does not fit is left to the Python code of offload.runtime, which takes it or says
// why not; so both ways give the same results and the same errors.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace offload {

// What an object keeps in a slot of its class (__slots__); null where it was never set.
inline PyObject *slot(PyObject *object, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
}

// Marks a size or stride that the type leaves open.
constexpr int64_t dynamic = INT64_MIN;
constexpr size_t maxRank = 32;
// What a call's descriptors may take of the stack.
constexpr size_t maxWords = 512;

// A backend's memory, as DLPack has it: its device type, and how its driver's default stream is called there.
struct Memory {
  std::string backend;
  int32_t type;
  long defaultStream;
};

// The types that values are compared with; owned by the module for as long as the process lives.
struct Types {
  PyTypeObject *array = nullptr;       // numpy.ndarray
  PyTypeObject *scalar = nullptr;      // numpy.generic
  PyTypeObject *floating = nullptr;    // numpy.floating
  PyTypeObject *integer = nullptr;     // numpy.integer
  PyTypeObject *deviceArray = nullptr; // offload.runtime.DeviceArray
  // Where the slots of a DeviceArray, of what uses it, and of its memory lie.
  Py_ssize_t memory, owner, uses, usedUntil, pointer, dtype, shape, strides, backend, index;
  PyTypeObject *allocation = nullptr; // offload.runtime.memory.DeviceAllocation
  PyTypeObject *stream = nullptr;     // offload.runtime.Stream, and its slots
  Py_ssize_t handle, streamNative, streamBackend, streamOpen, streamLazy, streamLock, streamKept,
      streamProcess, streamToken, streamHere, streamThread, streamOwned;
  PyTypeObject *mark = nullptr; // offload.runtime.pending.Mark, and its slots
  Py_ssize_t token, done, launches, counted, event, number, serial, markHandle, markLock, markNative,
      markProcess, markStream;
  PyTypeObject *pending = nullptr; // offload.runtime.pending.Pending, and its slots
  Py_ssize_t pendingNative, pendingMark, pendingCounts, pendingKeep;
  PyTypeObject *launch = nullptr; // offload.runtime.launch.Launch, and its slot
  Py_ssize_t launchStream;
  long mostOpen = 0; // launches that one mark stands for
  std::vector<Memory> memories;
};
extern Types types;

enum class Kind : uint8_t {
  memref,
  boolean,
  signedInt,
  unsignedInt,
  float64,
  float32,
  float16,
  bfloat16,
  complex
};

struct Argument {
  Kind kind;
  uint8_t rank = 0;
  bool identity = true;  // row-major, without an offset
  bool onDevice = false; // device memory alone
  bool onHost = false;   // host memory alone
  bool optional = false; // None stands for an array with 0 for each dynamic size
  bool readOnly = false; // arrays that may not be written will do
  uint8_t size = 0;      // bytes of an element or a scalar
  uint8_t alignment = 1; // bytes
  int dlpackCode = -1;   // of the element type; -1: it has none
  int64_t offset = 0;    // elements
  int64_t low = 0;       // of integers
  uint64_t high = 0;
  std::array<PyObject *, 2> dtypes{}; // dtype objects that say the element type; NumPy keeps one of each
  std::vector<int64_t> shape, strides;

  size_t words() const {
    return kind == Kind::memref ? 3 + 2 * size_t(rank) : kind == Kind::complex && size == 16 ? 2 : 1;
  }
};

// Objects that have to live as long as a call: the capsules of arrays.
class Kept {
public:
  Kept() = default;
  Kept(const Kept &) = delete;
  Kept &operator=(const Kept &) = delete;
  ~Kept() {
    if (count == 0)
      return;
    PyObject *type, *value, *traceback; // letting go may run Python code, which must not see an error
    PyErr_Fetch(&type, &value, &traceback);
    while (count > 0)
      Py_DECREF(objects[--count]);
    PyErr_Restore(type, value, traceback);
  }

  bool empty() const { return count == 0; }
  bool full() const { return count == objects.size(); }
  // Takes the reference.
  void keep(PyObject *object) { objects[count++] = object; }
  size_t size() const { return count; }
  // Gives the last reference away.
  PyObject *release() { return objects[--count]; }

private:
  std::array<PyObject *, 32> objects;
  size_t count = 0;
};

// Whether the static sizes are these.
bool takesShape(const Argument &argument, const int64_t *shape);
// The strides, in elements, of an array; its `own` count parts of elements, of which an element has so many,
// and are null for a row-major one. False where the type promises others. As arguments.py says of sizes whose
// stride is never used.
bool takesStrides(const Argument &argument, const int64_t *shape, const int64_t *own, int64_t parts,
                  int64_t *strides);

// A driver's default stream, as the runtime calls it.
inline void *const defaultStream = reinterpret_cast<void *>(1);

// Whether every device has a stream of that handle, or every thread.
inline bool isDefault(void *stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

// The streams of other packages behind whose work a launch has to be.
struct Producers {
  std::array<void *, 4> streams;
  size_t count = 0;
  const void *asked = nullptr; // who has told of the last
};

// What a call runs on.
struct Place {
  const char *backend = nullptr;  // null where none can be used now
  int32_t device = -1;            // of arrays that kernels use; -1: any
  PyObject *token = nullptr;      // of the stream; arrays that only work on it uses need no waiting
  Producers *producers = nullptr; // of a launch on a GPU
  void *consumer = nullptr;       // another package's stream, where it is on that
};

// Writes the descriptor of an array, 3 + 2 * rank words. False where Python has to look at it; no error is
// set but an interrupt that came in between.
bool fillDescriptor(const Argument &argument, PyObject *value, const Place &place, Kept &kept,
                    int64_t *words);

// The same for an array of another package in the CPU's memory.
bool fillFromDlpack(const Argument &argument, PyObject *value, Kept &kept, int64_t *words);

// The same for one on a GPU, on the launch's device: through the C functions of its type, or its methods,
// whose capsule is kept.
bool fillFromExchange(const Argument &argument, PyObject *value, const Place &place, Kept &kept,
                      int64_t *words);

// Once: what objects of other packages are asked with. False with an error set.
bool nameProtocol();

// The destructor of the capsules that export.py makes, the deleter of what they hold, which takes that out of
// a dict by its address, and that dict.
void releaseUnused(PyObject *capsule);
void releaseExported(void *managed);
void keepExported(PyObject *dict);

// The bits of a number as a register or a kernel's parameter holds them, one word, of complex numbers two.
// False as above.
bool fillScalar(const Argument &argument, PyObject *value, int64_t *words);

// Reads the description that offload/runtime/plans.py makes of an argument.
Argument readArgument(pybind11::handle description);

// The words of all arguments, and whether any is an array.
struct Layout {
  size_t words = 0;
  bool arrays = false;
};
Layout layoutOf(const std::vector<Argument> &arguments);

} // namespace offload
