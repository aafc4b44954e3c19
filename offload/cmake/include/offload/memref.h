// Arrays as compiled functions take them, and their errors as exceptions: what the headers that offload makes
// include.
#ifndef OFFLOAD_MEMREF_H
#define OFFLOAD_MEMREF_H

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include "mgpu.h"

namespace offload {

/// A view of memory that somebody else owns: MLIR's descriptor of a memref. Strides count elements.
template <typename T, int Rank> struct Memref {
  static_assert(Rank > 0, "an array has a dimension; Memref<T, 0> is a single element");
  T *allocated;
  T *aligned;
  std::int64_t offset = 0;
  std::array<std::int64_t, Rank> sizes;
  std::array<std::int64_t, Rank> strides;

  /// A dense row-major array, in memory that the device in use can reach.
  Memref(T *data, const std::array<std::int64_t, Rank> &shape)
      : allocated(data), aligned(data), sizes(shape) {
    std::int64_t stride = 1;
    for (std::size_t axis = Rank; axis-- > 0; stride *= shape[axis])
      strides[axis] = stride;
  }
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

/// The runtime inside the library that `function` lies in: devices, memory, streams. Each library has its
/// own, so a plain call of offload_api would find that of the library linked first. Throws Error; lives as
/// long as the process.
inline const mgpuApi &runtime_of(const void *function) {
  Dl_info library{};
  if (dladdr(function, &library) != 0) {
    if (void *handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      using Entry = const mgpuApi *(*)(std::uint32_t);
      auto entry = reinterpret_cast<Entry>(dlsym(handle, "offload_api"));
      dlclose(handle); // it stays loaded: offload's libraries are never unloaded
      if (const mgpuApi *api = entry ? entry(MGPU_ABI_VERSION) : nullptr)
        return *api;
    }
  }
  throw Error("this library has no runtime of offload that speaks this header's ABI; build both again", -1);
}

/// True; throws Error where `function` is not that of `library` ("libkernels.so"), but of another one that
/// has a function of the same name: of two, the linker takes the first.
inline bool check_library(const void *function, const char *name, const char *library) {
  Dl_info found{};
  if (dladdr(function, &found) == 0)
    return true;
  std::string path = found.dli_fname, file = path.substr(path.rfind('/') + 1);
  // An executable may stand for the functions that it calls.
  bool other =
      file.rfind("lib", 0) == 0 && file.find(".so") != std::string::npos && file.rfind(library, 0) != 0;
  if (other)
    throw Error("the function " + std::string(name) + " of " + library + " is that of " + path +
                    " in this program: both have one of this name; rename one of them in its source",
                -1);
  return true;
}

/// Throws the calling thread's kept error, if there is one, and clears it.
inline void check(const mgpuApi &api) {
  if (int code = api.mgpuGetLastError())
    throw Error(api.mgpuGetLastErrorMessage(), code);
}

} // namespace offload

#endif
