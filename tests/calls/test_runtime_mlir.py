"""The calling convention against functions lowered by LLVM's own tools: every type, all kinds of results."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime_support import build, folder, memref, metadata, real_runtime, scalar

import offload.runtime
from offload.artifact import Signature
from offload.runtime import Library

SCALARS = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "index": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
OTHERS = """
!pitched = memref<?x2xf32, strided<[?, 1], offset: 2>>
func.func @mixed(%a: i8, %b: f16, %c: complex<f64>, %d: !pitched, %e: i1,
                 %f: bf16)
    -> (i1, complex<f64>, i8, f16, !pitched, bf16, f32) {
  %i = arith.constant 1 : index
  %v = memref.load %d[%i, %i] : !pitched
  return %e, %c, %a, %b, %d, %f, %v : i1, complex<f64>, i8, f16, !pitched, bf16, f32
}
func.func @made(%n: index) -> (memref<?x3xf64>, memref<bf16>) {
  %one = arith.constant 1.0 : bf16
  %a = memref.alloc(%n) : memref<?x3xf64>
  %b = memref.alloc() : memref<bf16>
  memref.store %one, %b[] : memref<bf16>
  return %a, %b : memref<?x3xf64>, memref<bf16>
}
func.func @aligned(%n: index) -> memref<?xi32> {
  %a = memref.alloc(%n) {alignment = 64} : memref<?xi32>
  return %a : memref<?xi32>
}
memref.global "private" constant @table : memref<3xi16> = dense<[1, 2, 3]>
func.func @numbers() -> memref<3xi16> {
  %t = memref.get_global @table : memref<3xi16>
  return %t : memref<3xi16>
}
func.func @identity(%x: memref<?xi1>) -> memref<?xi1> { return %x : memref<?xi1> }
"""


def signatures() -> list[Signature]:
    pitched = memref("float32", None, 2, name="d", strides=(None, 1), offset=2)
    inputs = [
        scalar("int8", "a"),
        scalar("float16", "b"),
        scalar("complex128", "c"),
        pitched,
        scalar("bool", "e"),
        scalar("bfloat16", "f"),
    ]
    results = [inputs[4], inputs[2], inputs[0], inputs[1], pitched, inputs[5], scalar("float32")]
    n = scalar("int64", "n")
    table: list[tuple[str, list[Any], list[Any]]] = [
        ("mixed", inputs, results),
        ("made", [n], [memref("float64", None, 3), memref("bfloat16")]),
        ("aligned", [n], [memref("int32", None)]),
        ("numbers", [], [memref("int16", 3)]),
        ("identity", [memref("bool", None)], [memref("bool", None)]),
    ]
    table += [(f"echo{i}", [scalar(dtype)], [scalar(dtype)]) for i, dtype in enumerate(SCALARS.values())]
    return [Signature(name, f"_mlir_ciface_{name}", tuple(args), tuple(out)) for name, args, out in table]


@functools.cache
def library() -> Library:
    text = OTHERS
    for i, kind in enumerate(SCALARS):
        text += f"func.func @echo{i}(%x: {kind}) -> {kind} {{ return %x : {kind} }}\n"
    passes = ("--expand-strided-metadata", "--llvm-request-c-wrappers", "--convert-to-llvm",
              "--reconcile-unrealized-casts")  # fmt: skip
    data = text.encode()
    steps = (passes, ("--mlir-to-llvmir",), ("-O2", "--relocation-model=pic", "--filetype=obj"))
    for tool, options in zip(("mlir-opt-22", "mlir-translate-22", "llc-22"), steps, strict=True):
        assert tool is not None
        data = subprocess.run([tool, *options], input=data, check=True, capture_output=True).stdout
    path = folder() / "lowered.o"
    path.write_bytes(data)
    sources = metadata(functions=tuple(signatures()), kernels=())
    return offload.runtime.load(build("lowered", sources, path, *real_runtime()))


@pytest.mark.parametrize(("number", "dtype"), list(enumerate(SCALARS.values())))
def test_scalars(number: int, dtype: str) -> None:
    echo: Callable[[Any], Any] = getattr(library(), f"echo{number}")
    values: dict[str, list[Any]] = {
        "bool": [True, False],
        "int8": [-128, 127],
        "int16": [-(2**15), 2**15 - 1],
        "int32": [-(2**31), 2**31 - 1],
        "int64": [-(2**63), 2**63 - 1],
        "complex64": [1.5 - 2.5j],
        "complex128": [0.1 - 1e300j],
    }
    for value in values.get(dtype, [0.0, 1.5, -2.0, float("inf"), -1.25e-2 if dtype == "float64" else 0.25]):
        assert echo(value) == value


def test_mixed_arguments_and_results() -> None:
    d = np.arange(12, dtype=np.float32).reshape(3, 4)[:, :2]
    flag, number, small, half, same, brain, loaded = library().mixed(-3, 1.5, 2 - 1j, d, True, -0.5)
    assert (flag, number, small, half, brain, loaded) == (True, 2 - 1j, -3, 1.5, -0.5, 5.0)
    assert np.array_equal(same, d)
    same[0, 0] = 9
    assert d[0, 0] == 9


def test_allocated_results() -> None:
    for _ in range(3):
        aligned = library().aligned(5)
        assert aligned.shape == (5,)
        assert aligned.ctypes.data % 64 == 0
        del aligned
    assert library().numbers().tolist() == [1, 2, 3]
    x = np.array([True, False])
    assert library().identity(x).tolist() == [True, False]


def test_results_of_ml_dtypes() -> None:
    array, brain = library().made(2)
    assert array.shape == (2, 3)
    assert brain.dtype.name == "bfloat16"
    assert brain == 1


def test_results_that_need_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    fresh = offload.runtime.load(library().path)
    with pytest.raises(offload.errors.SignatureError, match="install the package ml_dtypes: pip install ml_dtypes"):
        fresh.made(2)
