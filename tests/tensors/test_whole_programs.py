"""Programs as front ends for networks write them: TOSA, variables of ml_program."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, emit
from emulator.driver import shared
from emulator.on_device import emulated

import offload
from offload.errors import CompileError

TARGETS = ["host", "host,O=0", "sm_90", "sm_80,O=0", "gfx942", "gfx1100,O=0"]


def run(source: object, target: str, check: Callable[[Any], None]) -> None:
    """Compiles a program for the CPU or for an emulated chip, loads it anew and gives it to a check."""
    if target.startswith("host"):
        library = offload.compile(source, targets=[target])
        library.use("host")
        library.auto_stage = True
        return check(library)
    name, backend = emulated(target)
    with shared(backend).chip(target.split(",")[0]):
        library = offload.compile(source, targets=[name])
        library.use(backend)
        library.auto_stage = True
        check(library)
    return shared(backend).check()


@pytest.mark.parametrize("target", TARGETS)
def test_variables(target: str) -> None:
    def check(library: Any) -> None:
        seed, factor = 7, 6364136223846793005
        for _ in range(3):
            seed = (seed * factor + 2**63) % 2**64 - 2**63
            assert library.next().numpy() == seed
        old = np.ones(2, np.float32)
        for calls, new in enumerate((np.array([2, 4], np.float32), np.array([6, 8], np.float32)), 1):
            before, after = library.swap(new)
            np.testing.assert_array_equal(before.numpy(), old)
            np.testing.assert_array_equal(after.numpy(), new)
            product, count = library.scaled()
            np.testing.assert_array_equal(product.numpy(), new * np.array([3, 5], np.float32))
            assert count == calls
            old = new

    run(PROGRAMS / "program_globals.mlir", target, check)


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("@v : tensor<2xi64>", "a variable without a value of its own type is not defined here"),
        ("@v(#ml_program.extern : tensor<2xi64>) : tensor<2xi64>", "a variable without a value"),
        (
            "@v(dense<7> : tensor<2xi64>) : tensor<?xi64>",
            r"a variable of type 'tensor<\?xi64>' has no memory of its own",
        ),
    ],
)
def test_variables_that_are_no_memory(variable: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        emit(f"func.func @f() {{ return }}\nml_program.global private mutable {variable}", "kernels")
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize("target", TARGETS)
def test_shapes(target: str) -> None:
    def check(library: Any) -> None:
        x, y = (np.random.default_rng(seed).standard_normal((3, 5)).astype(np.float32) for seed in (0, 1))
        for part in (x, x[:1], x[:, :1].copy()):
            added, count = library.sum(part, y)
            np.testing.assert_array_equal(added.numpy(), part + y)
            assert count == 15
        np.testing.assert_array_equal(library.flat(y).numpy(), y.ravel() ** 2)
        with pytest.raises(offload.DeviceError, match="required broadcastable shapes"):
            library.sum(x[:2], y)

    run(PROGRAMS / "shapes.mlir", target, check)


@pytest.mark.parametrize("target", TARGETS)
def test_tosa(target: str) -> None:
    random = np.random.default_rng(1)
    x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 8, 8, 3), (4, 3, 3, 3), 4))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = [(i, j, padded[:, i : i + 8, j : j + 8]) for i in range(3) for j in range(3)]
    convolved = sum(np.einsum("nhwc,fc->nhwf", part, w[:, i, j]) for i, j, part in windows) + b
    e = np.exp(np.clip(convolved, 0, 6).mean((1, 2)))
    numbers, v = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 5), (2, 7, 4)))
    rows = random.integers(0, 7, (2, 3)).astype(np.int32)
    halves = np.clip(np.floor((numbers.astype(int) - 3) / 2 + 0.5) - 1, -128, 127)

    def check(library: Any) -> None:
        likely, best = library.classify(x, w, b)
        np.testing.assert_allclose(likely.numpy(), e / e.sum(), rtol=1e-4)
        assert best.numpy() == e.argmax()
        joined, chosen = library.bytes(numbers, rows, v)
        np.testing.assert_array_equal(joined.numpy(), np.concatenate([numbers, halves], 1))
        np.testing.assert_array_equal(chosen.numpy(), np.stack([v[k][rows[k]] for k in range(2)]))
        for times in (0, 3):
            np.testing.assert_array_equal(library.doubled(b, np.array(times, np.int32)).numpy(), b * 2**times)
        for calls in range(3):
            np.testing.assert_array_equal(
                library.added(np.array([1, 2], np.float32)).numpy(), [3 + calls, 3 + 2 * calls]
            )

    run(PROGRAMS / "tosa.mlir", target, check)


def test_for_each_target() -> None:
    for name in ("program_globals", "tosa"):
        assert emit(PROGRAMS / f"{name}.mlir", "so", ALL_TARGETS)


CUSTOM = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = tosa.custom %x {operator_name = "a", domain_name = "b", implementation_attrs = ""}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


def test_what_tosa_leaves_open_is_said_in_its_place() -> None:
    with pytest.raises(CompileError, match=r"'tosa.custom' has no lowering here; use operations that have") as caught:
        emit(CUSTOM, "kernels")
    assert caught.value.diagnostics[0].line == 2


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("%r = math.exp %x : tensor<*xf32>", (3, 6), r"tensors of unknown rank have no elements .*tensor\.cast"),
        ("%r = torch.aten.tanh %x : tensor<*xf32>", (3, 6), "MLIR 22 has no dialect 'torch'; lower it"),
        ("func.call @g() : () -> !torch.vtensor<[4],f32>", (3, 31), "unknown type: MLIR 22 has no dialect 'torch'"),
        ("%r = tensor.empty() {a = #iree.b<1>} : tensor<4xf32>", (3, 32), "unknown attribute: .* no dialect 'iree'"),
    ],
)
def test_what_other_front_ends_have(text: str, place: tuple[int, int], message: str) -> None:
    source = f"func.func private @g()\nfunc.func @f(%x: tensor<*xf32>) {{\n{text}\nreturn\n}}\n"
    with pytest.raises(CompileError, match=message) as caught:
        emit(source, "kernels")
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == place


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("addf", r"unknown operation 'addf': .* is in 'arith' in MLIR 22$"),
        ("sum", r"unknown operation 'sum': the name of an operation begins with that of its dialect$"),
        ("stablehlo.add", r"unknown operation 'stablehlo\.add': .* stablehlo-opt"),
        ("iree.add", r"unknown operation 'iree\.add': MLIR 22 has no dialect 'iree'; lower it to one that it has"),
    ],
)
def test_names_of_what_a_reduction_does(name: str, message: str) -> None:
    source = f"""func.func @f(%x: memref<?x?xf32>, %y: memref<?xf32>) {{
  linalg.reduce {{{name}}} ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) dimensions = [0]
  return
}}"""
    with pytest.raises(CompileError) as caught:
        emit(source, "kernels")
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == (2, 3)
    assert re.match(message, found.message)


def test_quantized_types_are_refused_with_what_lowers_them() -> None:
    kind = "tensor<4x!quant.uniform<i8:f32, 0.1>>"
    with pytest.raises(CompileError, match=r"quant.uniform<.*not lowered here.*mlir-opt --lower-quant-ops") as caught:
        emit(f"\nfunc.func @f(%x: {kind}) -> {kind} {{\n  return %x : {kind}\n}}", "kernels")
    assert caught.value.diagnostics[0].line == 2


CONVOLUTION = """
func.func @f(%x: tensor<?x6x5x2xf32>, %w: tensor<4x3x3x2xf32>, %b: tensor<4xf32>) -> tensor<?x4x3x4xf32> {
  %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %y = tosa.conv2d %x, %w, %b, %z, %z {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 1, 1>} : (tensor<?x6x5x2xf32>, tensor<4x3x3x2xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>)
    -> tensor<?x4x3x4xf32>
  return %y : tensor<?x4x3x4xf32>
}
"""


@pytest.mark.parametrize("target", ["host", "gfx942", "sm_80"])
def test_weights_of_convolutions_lie_as_threads_read_them(target: str) -> None:
    """Output channels side by side, where TOSA has them furthest apart."""
    (kernels,) = emit(CONVOLUTION, "kernels")
    assert "memref<3x3x2x4xf32>" in kernels.data.decode()
    x, w = (
        np.random.default_rng(3).standard_normal(shape).astype(np.float32) for shape in ((2, 6, 5, 2), (4, 3, 3, 2))
    )
    bias = np.arange(4, dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))

    def check(library: Any) -> None:
        want = np.einsum("nhwcij,fijc->nhwf", windows, w) + bias
        np.testing.assert_allclose(library.f(x, w, bias).numpy(), want, rtol=1e-5, atol=1e-5)

    run(CONVOLUTION, target, check)
