// with_pybind11.cpp: functions of pybind11 that take arrays of float32 and do nothing.
#include <pybind11/numpy.h>

namespace py = pybind11;
using Array = py::array_t<float, py::array::c_style>;

PYBIND11_MODULE(with_pybind11, m) {
  m.def("f0", []() {});
  m.def("f1", [](const Array &) {});
  m.def("f3", [](const Array &, const Array &, const Array &) {});
  m.def("f8", [](const Array &, const Array &, const Array &, const Array &, const Array &, const Array &,
                 const Array &, const Array &) {});
}
