// function.cpp: plans of host functions: descriptors on the stack, registers, the call, its result.
#include "caller.h"
#include "invoke.h"

#include <cstring>
#include <stdexcept>

namespace offload {
namespace {

bool inFloatRegister(Kind kind) {
  return kind == Kind::float64 || kind == Kind::float32 || kind == Kind::float16 || kind == Kind::bfloat16 ||
         kind == Kind::complex;
}

template <class T> T fromBits(int64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

PyObject *halfResult(int64_t bits) {
  const unsigned char bytes[2] = {static_cast<unsigned char>(bits), static_cast<unsigned char>(bits >> 8)};
#if PY_VERSION_HEX >= 0x030B0000
  return PyFloat_FromDouble(PyFloat_Unpack2(reinterpret_cast<const char *>(bytes), 1));
#else
  return PyFloat_FromDouble(_PyFloat_Unpack2(bytes, 1));
#endif
}

PyObject *integerResult(const Argument &result, int64_t bits) {
  const unsigned unused = 64 - 8 * result.size;
  const uint64_t high = static_cast<uint64_t>(bits) << unused;
  if (result.kind == Kind::signedInt)
    return PyLong_FromLongLong(static_cast<int64_t>(high) >> unused);
  return PyLong_FromUnsignedLongLong(high >> unused);
}

PyObject *toPython(const Argument &result, int64_t bits) {
  switch (result.kind) {
  case Kind::boolean:
    return PyBool_FromLong(bits & 1); // no other bit of an i1 means anything
  case Kind::float64:
    return PyFloat_FromDouble(fromBits<double>(bits));
  case Kind::float32:
    return PyFloat_FromDouble(static_cast<double>(fromBits<float>(bits)));
  case Kind::float16:
    return halfResult(bits);
  case Kind::bfloat16:
    return PyFloat_FromDouble(static_cast<double>(fromBits<float>((bits & 0xFFFF) << 16)));
  default:
    return integerResult(result, bits);
  }
}

class FunctionPlan final : public Plan {
public:
  FunctionPlan(const Runtime &runtime, uintptr_t function, std::vector<Argument> given,
               const Argument *result, bool brief, bool onAnyDevice, std::vector<EqualWords> equal)
      : Plan(runtime, std::move(given)), function(reinterpret_cast<void *>(function)), returns(result),
        brief(brief), device(onAnyDevice ? anyDevice : itsDevice), equal(std::move(equal)) {
    if (result)
      this->result = *result;
    size_t integers = 0, floats = 0;
    for (const Argument &argument : arguments)
      (inFloatRegister(argument.kind) ? floats : integers) += argument.kind == Kind::complex ? 2 : 1;
    if (integers > maxIntegers || floats > maxFloats || layout.words > maxWords)
      throw std::invalid_argument("so many arguments go through ctypes");
    if (result && (result->kind == Kind::memref || result->kind == Kind::complex))
      throw std::invalid_argument("results in memory go through ctypes");
    passed = integersPassed(integers);
    floatsPassed = floats != 0;
    invoke = invokeFor(integers, floats, result && inFloatRegister(result->kind));
  }

  bool call(PyObject *, PyObject *const *args, PyObject **out, int32_t *code) const override {
    int64_t words[maxWords];
    Kept kept;
    Producers producers;
    // What a brief one fails in, nobody would be told.
    if (!fill(args, kept, words, device, {}, brief || device == anyDevice ? nullptr : &producers) ||
        !areEqual(words) || !mayWait(producers, {}))
      return false;
    Registers registers;
    place(words, registers);
    int64_t returned = 0;
    if (brief) {
      invoke(function, registers, &returned);
    } else {
      PyThreadState *state = PyEval_SaveThread();
      for (size_t i = 0; i < producers.count; ++i)
        runtime.synchronize(producers.streams[i]);
      invoke(function, registers, &returned);
      *code = runtime.lastError();
      PyEval_RestoreThread(state);
    }
    if (*code == 0) {
      if (returns)
        *out = toPython(result, returned);
      else {
        Py_INCREF(Py_None);
        *out = Py_None;
      }
    }
    return true;
  }

private:
  bool areEqual(const int64_t *words) const {
    for (const EqualWords &each : equal) {
      const int64_t wanted = each.number == dynamic ? words[each.places[0]] : each.number;
      for (const size_t place : each.places)
        if (words[place] != wanted)
          return false;
    }
    return true;
  }

  // Those without an argument are passed as well, and zero.
  void place(const int64_t *words, Registers &registers) const {
    size_t integers = 0, floats = 0;
    for (const Argument &argument : arguments) {
      if (argument.kind == Kind::memref) {
        registers.integers[integers++] = reinterpret_cast<int64_t>(words);
      } else if (!inFloatRegister(argument.kind)) {
        registers.integers[integers++] = words[0];
      } else if (argument.kind != Kind::complex) {
        registers.floats[floats++] = words[0];
      } else { // a register for each part
        const bool wide = argument.size == 16;
        registers.floats[floats++] = wide ? words[0] : words[0] & 0xFFFFFFFF;
        registers.floats[floats++] = wide ? words[1] : words[0] >> 32;
      }
      words += argument.words();
    }
    for (; integers < passed; ++integers)
      registers.integers[integers] = 0;
    for (; floatsPassed && floats < maxFloats; ++floats)
      registers.floats[floats] = 0;
  }

  void *const function;
  const bool returns, brief;
  const int32_t device;
  const std::vector<EqualWords> equal;
  Argument result{};
  Invoke invoke;
  size_t passed;
  bool floatsPassed;
};

} // namespace

std::unique_ptr<Plan> planFunction(const Runtime &runtime, uintptr_t function,
                                   std::vector<Argument> arguments, const Argument *result, bool brief,
                                   bool onAnyDevice, std::vector<EqualWords> equal) {
  return std::make_unique<FunctionPlan>(runtime, function, std::move(arguments), result, brief, onAnyDevice,
                                        std::move(equal));
}

} // namespace offload
