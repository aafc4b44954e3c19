"""Host memory that kernels use in place: registered, and asked for by the address that the device knows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, emit_text, on_host
from emulator.running import running_on

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


FILLED = """
func.func @at_once(%n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.5 : f32
  %x = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%one : f32) outs(%x : memref<?xf32>)
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  gpu.host_unregister %any : memref<*xf32>
  linalg.mul ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  %r = memref.load %x[%c0] : memref<?xf32>
  memref.dealloc %x : memref<?xf32>
  return %r : f32
}
func.func private @fill(%x: memref<?xf32>, %value: f32) {
  linalg.fill ins(%value : f32) outs(%x : memref<?xf32>)
  return
}
func.func @in_a_function(%n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 2.5 : f32
  %whole = memref.alloc(%n) : memref<?xf32>
  %less = arith.subi %n, %c1 : index
  call @fill(%whole, %one) : (memref<?xf32>, f32) -> ()
  %half = memref.subview %whole[0] [%less] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  scf.for %i = %c0 to %c2 step %c1 {
    func.call @fill(%whole, %one) : (memref<?xf32>, f32) -> ()
  }
  linalg.add ins(%half, %half : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>>)
      outs(%half : memref<?xf32, strided<[1]>>)
  %any = memref.cast %whole : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  %r = memref.load %whole[%c0] : memref<?xf32>
  gpu.host_unregister %any : memref<*xf32>
  memref.dealloc %whole : memref<?xf32>
  return %r : f32
}
"""


@pytest.mark.parametrize("chip", ["gfx942", "sm_80"])
def test_what_fills_registered_memory_runs_while_it_is_registered(chip: str) -> None:
    """As a kernel it would not find memory of the CPU before, nor afterwards."""
    with running_on(chip, FILLED) as library:
        assert library.at_once(100) == 9
        assert library.in_a_function(10) == 5
    assert on_host(FILLED).at_once(100) == 9


HELPED = """
func.func private @squared(%x: memref<?xf32>) {
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  linalg.mul ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  gpu.host_unregister %any : memref<*xf32>
  return
}
func.func @f(%x: memref<?xf32>) {
  call @squared(%x) : (memref<?xf32>) -> ()
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  gpu.host_unregister %any : memref<*xf32>
  call @squared(%x) : (memref<?xf32>) -> ()
  return
}
"""


def test_functions_that_register_what_they_get_get_it_unregistered() -> None:
    host = emit_text(HELPED, "kernels").partition("func.func @f(")[2]
    steps = re.findall(r"gpu\.host_\w+|call @squared", host)
    assert steps == ["call @squared", "gpu.host_register", "gpu.host_unregister", "call @squared"]
    x = np.array([1, 2, 3], np.float32)
    on_host(HELPED).f(x)
    np.testing.assert_array_equal(x, [4, 64, 324])


TWICE = """
func.func @f(%n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %x = memref.alloc(%n) : memref<?xf32>
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  linalg.fill ins(%one : f32) outs(%x : memref<?xf32>)
  gpu.host_unregister %any : memref<*xf32>
  memref.store %one, %x[%c0] : memref<?xf32>
  gpu.host_register %any : memref<*xf32>
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  gpu.host_unregister %any : memref<*xf32>
  %r = memref.load %x[%c0] : memref<?xf32>
  memref.dealloc %x : memref<?xf32>
  return %r : f32
}
"""


def test_registrations_in_their_places_stay_there() -> None:
    steps = re.findall(r"gpu\.host_\w+|gpu\.launch_func|memref\.store", emit_text(TWICE, "kernels"))
    once = ["gpu.host_register", "gpu.launch_func", "gpu.host_unregister"]
    assert steps[:7] == [*once, "memref.store", *once]
    with running_on("gfx942", TWICE) as library:
        assert library.f(9) == 2


def test_memory_to_be_registered_is_the_callers() -> None:
    """The function wanted an array of the device, whose address no driver registers."""
    library = on_host(PROGRAM.format(suffix="Float", type="f32", add="addf"))
    (argument,) = library.signatures["f"].args
    assert argument.space == "host"


SHARED = """
func.func @twice(%x: memref<?xf32>) {
  linalg.add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%x : memref<?xf32>)
  return
}
func.func @f(%x: memref<?xf32>) {
  %any = memref.cast %x : memref<?xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  call @twice(%x) : (memref<?xf32>) -> ()
  gpu.host_unregister %any : memref<*xf32>
  return
}
func.func @g(%x: memref<?xf32>) {
  call @twice(%x) : (memref<?xf32>) -> ()
  return
}
func.func @h(%x: memref<?xf32>) {
  call @f(%x) : (memref<?xf32>) -> ()
  return
}
"""


def test_what_one_caller_registers_others_have_on_the_device() -> None:
    signatures = on_host(SHARED).signatures
    spaces = {name: signatures[name].args[0].space for name in ("twice", "f", "g", "h")}
    assert spaces == {"twice": "device", "f": "host", "g": "device", "h": "host"}
    with running_on("sm_90", SHARED) as library:
        x = np.array([1, 2, 3], np.float32)
        library.g(x)
        library.f(x)
        np.testing.assert_array_equal(x, [4, 8, 12])
