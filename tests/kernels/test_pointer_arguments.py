"""Arguments of type !llvm.ptr, of kernels and functions that came lowered: arrays and addresses are taken alike."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiling import emit_text, on_host
from emulator.driver import shared
from emulator.on_device import compiled

import offload
from offload.artifact.meta import Argument
from offload.errors import ArtifactError, SignatureError
from offload.runtime.stubs import library_stub

# y[i] += a * x[i * step]: the step is an argument, as in kernels that are given strides.
TEXT = """
gpu.module @m {
  llvm.func @axpy(%a: f32, %x: !llvm.ptr, %step: i64, %y: !llvm.ptr) attributes {gpu.kernel} {
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i64
    %at = llvm.mul %i, %step : i64
    %px = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %xi = llvm.load %px : !llvm.ptr -> f32
    %yi = llvm.load %py : !llvm.ptr -> f32
    %ax = llvm.fmul %a, %xi : f32
    %r = llvm.fadd %ax, %yi : f32
    llvm.store %r, %py : f32, !llvm.ptr
    llvm.return
  }
}
llvm.func @first(%p: !llvm.ptr) -> f32 {
  %v = llvm.load %p : !llvm.ptr -> f32
  llvm.return %v : f32
}
llvm.func @is_null(%p: !llvm.ptr) -> i1 {
  %null = llvm.mlir.zero : !llvm.ptr
  %r = llvm.icmp "eq" %p, %null : !llvm.ptr
  llvm.return %r : i1
}
"""
N = 8


@pytest.fixture(scope="module")
def library() -> Any:
    return on_host(TEXT)


@pytest.fixture
def on_gpu() -> Iterator[Any]:
    with shared().chip("gfx942"):
        library = compiled(TEXT, "gfx942")
        library.use("hip")
        yield library
        library.auto_stage = False
    shared().check()


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(N, dtype=np.float32), np.ones(N, np.float32)


def test_a_kernel_takes_arrays_and_addresses(library: Any) -> None:
    x, y = arrays()
    axpy = library.kernels.axpy[1, N]
    for _ in range(3):  # the later calls go another way
        axpy(2.0, x, 1, y)
        axpy(2.0, x.ctypes.data, 1, y.ctypes.data)
        axpy(2.0, memoryview(x), 1, np.uint64(y.ctypes.data))
    np.testing.assert_array_equal(y, 18 * x + 1)


def test_strides_are_the_callers(library: Any) -> None:
    x, y = np.arange(3 * N, dtype=np.float32), np.zeros(N, np.float32)
    library.kernels.axpy[1, N](1.0, x[::3], 3, y)
    np.testing.assert_array_equal(y, x[::3])


def test_a_function_takes_them_too(library: Any) -> None:
    assert library.first(np.array([2.5, 1], np.float32)) == 2.5
    assert [library.is_null(0), library.is_null(np.zeros(1))] == [True, False]


def test_arrays_on_a_device(on_gpu: Any) -> None:
    x, y = arrays()
    there, out = on_gpu.device.array(x), on_gpu.device.array(y)
    for _ in range(3):
        on_gpu.kernels.axpy[1, N](1.0, there, 1, out)
        on_gpu.kernels.axpy[1, N](1.0, there.pointer, 1, out.pointer)
    np.testing.assert_array_equal(out.numpy(), 6 * x + 1)
    with on_gpu.stream() as stream:
        on_gpu.kernels.axpy[1, N, stream](1.0, there, 1, out).wait()
    np.testing.assert_array_equal(out.numpy(), 7 * x + 1)


def test_arrays_are_staged(on_gpu: Any) -> None:
    x, y = arrays()
    axpy = on_gpu.kernels.axpy[1, N]
    with pytest.raises(SignatureError, match=r"argument 'x'.*: expected pointer, given float32\[8\] in host memory"):
        axpy(2.0, x, 1, y)
    axpy(2.0, offload.stage(x, back=False), 1, offload.stage(y))
    np.testing.assert_array_equal(y, 2 * x + 1)
    on_gpu.auto_stage = True
    axpy(2.0, x, 1, y)
    np.testing.assert_array_equal(y, 4 * x + 1)
    with pytest.raises(SignatureError, match=r"that is not contiguous .*; its copy on the device would be"):
        axpy(2.0, np.zeros(3 * N, np.float32)[::3], 3, y)


def test_a_captured_launch(on_gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is packed another way; the emulated device has no graphs, and runs it."""
    there, out = (on_gpu.device.array(array) for array in arrays())
    monkeypatch.setattr(on_gpu.kernels.axpy._native.api, "mgpuStreamCapturing", lambda stream: 1)
    with on_gpu.stream() as stream:
        on_gpu.kernels.axpy[1, N, stream](1.0, there, 1, out.pointer)
        monkeypatch.undo()
        stream.synchronize()
    np.testing.assert_array_equal(out.numpy(), np.arange(N) + 1)


