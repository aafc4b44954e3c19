// Arrays as compiled functions take them, and their errors as exceptions: what the headers that offload makes
// include.
#ifndef OFFLOAD_MEMREF_H
#define OFFLOAD_MEMREF_H

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

#include "mgpu.h"

namespace offload {

/// A view of memory that somebody else owns: MLIR's descriptor of a memref. Strides count elements.
template <typename T, int Rank> struct Memref {
  static_assert(Rank > 0, "an array has a dimension; Memref<T, 0> is a single element");
  T *allocated;
  T *aligned;
  std::int64_t offset = 0;
  std::array<std::int64_t, std::size_t{Rank}> sizes;
  std::array<std::int64_t, std::size_t{Rank}> strides;

  /// A dense row-major array, in memory that the device in use can reach.
  Memref(T *data, const std::array<std::int64_t, std::size_t{Rank}> &shape)
      : allocated(data), aligned(data), sizes(shape) {
    std::int64_t stride = 1;
    for (std::size_t axis = Rank; axis-- > 0; stride *= shape[axis])
      strides[axis] = stride;
  }

  /// Any other layout: how many elements each dimension's neighbours are apart. `data` is the element with
  /// index 0 in all of them.
  Memref(T *data, const std::array<std::int64_t, std::size_t{Rank}> &shape,
         const std::array<std::int64_t, std::size_t{Rank}> &steps)
      : allocated(data), aligned(data), sizes(shape), strides(steps) {}
};

template <typename T> struct Memref<T, 0> {
  T *allocated;
  T *aligned;
  std::int64_t offset = 0;
  explicit Memref(T *data) : allocated(data), aligned(data) {}
};

/// What a device, its driver or a kernel failed with; `code` is one of mgpu.h's MGPU_ERROR_* numbers.
class Error : public std::runtime_error {
public:
  Error(const std::string &message, int number) : std::runtime_error(message), code(number) {}
  int code;
};

/// The runtime inside a library: devices, memory, streams. Each library has its own. Throws Error where it
/// does not speak this header's ABI; lives as long as the process.
inline const mgpuApi &checked(const mgpuApi *api) {
  if (!api)
    throw Error("this library has no runtime of offload that speaks this header's ABI; build both again", -1);
  return *api;
}

/// Throws the calling thread's kept error, if there is one, and clears it.
inline void check(const mgpuApi &api) {
  if (int code = api.mgpuGetLastError())
    throw Error(api.mgpuGetLastErrorMessage(), code);
}

/// Throws where a dimension of an array is not `wanted` long, for the reason `as`; `what` says whose it is.
template <typename T, int Rank>
void check_size(const Memref<T, Rank> &array, std::size_t axis, std::int64_t wanted, const char *as,
                const char *what) {
  if (array.sizes[axis] == wanted)
    return;
  std::string wrong = std::to_string(wanted) + as + (", it is " + std::to_string(array.sizes[axis]));
  throw Error(what + ("; dimension " + std::to_string(axis)) + " has to be " + wrong, MGPU_ERROR_INVALID);
}

/// Throws where an array has another size than `wanted`, in which -1 stands for any; `what` says whose it is.
template <typename T, int Rank>
void check_sizes(const Memref<T, Rank> &array, std::initializer_list<std::int64_t> wanted, const char *what) {
  std::size_t axis = 0;
  for (std::int64_t size : wanted) {
    if (size >= 0)
      check_size(array, axis, size, "", what);
    ++axis;
  }
}

/// In the strides that check_strides takes: each will do.
constexpr std::int64_t any = std::numeric_limits<std::int64_t>::min();

/// Throws where an array's elements lie otherwise than the function's code takes them to; `what` says whose
/// it is.
template <typename T, int Rank>
void check_strides(const Memref<T, Rank> &array, const decltype(Memref<T, Rank>::strides) &wanted,
                   const char *what) {
  for (std::int64_t size : array.sizes)
    if (size == 0)
      return;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    std::int64_t stride = wanted[axis], given = array.strides[axis];
    if (array.sizes[axis] != 1 && stride != any && given != stride) {
      std::string wrong = std::to_string(stride) + ", it is " + std::to_string(given);
      throw Error(what + ("; the stride of dimension " + std::to_string(axis)) + " has to be " + wrong,
                  MGPU_ERROR_INVALID);
    }
  }
}

/// The same for one whose rows lie one behind the other.
template <typename T, int Rank> void check_row_major(const Memref<T, Rank> &array, const char *what) {
  check_strides(array, Memref<T, Rank>(nullptr, array.sizes).strides, what);
}

/// Gives an array the offset that the function's code takes it to have; its elements stay where they are.
template <typename T, int Rank> void set_offset(Memref<T, Rank> &array, std::int64_t offset) {
  array.aligned += array.offset - offset;
  array.offset = offset;
}

} // namespace offload

#endif
