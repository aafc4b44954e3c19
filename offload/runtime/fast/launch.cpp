// launch.cpp: plans of kernels: the parameters of a launch on the stack.
#include "caller.h"

#include <stdexcept>

namespace offload {
namespace {

class LaunchPlan final : public Plan {
public:
  LaunchPlan(const Runtime &runtime, uintptr_t slot, std::vector<Argument> given, const How &how)
      : Plan(runtime, std::move(given)), slot(reinterpret_cast<mgpuKernelSlot *>(slot)), how(how) {
    if (layout.words > maxWords)
      throw std::invalid_argument("so many arguments go through ctypes");
    size_t position = 0;
    for (const Argument &argument : arguments) {
      if (argument.kind != Kind::memref)
        parameters.push_back(position);
      else if (how.barePointers)
        parameters.push_back(position + 1); // the aligned pointer
      else
        for (size_t word = 0; word < argument.words(); ++word)
          parameters.push_back(position + word);
      position += argument.words();
    }
  }

  bool goesOn() const override { return how.goesOn; }

  bool call(PyObject *self, PyObject *const *args, PyObject **result, int32_t *code) const override {
    int64_t words[maxWords];
    void *pointers[maxWords + 1];
    Kept kept;
    Work work;
    if (how.goesOn) {
      PyObject *stream = streamOf(self);
      if (!stream || !workOn(stream, runtime, work) || runtime.capturing(work.stream))
        return false;
    }
    Producers producers;
    if (!fill(args, kept, words, itsDevice, work, &producers) || !follow(producers, work))
      return false;
    for (size_t i = 0; i < parameters.size(); ++i)
      pointers[i] = words + parameters[i];
    const auto &sizes = how.sizes;
    PyThreadState *state = PyEval_SaveThread();
    runtime.launch(slot, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], how.cluster[0],
                   how.cluster[1], how.cluster[2], how.shared, work.stream, pointers, parameters.size(),
                   !how.goesOn);
    *code = runtime.lastError();
    PyEval_RestoreThread(state);
    if (*code == 0)
      *result = how.goesOn ? tupleOf(args, kept) : Py_NewRef(Py_None);
    return true;
  }

private:
  // Lets the work begin behind what is on the streams; false as `call`. What fails is kept, and hinders it.
  bool follow(const Producers &producers, const Work &work) const {
    if (!mayWait(producers, work))
      return false;
    for (size_t i = 0; i < producers.count; ++i)
      if (producers.streams[i] != work.stream)
        runtime.waitStream(work.stream, producers.streams[i]);
    return true;
  }

  // What has to stay until the kernel has ended: the arguments, and capsules of their memory.
  PyObject *tupleOf(PyObject *const *args, Kept &kept) const {
    PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(count() + kept.size()));
    for (size_t i = 0; tuple && i < count(); ++i)
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
    for (size_t i = count(); tuple && !kept.empty(); ++i)
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), kept.release());
    return tuple;
  }

  mgpuKernelSlot *const slot;
  const How how;
  std::vector<size_t> parameters; // which word each points to
};

} // namespace

std::unique_ptr<Plan> planLaunch(const Runtime &runtime, uintptr_t slot, std::vector<Argument> arguments,
                                 const How &how) {
  return std::make_unique<LaunchPlan>(runtime, slot, std::move(arguments), how);
}

} // namespace offload
