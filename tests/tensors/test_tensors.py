"""Programs on tensors: functions take and return arrays by value, for the CPU and on emulated devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, command, emit_text, on_host
from emulator.driver import shared

import offload

VALUES = """
#id = affine_map<(i) -> (i)>
func.func @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
func.func @slice(%x: tensor<8xf32>, %i: index) -> tensor<4xf32> {
  %s = tensor.extract_slice %x[%i][4][1] : tensor<8xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func @into(%x: tensor<8xf32>, %to: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.exp ins(%x : tensor<8xf32>) outs(%to : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @either(%x: tensor<8xf32>, %y: tensor<8xf32>, %which: i1) -> tensor<8xf32> {
  %r = scf.if %which -> tensor<8xf32> {
    scf.yield %x : tensor<8xf32>
  } else {
    %e = math.exp %y : tensor<8xf32>
    scf.yield %e : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func @selected(%x: tensor<8xf32>, %y: tensor<8xf32>, %which: i1) -> tensor<8xf32> {
  %s = arith.select %which, %x, %y : tensor<8xf32>
  %r = arith.negf %s : tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @exchanged(%x: tensor<8xf32>, %y: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    %d = arith.addf %a, %a : tensor<8xf32>
    scf.yield %b, %d : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}
func.func @powers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = affine.for %i = 0 to 3 iter_args(%v = %x) -> tensor<8xf32> {
    %p = arith.mulf %v, %v : tensor<8xf32>
    affine.yield %p : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func @until(%x: tensor<?xf32>, %limit: f32) -> (tensor<?xf32>, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%v = %x, %k = %zero) : (tensor<?xf32>, i32) -> (tensor<?xf32>, i32) {
    %none = arith.constant dense<0.0> : tensor<f32>
    %s = linalg.reduce { arith.addf } ins(%v : tensor<?xf32>) outs(%none : tensor<f32>) dimensions = [0]
    %sum = tensor.extract %s[] : tensor<f32>
    %more = arith.cmpf olt, %sum, %limit : f32
    scf.condition(%more) %v, %k : tensor<?xf32>, i32
  } do {
  ^bb0(%v: tensor<?xf32>, %k: i32):
    %w = arith.addf %v, %v : tensor<?xf32>
    %k1 = arith.addi %k, %one : i32
    scf.yield %w, %k1 : tensor<?xf32>, i32
  }
  return %r#0, %r#1 : tensor<?xf32>, i32
}
func.func private @twice(%x: tensor<8xf32>) -> tensor<8xf32> {
  %r = arith.addf %x, %x : tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @calls(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = call @twice(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %b = call @twice(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
func.func @set(%x: tensor<?xf32>, %v: f32, %i: index) -> tensor<?xf32> {
  %r = tensor.insert %v into %x[%i] : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @constant(%which: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %r = scf.if %which -> tensor<4xf32> {
    scf.yield %k : tensor<4xf32>
  } else {
    %p = arith.mulf %x, %k : tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @framed(%x: tensor<?x4xf32>) -> tensor<?x6xf32> {
  %z = arith.constant 7.0 : f32
  %p = tensor.pad %x low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<?x4xf32> to tensor<?x6xf32>
  return %p : tensor<?x6xf32>
}
func.func @joined(%x: tensor<2x4xf32>, %y: tensor<1x4xf32>) -> tensor<12xf32> {
  %j = tensor.concat dim(0) %x, %y : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %r = tensor.collapse_shape %j [[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
  return %r : tensor<12xf32>
}
func.func @rows(%x: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> tensor<6x8xf32> {
    %s = tensor.extract_slice %x[%i, 0][1, 8][1, 1] : tensor<6x8xf32> to tensor<1x8xf32>
    %d = tensor.extract_slice %o[%i, 0][1, 8][1, 1] : tensor<6x8xf32> to tensor<1x8xf32>
    %v = linalg.abs ins(%s : tensor<1x8xf32>) outs(%d : tensor<1x8xf32>) -> tensor<1x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %v into %o[%i, 0][1, 8][1, 1] : tensor<1x8xf32> into tensor<6x8xf32>
    }
  }
  return %r : tensor<6x8xf32>
}
func.func @shares(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %e = tensor.empty() : tensor<3x8xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<3x8xf32>) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}
func.func @factorial(%x: tensor<8xf32>, %n: i32) -> tensor<8xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %last = arith.cmpi eq, %n, %zero : i32
  %r = scf.if %last -> tensor<8xf32> {
    scf.yield %x : tensor<8xf32>
  } else {
    %m = arith.subi %n, %one : i32
    %q = func.call @factorial(%x, %m) : (tensor<8xf32>, i32) -> tensor<8xf32>
    %f = arith.sitofp %n : i32 to f32
    %e = tensor.empty() : tensor<8xf32>
    %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%q : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %p = arith.mulf %a, %f : f32
      linalg.yield %p : f32
    } -> tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
func.func @in_place(%x: memref<8xf32>) {
  %t = bufferization.to_tensor %x restrict : memref<8xf32> to tensor<8xf32>
  %y = arith.mulf %t, %t : tensor<8xf32>
  bufferization.materialize_in_destination %y in restrict writable %x : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}
"""

_random = np.random.default_rng(7)
X, Y = (_random.uniform(-2, 2, 8).astype(np.float32) for _ in range(2))
A = _random.uniform(-2, 2, (6, 8)).astype(np.float32)
X[0] = 2
E = np.exp(A[:3] - A[:3].max(1, keepdims=True))

CASES: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("same", (X,), (X,)),
    ("slice", (X, 3), (X[3:7],)),
    ("into", (X, Y), (np.exp(X),)),
    ("either", (X, Y, True), (X,)),
    ("either", (X, Y, False), (np.exp(Y),)),
    ("selected", (X, Y, False), (-Y,)),
    ("exchanged", (X, Y, 3), (2 * Y, 4 * X)),
    ("exchanged", (X, Y, 0), (X, Y)),
    ("powers", (X,), (X**8,)),
    ("until", (np.abs(X), 100.0), (np.abs(X) * 16, 4)),
    ("calls", (X,), (2 * X, 4 * X)),
    ("set", (X, 9.0, 2), (np.where(np.arange(8) == 2, np.float32(9), X),)),
    ("constant", (True, X[:4].copy()), (np.arange(1, 5),)),
    ("constant", (False, X[:4].copy()), (X[:4] * np.arange(1, 5),)),
    ("framed", (A[:, :4].copy(),), (np.pad(A[:, :4], 1, constant_values=7),)),
    ("joined", (A[:2, :4].copy(), A[2:3, :4].copy()), (A[:3, :4].ravel(),)),
    ("rows", (A,), (np.abs(A),)),
    ("shares", (A[:3].copy(),), (E / E.sum(1, keepdims=True),)),
    ("factorial", (X, 4), (24 * X,)),
]


def plain(value: Any) -> Any:
    """Arrays are all of one kind, whatever made them."""
    assert not isinstance(value, np.ndarray)
    return value.numpy() if isinstance(value, offload.runtime.DeviceArray) else value


def check(call: Callable[..., Any], arguments: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    """The results are right, and what was passed is as it was."""
    passed = tuple(value.copy() if isinstance(value, np.ndarray) else value for value in arguments)
    results = call(*passed)
    results = results if isinstance(results, tuple) else (results,)
    for got, wanted in zip(map(plain, results), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    for after, before in zip(passed, arguments, strict=True):
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_functions_are_of_values(case: tuple[str, tuple[Any, ...], tuple[Any, ...]]) -> None:
    name, arguments, expected = case
    check(getattr(on_host(VALUES), name), arguments, expected)


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_on_devices(chip: str) -> None:
    library = offload.compile(VALUES, targets=[f"rocdl:{chip}"])
    library.auto_stage = True
    with shared().chip(chip):
        library.use("hip")
        for name, arguments, expected in CASES:
            check(getattr(library, name), arguments, expected)
    shared().check()


def test_arguments_may_be_a_device_s() -> None:
    library = offload.compile(VALUES, targets=["rocdl:gfx942"])
    with shared().chip("gfx942"):
        library.use("hip")
        for name, arguments, expected in CASES:
            function = getattr(library, name)
            there = [
                library.device.array(value) if isinstance(value, np.ndarray) and argument.space != "host" else value
                for value, argument in zip(arguments, function.signature.args, strict=True)
            ]
            results = function(*there)
            results = results if isinstance(results, tuple) else (results,)
            for got, wanted in zip(map(plain, results), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    shared().check()


def test_what_is_only_copied_is_not_copied_by_the_cpu() -> None:
    """Callers may pass arrays of a device's."""
    for program in (
        "func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {\n"
        "  memref.copy %x, %y : memref<8xf32> to memref<8xf32>\n  return\n}\n",
        "func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {\n"
        "  %r = tensor.extract_slice %x[2][4][1] : tensor<8xf32> to tensor<4xf32>\n  return %r : tensor<4xf32>\n}\n",
    ):
        text = emit_text(program, "host-llvm")
        assert "@mgpuMemcpy" in text
        assert "llvm.memcpy" not in text and "memrefCopy" not in text


def test_a_result_is_memory_of_its_own() -> None:
    x = X.copy()
    result = on_host(VALUES).same(x)
    x[:] = 0
    np.testing.assert_array_equal(plain(result), X)


def test_memrefs_and_tensors_in_one_program() -> None:
    x = X.copy()
    on_host(VALUES).in_place(x)
    np.testing.assert_allclose(x, X * X, rtol=1e-6)


def test_a_layer() -> None:
    library = on_host(PROGRAMS / "tensors.mlir")
    for m, k, n in [(37, 50, 41), (1, 1, 1), (0, 3, 2), (3, 0, 2)]:
        x, w = _random.standard_normal((m, k), np.float32), _random.standard_normal((k, n), np.float32)
        bias = _random.standard_normal(n, np.float32)
        check(library.layer, (x, w, bias), (np.maximum(x @ w + bias, 0),))


def test_for_each_target() -> None:
    offload.compile(VALUES, targets=ALL_TARGETS)


def test_memory_does_not_grow() -> None:
    library = on_host(VALUES)

    def resident() -> int:
        for i in range(3000):
            library.exchanged(X, Y, 3), library.either(X, Y, bool(i % 2)), library.until(X + 2, 50.0)
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    resident()
    assert min(resident() - resident() for _ in range(3)) < 1 << 20


CHAIN = """
#all = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %to: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %a = math.exp %x : tensor<?x?xf32>
  %b = arith.addf %a, %x : tensor<?x?xf32>
  %c = math.tanh %b : tensor<?x?xf32>
  %r = linalg.matmul ins(%c, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%to : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


def test_a_chain_is_one_kernel_and_not_computed_again_in_a_product() -> None:
    text = emit_text(CHAIN, "kernels")
    # The product of large matrices is a kernel of its own, for each of two sizes of tiles.
    assert text.count("gpu.launch_func") == 4 and text.count("math.exp") == 1
    assert all("math." not in kernel for kernel in text.split("gpu.func")[2:])


PRINTED = """
func.func private @printMemrefF32(%x: tensor<*xf32>)
func.func @main() {
  %x = arith.constant dense<[[1.0, 4.0], [9.0, 16.0]]> : tensor<2x2xf32>
  %r = math.sqrt %x : tensor<2x2xf32>
  %any = tensor.cast %r : tensor<2x2xf32> to tensor<*xf32>
  call @printMemrefF32(%any) : (tensor<*xf32>) -> ()
  return
}
"""


def test_a_program_prints_a_tensor_as_those_of_upstream_do(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PRINTED)
    done = command("run", "program.mlir", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sizes = [2, 2] strides = [2, 1] data = \n[[1,   2], \n [3,   4]]" in done.stdout
