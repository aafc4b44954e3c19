"""Kernels that call functions of one vendor's device library, which other targets have as operations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compiling import emit
from emulator.running import running_on

from offload.errors import CompileError

ONE = ("acos", "asin", "atan", "cbrt", "cos", "erf", "erfc", "exp", "fabs", "floor", "log1p", "rint", "sqrt", "tanh")
TWO = {"atan2": math.atan2, "copysign": math.copysign, "fmax": max, "fmin": min, "fmod": math.fmod, "pow": math.pow}
BY_NAME = {"cbrt": np.cbrt, "fabs": abs, "rint": np.rint}


def _program(vendor: str, kind: str, dialect: str) -> str:
    """Each function on x and y, one after the other."""
    bits = "f" if kind == "f32" else ""
    name = (lambda plain: f"__nv_{plain}{bits}") if vendor == "nvvm" else (lambda plain: f"__ocml_{plain}_{kind}")
    declared, called = [], []
    for i, plain in enumerate([*ONE, *TWO, "fma"]):
        count = 1 if plain in ONE else 2 if plain in TWO else 3
        types = ", ".join([kind] * count)
        head = "func.func private" if dialect == "func" else "llvm.func"
        declared.append(f"  {head} @{name(plain)}({types}) -> {kind}")
        values = ", ".join(["%x", "%y", "%x"][:count])
        called.append(f"    %r{i} = {dialect}.call @{name(plain)}({values}) : ({types}) -> {kind}")
        called.append(f"    %i{i} = arith.constant {i} : index")
        called.append(f"    memref.store %r{i}, %o[%i{i}] : memref<?x{kind}>")
    lines = (
        "\n".join(declared),
        f"  gpu.func @k(%x: {kind}, %y: {kind}, %o: memref<?x{kind}>) kernel {{",
        "\n".join(called),
    )
    return "gpu.module @m {\n" + "\n".join(lines) + "\n    gpu.return\n  }\n}\n"


@pytest.mark.parametrize("dialect", ["func", "llvm"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize(
    ("vendor", "target"),
    [
        ("nvvm", "host"),
        ("nvvm", "gfx942"),
        ("nvvm", "sm_90"),
        ("rocdl", "host"),
        ("rocdl", "sm_90"),
        ("rocdl", "gfx1100"),
    ],
)
def test_functions_of_libraries(vendor: str, target: str, kind: str, dialect: str) -> None:
    dtype = np.float32 if kind == "f32" else np.float64
    x, y = dtype(0.7), dtype(-1.0 if dialect == "llvm" else 2.0)
    found = np.zeros(len(ONE) + len(TWO) + 1, dtype)
    with running_on(target, _program(vendor, kind, dialect)) as library:
        library.kernels.k[1, 1](x, y, found)
    wanted = [(BY_NAME.get(name) or getattr(math, name))(float(x)) for name in ONE]
    wanted += [function(float(x), float(y)) for function in TWO.values()]
    np.testing.assert_allclose(found, [*wanted, float(x) * float(y) + float(x)], rtol=2e-6 if kind == "f32" else 1e-14)


@pytest.mark.parametrize(
    ("target", "function", "owner"),
    [
        ("host", "__nv_hypotf", "nvvm"),
        ("rocdl:gfx942", "__nv_hypotf", "nvvm"),
        ("nvvm:sm_90", "__ocml_hypot_f32", "rocdl"),
    ],
)
def test_functions_that_are_no_operations(target: str, function: str, owner: str) -> None:
    source = f"""
    gpu.module @m {{
      func.func private @{function}(f32, f32) -> f32
      gpu.func @k(%x: f32, %o: memref<f32>) kernel {{
        %r = func.call @{function}(%x, %x) : (f32, f32) -> f32
        memref.store %r, %o[] : memref<f32>
        gpu.return
      }}
    }}"""
    with pytest.raises(CompileError, match=f"it has a name of the library of {owner}, which {target}") as caught:
        emit(source, "object", [target])
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (5, 14)
    assert "write an operation of math" in found.message
