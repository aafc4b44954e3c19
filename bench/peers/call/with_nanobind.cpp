// with_nanobind.cpp: functions of nanobind that take arrays of float32 and do nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using Array = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

NB_MODULE(with_nanobind, m) {
  m.def("f0", []() {});
  m.def("f1", [](Array) {});
  m.def("f3", [](Array, Array, Array) {});
  m.def("f8", [](Array, Array, Array, Array, Array, Array, Array, Array) {});
}