ADDRESSES = """
func.func @host(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i64
  %xi = memref.extract_aligned_pointer_as_index %x : memref<?xf32> -> index
  %yi = memref.extract_aligned_pointer_as_index %y : memref<?xf32> -> index
  %xn = arith.index_cast %xi : index to i64
  %yn = arith.index_cast %yi : index to i64
  %xp = llvm.inttoptr %xn : i64 to !llvm.ptr
  %yp = llvm.inttoptr %yn : i64 to !llvm.ptr
  gpu.launch_func @m::@axpy blocks in (%c1, %c1, %c1) threads in (%c8, %c1, %c1)
    args(%a : f32, %xp : !llvm.ptr, %one : i64, %yp : !llvm.ptr)
  return
}
"""


@pytest.mark.parametrize("target", ["host", "rocdl:gfx942"])
def test_arrays_whose_addresses_host_code_passes(target: str) -> None:
    """They are the device's, which staging has to know."""
    text = f"module attributes {{gpu.container_module}} {{ {TEXT.split('llvm.func @first')[0]} {ADDRESSES} }}"
    library, (x, y) = offload.compile(text, targets=[target]), arrays()
    assert [argument.space for argument in library.metadata.functions[0].args] == ["any", "device", "device"]
    with shared().chip("gfx942"):
        library.use("host" if target == "host" else "hip")
        library.auto_stage = True
        library.host(2.0, x, y)
    shared().check()
    np.testing.assert_array_equal(y, 2 * x + 1)


READ_ONLY = np.ones(N, np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "given None; pass an array or an address, or 0 for none"),
        (1.5, "given a float; pass an array"),
        (True, "given True; pass an array or an address, or 0"),
        (-1, "given -1, which does not fit"),
        (READ_ONLY, r"given a read-only float32\[8\]"),
        ("x", "given a str; pass an array"),
    ],
)
def test_what_is_no_address(library: Any, given: Any, said: str) -> None:
    y = np.zeros(N, np.float32)
    for callee, args in ((library.kernels.axpy[1, N], (1.0, given, 1, y)), (library.first, (given,))):
        with pytest.raises(SignatureError, match=f"expected pointer, {said}"):
            callee(*args)


def test_pointers_of_ctypes_are_addresses(library: Any) -> None:
    x = np.arange(2.5, 2.5 + N, dtype=np.float32)
    address = x.ctypes.data
    floats = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
    number, text = ctypes.c_float(2.5), ctypes.cast(address, ctypes.c_char_p)
    for given in (ctypes.c_void_p(address), floats, ctypes.pointer(number), ctypes.byref(number), text):
        assert library.first(given) == 2.5
    y = np.zeros(N, np.float32)
    library.kernels.axpy[1, N](2.0, floats, 1, ctypes.c_void_p(y.ctypes.data))
    np.testing.assert_array_equal(y, 2 * x)


def test_callbacks() -> None:
    program = """
    func.func @sum(%f: !llvm.ptr, %n: i64) -> i64 {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> i64 : i64 {
        %v = llvm.call %f(%i) : !llvm.ptr, (i64) -> i64
        %next = arith.addi %sum, %v : i64
        scf.yield %next : i64
      }
      return %r : i64
    }
    """
    square = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda i: i * i)
    assert on_host(program).sum(square, 10) == 285


def test_it_is_said(library: Any) -> None:
    assert str(inspect.signature(library.kernels.axpy)) == (
        "(a: 'float32', x: 'pointer', step: 'int64', y: 'pointer') -> 'None'"
    )
    assert "a: Float, x: Pointer, step: Int, y: Pointer" in library_stub("library", library.metadata)
    flags = [argument.to_json().get("pointer") for argument in library.metadata.kernels[0].args]
    assert flags == [None, True, None, True]


def test_metadata_that_contradicts_itself() -> None:
    value = Argument("x", "scalar", "uint64", pointer=True).to_json()
    assert Argument.from_json(value).pointer
    with pytest.raises(ArtifactError, match=r"a pointer is a scalar of uint64, not a scalar of int32"):
        Argument.from_json({**value, "dtype": "int32"})


def test_descriptors_are_no_pointers() -> None:
    text = "func.func @f(%x: memref<?xf32>) { return }"
    assert '"pointer"' not in emit_text(text, "input") and not on_host(text).metadata.functions[0].args[0].pointer
