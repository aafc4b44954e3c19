// invoke.cpp: one C++ function type per number of arguments, chosen once per plan.
#include "invoke.h"

#include <cstring>
#include <type_traits>
#include <utility>

#if !(defined(__x86_64__) || defined(__aarch64__)) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "calls on this machine go through ctypes: configure with -DOFFLOAD_FAST_CALLS=OFF"
#endif

namespace offload {
namespace {

template <size_t> using Integer = int64_t;
template <size_t> using Float = double;

double floatOf(int64_t bits) {
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

template <class Result, size_t... I, size_t... F>
void callWith(void *function, const Registers &registers, int64_t *returned, std::index_sequence<I...>,
              std::index_sequence<F...>) {
  const auto typed = reinterpret_cast<Result (*)(Integer<I>..., Float<F>...)>(function);
  const Result result = typed(registers.integers[I]..., floatOf(registers.floats[F])...);
  std::memcpy(returned, &result, sizeof result);
}

template <class Result, size_t integers, size_t floats>
void call(void *function, const Registers &registers, int64_t *returned) {
  callWith<Result>(function, registers, returned, std::make_index_sequence<integers>{},
                   std::make_index_sequence<floats>{});
}

template <size_t integers> Invoke withIntegers(size_t floats, bool returnsFloat) {
  if (floats)
    return returnsFloat ? call<double, integers, maxFloats> : call<int64_t, integers, maxFloats>;
  return returnsFloat ? call<double, integers, 0> : call<int64_t, integers, 0>;
}

} // namespace

Invoke invokeFor(size_t integers, size_t floats, bool returnsFloat) {
  switch (integersPassed(integers)) {
  case 6: // what the one machine has registers for
    return withIntegers<6>(floats, returnsFloat);
  case 8: // the other
    return withIntegers<8>(floats, returnsFloat);
  default:
    return withIntegers<maxIntegers>(floats, returnsFloat);
  }
}

} // namespace offload
