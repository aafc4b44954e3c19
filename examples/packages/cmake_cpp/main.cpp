// Calls a kernel's function on memory that the CPU and the device in use share, and checks what it wrote.
#include <cstdio>
#include <exception>

#include "vector_kernels.h"

namespace {

constexpr std::int64_t count = 100000;

// Memory of the device in use that the CPU can use, too.
class SharedArray {
public:
  SharedArray() : data(static_cast<float *>(api.mgpuMemAlloc(count * sizeof(float), nullptr, true))) {
    offload::check(api);
  }
  ~SharedArray() { api.mgpuMemFree(data, nullptr); }
  SharedArray(const SharedArray &) = delete;
  SharedArray &operator=(const SharedArray &) = delete;
  offload::Memref<float, 1> view() { return {data, {count}}; }
  float &operator[](std::int64_t i) { return data[i]; }

private:
  const mgpuApi &api = vector_kernels::runtime();
  float *data;
};

int run() {
  SharedArray x, y;
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1;
  }
  vector_kernels::saxpy(2, x.view(), y.view());
  for (std::int64_t i = 0; i < count; ++i)
    if (y[i] != 2 * static_cast<float>(i) + 1) {
      std::printf("y[%lld] is %g\n", static_cast<long long>(i), static_cast<double>(y[i]));
      return 1;
    }
  std::printf("right, on %s\n", vector_kernels::runtime().mgpuBackendName());
  return 0;
}

} // namespace

int main() {
  try {
    return run();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
