"""Kernels in the LLVM dialect, as other compilers hand them on: marked their way, with LLVM's own intrinsics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compiling import ALL_TARGETS, emit, on_host
from emulator.driver import shared
from emulator.on_device import compiled, emulated

import offload

# Intrinsics of one number for which MLIR's conversions for GPUs have no way, and their meaning.
UNARY = {
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2,
    "log": np.log, "log2": np.log2, "log10": np.log10, "fabs": np.abs, "ceil": np.ceil, "floor": np.floor,
    "roundeven": np.rint, "round": lambda x: np.floor(x + 0.5),
}  # fmt: skip
BINARY = {"pow": np.power, "atan2": np.arctan2, "copysign": np.copysign}
RESULTS = len(UNARY) + len(BINARY) + 2


def functions(kind: str, width: int = 1) -> str:
    """A kernel that computes all of them of the numbers at %x, and stores them one behind the other at %out."""
    shape = f"vector<{width}x{kind}>" if width > 1 else kind
    lines = [f"%v{i} = llvm.intr.{name}(%v) : ({shape}) -> {shape}" for i, name in enumerate(UNARY)]
    lines += [
        f"%v{i} = llvm.intr.{name}(%v, %half) : ({shape}, {shape}) -> {shape}"
        for i, name in enumerate(BINARY, len(UNARY))
    ]
    lines.append(f"%v{RESULTS - 2} = llvm.intr.powi(%v, %three) : ({shape}, i32) -> {shape}")
    lines.append(f"%v{RESULTS - 1} = llvm.frem %v, %half : {shape}")
    for i in range(RESULTS):
        lines.append(f"%p{i} = llvm.getelementptr %row[{i * width}] : (!llvm.ptr) -> !llvm.ptr, {kind}")
        lines.append(f"llvm.store %v{i}, %p{i} {{alignment = 4 : i64}} : {shape}, !llvm.ptr")
    half = f"dense<0.5> : {shape}" if width > 1 else f"0.5 : {kind}"
    return f"""
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr, %out: !llvm.ptr) attributes {{gpu.kernel}} {{
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %size = llvm.mlir.constant({RESULTS * width} : i32) : i32
    %lanes = llvm.mlir.constant({width} : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %half = llvm.mlir.constant({half}) : {shape}
    %from = llvm.mul %i, %lanes : i32
    %at = llvm.getelementptr %x[%from] : (!llvm.ptr, i32) -> !llvm.ptr, {kind}
    %v = llvm.load %at {{alignment = 4 : i64}} : !llvm.ptr -> {shape}
    %to = llvm.mul %i, %size : i32
    %row = llvm.getelementptr %out[%to] : (!llvm.ptr, i32) -> !llvm.ptr, {kind}
    {chr(10).join(lines)}
    llvm.return
  }}
}}
"""


X = np.array([0.25, 0.75, 0.1, 0.9, 0.5625, 0.3])


def expected() -> np.ndarray:
    rows = [compute(X) for compute in UNARY.values()] + [compute(X, 0.5) for compute in BINARY.values()]
    return np.stack([*rows, X**3, np.fmod(X, 0.5)], axis=1)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_functions_of_mathematics(kind: str, width: int) -> None:
    text, dtype = functions(kind, width), np.dtype(kind.replace("f", "float"))
    wanted, close = expected(), 16 * np.finfo(dtype).eps
    x, out = X.astype(dtype), np.zeros((len(X) // width, RESULTS, width), dtype)
    on_host(text).kernels.k[1, len(x) // width](x.ctypes.data, out.ctypes.data)
    np.testing.assert_allclose(out.transpose(0, 2, 1).reshape(-1, RESULTS), wanted, rtol=close, atol=close)
    library = offload.compile(text, targets=["rocdl:gfx1100"])
    with shared().chip("gfx1100"):
        library.use("hip")
        given, there = library.device.array(x), library.device.zeros(out.shape, dtype)
        library.kernels.k[1, len(x) // width](given.pointer, there.pointer)
        out = there.numpy()
    shared().check()
    np.testing.assert_allclose(out.transpose(0, 2, 1).reshape(-1, RESULTS), wanted, rtol=close, atol=close)
    assert len(emit(text, "object", ALL_TARGETS)) == len(ALL_TARGETS)


def test_they_are_the_librarys_whose_flags_stay() -> None:
    text = functions("f32").replace("llvm.intr.exp(%v)", "llvm.intr.exp(%v) {fastmathFlags = #llvm.fastmath<afn>}")
    assert math.prod("__nv_" in item.data.decode() for item in emit(text, "lowered", ["nvvm:sm_90"]))
    assert "@__nv_fast_expf(" in emit(text, "lowered", ["nvvm:sm_90"])[0].data.decode()


# Written out for GPUs, by way of those above: roundings to integers, powers of ten, both sines at once; and any of them
# by its name. What a kernel stores first and second, for a number and 2.5 times as much of it.
WRITTEN_OUT = {
    "lround": ("llvm.intr.lround(%v) : ({kind}) -> i64", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "llround": ("llvm.intr.llround(%v) : ({kind}) -> i64", lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "lrint": ("llvm.intr.lrint(%v) : ({kind}) -> i64", np.rint),
    "llrint": ("llvm.intr.llrint(%v) : ({kind}) -> i64", np.rint),
    "exp10": ("llvm.intr.exp10(%v) : ({kind}) -> {kind}", lambda x: 10.0**x),
    "sincos": ("llvm.intr.sincos(%v) : ({kind}) -> !llvm.struct<({kind}, {kind})>", np.sin),
    "by name, exp": ('llvm.call_intrinsic "llvm.exp.{kind}"(%v) : ({kind}) -> {kind}', np.exp),
    "by name, sin": ('llvm.call_intrinsic "llvm.sin.{kind}"(%v) : ({kind}) -> {kind}', np.sin),
    "by name, pow": ('llvm.call_intrinsic "llvm.pow.{kind}"(%v, %v) : ({kind}, {kind}) -> {kind}', lambda x: x**x),
}


@pytest.mark.parametrize("chip", ["host", "gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_functions_that_are_written_out(name: str, kind: str, chip: str) -> None:
    operation, compute = WRITTEN_OUT[name]
    operation = operation.format(kind=kind)
    stored = {"i64": f"%s = llvm.sitofp %r : i64 to {kind}"}.get(operation.rpartition(" -> ")[2], "")
    if name == "sincos":
        stored = f"%s = llvm.extractvalue %r[0] : !llvm.struct<({kind}, {kind})>"
    text = f"""
