// invoke.h: calling a C function whose parameters are known only when the program runs.
//
// On the machines that this is built for, integers and pointers go to registers of one kind and floats to
// those of another, each in order, and integers without a register to the stack in words of 8 bytes (System V
// AMD64 ABI 3.2.3; AAPCS64 6.8.2 on Linux). A call with more arguments than the callee has is then the call
// that it expects, as long as the floats have registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offload {

constexpr size_t maxIntegers = 16, maxFloats = 8;

struct Registers {
  int64_t integers[maxIntegers];
  int64_t floats[maxFloats]; // bits
};

// Calls `function` and puts what it returned, as bits, into *returned.
using Invoke = void (*)(void *function, const Registers &registers, int64_t *returned);

// How many integers are passed to a function that has so many: a few forms of the call serve all.
constexpr size_t integersPassed(size_t integers) {
  return integers <= 6 ? 6 : integers <= 8 ? 8 : maxIntegers;
}

// The way of calling functions with so many arguments. At most maxIntegers and maxFloats.
Invoke invokeFor(size_t integers, size_t floats, bool returnsFloat);

} // namespace offload
