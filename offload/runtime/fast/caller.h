// caller.h: a Python type whose objects are called without building a tuple, and what they do when called.
#pragma once

#include "plan.h"

#include "mgpu.h"

#include <memory>
#include <string>

namespace offload {

// What the runtime of a library is asked around each call.
struct Runtime {
  decltype(mgpuApi::mgpuGetLastError) lastError;
  decltype(mgpuApi::mgpuBackendName) backendName;
  decltype(mgpuApi::mgpuStreamDevice) streamDevice;
  decltype(mgpuApi::mgpuStreamDriver) streamDriver;
  decltype(mgpuApi::mgpuKernelLaunch) launch;
  decltype(mgpuApi::mgpuSetThreadStream) setStream;
  decltype(mgpuApi::mgpuStreamCapturing) capturing;
  decltype(mgpuApi::mgpuStreamWaitStream) waitStream;
  decltype(mgpuApi::mgpuStreamSynchronize) synchronize;
  decltype(mgpuApi::mgpuGetDefaultDevice) threadsDevice;
  decltype(mgpuApi::mgpuStreamMark) mark;
  decltype(mgpuApi::mgpuEventDestroy) destroyEvent;

  explicit Runtime(uintptr_t table);
  // Whether the backend in use has that name.
  bool uses(const char *backend) const;
};

// How arguments are named, and whether stream= is none of them but the stream of the call.
struct Names {
  std::vector<PyObject *> names; // owned by the plan: interned strings
  bool takesStream = false;
  PyObject *native = nullptr; // whose streams it takes; owned by what has the plan
};

// The most arguments that are put in order here where they come by name.
constexpr size_t maxNamed = 64;

// Of devices: any, and that which the call's work goes to.
constexpr int32_t anyDevice = -1, itsDevice = -2;

// Where a call's work goes: the thread's stream, or that of a launch which does not wait, with its token.
struct Work {
  void *stream = nullptr;
  PyObject *token = nullptr;
  bool foreign = false; // whether other packages know the stream
};

// Something that can be called with Python's values.
class Plan {
public:
  Plan(const Runtime &runtime, std::vector<Argument> arguments)
      : runtime(runtime), arguments(std::move(arguments)), layout(layoutOf(this->arguments)) {
    for (size_t i = this->arguments.size(); i > 0 && this->arguments[i - 1].optional; --i)
      --required;
  }
  virtual ~Plan();

  size_t count() const { return arguments.size(); }
  // Whether the work goes on while the call returns: then `call` gives a tuple of the arguments, and the
  // caller's method _launched makes the result of it.
  virtual bool goesOn() const { return false; }
  const Runtime &itsRuntime() const { return runtime; }
  void setNames(Names given) { names = std::move(given); }
  // Like `call`, for arguments some of which come by name or are left out.
  bool callByName(PyObject *self, PyObject *const *args, size_t given, PyObject *kwnames, PyObject **result,
                  int32_t *code) const;
  // False, with nothing done, where Python has to do it, or an interrupt is set as the error. Otherwise *code
  // is the runtime's error code, and *result the result where that is 0: a new reference, or null with an
  // error set. `self` is what is called.
  virtual bool call(PyObject *self, PyObject *const *args, PyObject **result, int32_t *code) const = 0;

protected:
  // Fills the words of all arguments, which hold as long as `kept`; false as above. Arrays that kernels use
  // have to be on `device`, which is that of `work`. With `producers`, which then has their streams, they may
  // be other packages'.
  bool fill(PyObject *const *args, Kept &kept, int64_t *words, int32_t device, const Work &work = {},
            Producers *producers = nullptr) const;
  // Whether the work may wait for what is on the streams here.
  bool mayWait(const Producers &producers, const Work &work) const;

  const Runtime runtime;
  const std::vector<Argument> arguments;
  const Layout layout;

private:
  // Which argument has that name; count() for none.
  size_t find(PyObject *name) const;

  size_t required = arguments.size(); // those after it may be left out
  Names names;
};

// Words of arguments that have to be the same, or a number (dynamic: there is none).
struct EqualWords {
  std::vector<size_t> places;
  int64_t number = dynamic;
};

// Calls `function`, which has MLIR's C interface. `result` describes the result as an argument; none: void.
// A `brief` one, which cannot fail or wait, is called with the interpreter's lock: giving it away takes
// longer. The arrays of one that is on `anyDevice` may be on any. Throws std::invalid_argument where ctypes
// has to do it.
std::unique_ptr<Plan> planFunction(const Runtime &runtime, uintptr_t function,
                                   std::vector<Argument> arguments, const Argument *result, bool brief,
                                   bool onAnyDevice, std::vector<EqualWords> equal);

// How a kernel is launched.
struct How {
  std::array<intptr_t, 6> sizes; // the grid's and the block's
  std::array<intptr_t, 3> cluster;
  int32_t shared;
  bool barePointers;
  bool goesOn; // on the stream of the Launch that is called
};

// The Stream of a Launch, borrowed; null where it has none.
PyObject *streamOf(PyObject *launch);
// Where work on a Stream goes: false where it is none of the backend in use, or a default one of another
// device or thread.
bool workOn(PyObject *stream, const Runtime &runtime, Work &work);

// Launches the kernel of a slot.
std::unique_ptr<Plan> planLaunch(const Runtime &runtime, uintptr_t slot, std::vector<Argument> arguments,
                                 const How &how);

// Once: what the next two call. False with an error set.
bool nameMethods();
// Before a launch that goes on: what `before_launch` of its stream does. False with an error set.
bool beforeLaunch(PyObject *launch, const Runtime &runtime);
// After it: what Launch._launched does. False, with no error set and nothing done, where Python has to do it;
// otherwise *pending is its result, a new reference, or null with an error set or the runtime's code in
// *code.
bool afterLaunch(PyObject *launch, PyObject *arguments, const Runtime &runtime, PyObject **pending,
                 int32_t *code);
// What offload/runtime/turns.py says of them: Python's lock is kept all the while.
pybind11::object opened(pybind11::object stream, pybind11::object mark);
bool replace(pybind11::handle holder, pybind11::handle name, pybind11::handle before, pybind11::handle after);
long long nextSerial();
long long threadNumber();
// Destroys an event where the object goes that has it: as Native.at_end, but for what that makes of a
// failure, which this returns as a tuple of the code and the message; or None.
pybind11::object endEvent(uintptr_t table, uintptr_t event);

// The type `Caller`: a new reference.
PyObject *makeCallerType();
// Gives a Caller its plan.
void arm(pybind11::handle caller, std::unique_ptr<Plan> plan);
// Gives a Caller the plan that another one has.
void share(pybind11::handle from, pybind11::handle to);
// Lets objects of a subclass be called as those of Caller are, which Python before 3.12 does not.
void inheritCall(pybind11::handle subclass);

} // namespace offload