gpu.module @m {{
  llvm.func @k(%x: !llvm.ptr) attributes {{gpu.kernel}} {{
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, {kind}
    %v = llvm.load %p : !llvm.ptr -> {kind}
    %r = {operation}
    {stored}
    llvm.store {"%s" if stored else "%r"}, %p : {kind}, !llvm.ptr
    llvm.return
  }}
}}
"""
    dtype = np.dtype(kind.replace("f", "float"))
    x = np.concatenate([X, 2.5 * X]).astype(dtype)
    expected = compute(x.astype(np.float64)).astype(dtype)
    if chip == "host":
        on_host(text).kernels.k[1, len(x)](x.ctypes.data)
    else:
        driver = shared(emulated(chip)[1])
        with driver.chip(chip):
            library = compiled(text, chip)
            there = library.device.array(x)
            library.kernels.k[1, len(x)](there.pointer)
            x = there.numpy()
        driver.check()
    close = 16 * np.finfo(dtype).eps
    np.testing.assert_allclose(x, expected, rtol=close, atol=close)


MARKED = """
gpu.module @m {{
  llvm.func @helper(%p: !llvm.ptr, %v: i32) {{
    llvm.store %v, %p : i32, !llvm.ptr
    llvm.return
  }}
  llvm.func {convention} @k(%p: !llvm.ptr, %v: i32) {attributes} {{
    llvm.call @helper(%p, %v) : (!llvm.ptr, i32) -> ()
    llvm.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("convention", "attributes"),
    [
        ("", "attributes {rocdl.kernel}"),
        ("", "attributes {nvvm.kernel}"),
        ("", "attributes {gpu.kernel, nvvm.kernel}"),
        ("amdgpu_kernelcc", ""),
        ("ptx_kernelcc", ""),
    ],
)
def test_kernels_that_are_marked_for_a_vendor(convention: str, attributes: str) -> None:
    """They are kernels, and for every target."""
    text = MARKED.format(convention=convention, attributes=attributes)
    library, x = on_host(text), np.zeros(1, np.int32)
    assert list(library.kernels) == ["k"]
    library.kernels.k[1, 1](x.ctypes.data, 7)
    assert x[0] == 7
    library = offload.compile(text, targets=["rocdl:gfx942", "nvvm:sm_90"])
    with shared().chip("gfx942"):
        library.use("hip")
        there = library.device.zeros(1, np.int32)
        library.kernels.k[1, 1](there.pointer, 7)
        assert there.numpy()[0] == 7
    shared().check()
