// The length is found on the CPU; a kernel divides by it, on whatever device is there.
#include <algorithm>
#include <cmath>
#include <memory>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "unitvec_kernels.h"

namespace py = pybind11;
using Vector = py::array_t<float, py::array::c_style | py::array::forcecast>;

namespace {

Vector normalized(const Vector &given) {
  const py::ssize_t count = given.size();
  const float *values = given.data();
  double squares = 0;
  for (py::ssize_t i = 0; i < count; ++i)
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  if (squares == 0)
    throw py::value_error("a vector of zeros has no direction");

  const mgpuApi &api = unitvec_kernels::runtime();
  auto release = [&api](float *data) { api.mgpuMemFree(data, nullptr); };
  const auto bytes = static_cast<std::uint64_t>(count) * sizeof(float);
  // Memory that the CPU and the device in use share.
  std::unique_ptr<float, decltype(release)> data(static_cast<float *>(api.mgpuMemAlloc(bytes, nullptr, true)),
                                                 release);
  offload::check(api);
  std::copy(values, values + count, data.get());
  unitvec_kernels::scale(static_cast<float>(1 / std::sqrt(squares)), {data.get(), {count}});
  return Vector(count, data.get());
}

} // namespace

PYBIND11_MODULE(_unitvec, module) {
  module.def("normalized", &normalized, py::arg("vector"), "The vector divided by its length, as float32.");
}
