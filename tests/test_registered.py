"""Host memory that kernels use in place: registered, and asked for by the address that the device knows."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host

PROGRAM = """
func.func private @mgpuMemGetDeviceMemRef1d{suffix}(memref<?x{type}>) -> memref<?x{type}>
func.func private @twice(%x: memref<?x{type}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x{type}>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
    %v = memref.load %x[%bx] : memref<?x{type}>
    %r = arith.{add} %v, %v : {type}
    memref.store %r, %x[%bx] : memref<?x{type}>
    gpu.terminator
  }}
  return
}}
func.func @f(%x: memref<?x{type}>) {{
  %any = memref.cast %x : memref<?x{type}> to memref<*x{type}>
  gpu.host_register %any : memref<*x{type}>
  %there = call @mgpuMemGetDeviceMemRef1d{suffix}(%x) : (memref<?x{type}>) -> memref<?x{type}>
  call @twice(%there) : (memref<?x{type}>) -> ()
  gpu.host_unregister %any : memref<*x{type}>
  return
}}
"""


@pytest.mark.parametrize(("suffix", "kind", "add"), [("Float", "f32", "addf"), ("Int32", "i32", "addi")])
def test_registered_memory_as_the_device_knows_it(suffix: str, kind: str, add: str) -> None:
    source = PROGRAM.format(suffix=suffix, type=kind, add=add)
    x = np.arange(7, dtype=np.float32 if kind == "f32" else np.int32)
    on_host(source).f(x)
    np.testing.assert_array_equal(x, 2 * np.arange(7))
    assert len(emit(source, "object", ALL_TARGETS)) == 3


def test_device_memory_is_not_copied_unasked() -> None:
    library = on_host(PROGRAM.format(suffix="Float", type="f32", add="addf"))
    array = library.device.array(np.arange(4, dtype=np.float32))
    with pytest.raises(TypeError, match=r"call \.numpy\(\)"):
        np.asarray(array)
    np.testing.assert_array_equal(array.numpy(), np.arange(4))
