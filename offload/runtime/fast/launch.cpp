// launch.cpp: plans of kernels: the parameters of a launch on the stack.
#include "caller.h"

#include <stdexcept>

namespace offload {
namespace {

class LaunchPlan final : public Plan {
public:
  LaunchPlan(const Runtime &runtime, uintptr_t slot, std::vector<Argument> given,
             const std::array<intptr_t, 6> &sizes, const std::array<intptr_t, 3> &cluster, int32_t shared,
             bool barePointers)
      : Plan(runtime, std::move(given)), slot(reinterpret_cast<mgpuKernelSlot *>(slot)), sizes(sizes),
        cluster(cluster), shared(shared) {
    if (layout.words > maxWords)
      throw std::invalid_argument("so many arguments go through ctypes");
    size_t position = 0;
    for (const Argument &argument : arguments) {
      if (argument.kind != Kind::memref)
        parameters.push_back(position);
      else if (barePointers)
        parameters.push_back(position + 1); // the aligned pointer
      else
        for (size_t word = 0; word < argument.words(); ++word)
          parameters.push_back(position + word);
      position += argument.words();
    }
  }

  bool call(PyObject *const *args, PyObject **result, int32_t *code) const override {
    int64_t words[maxWords];
    void *pointers[maxWords + 1];
    Kept kept;
    if (!fill(args, kept, words, true))
      return false;
    for (size_t i = 0; i < parameters.size(); ++i)
      pointers[i] = words + parameters[i];
    PyThreadState *state = PyEval_SaveThread();
    runtime.launch(slot, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], cluster[0], cluster[1],
                   cluster[2], shared, nullptr, pointers, parameters.size(), 1);
    *code = runtime.lastError();
    PyEval_RestoreThread(state);
    Py_INCREF(Py_None);
    *result = Py_None;
    return true;
  }

private:
  mgpuKernelSlot *const slot;
  const std::array<intptr_t, 6> sizes;
  const std::array<intptr_t, 3> cluster;
  const int32_t shared;
  std::vector<size_t> parameters; // which word each points to
};

} // namespace

std::unique_ptr<Plan> planLaunch(const Runtime &runtime, uintptr_t slot, std::vector<Argument> arguments,
                                 const std::array<intptr_t, 6> &sizes, const std::array<intptr_t, 3> &cluster,
                                 int32_t shared, bool barePointers) {
  return std::make_unique<LaunchPlan>(runtime, slot, std::move(arguments), sizes, cluster, shared,
                                      barePointers);
}

} // namespace offload
