"""What the cases of device operations share: kernels over one value per thread, sizes of blocks, NumPy's answers."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64,
    "f8E5M2": np.float32, "f8E4M3FN": np.float32,
}  # fmt: skip
INTEGERS, FLOATS = ("i8", "i16", "i32", "i64"), ("f16", "bf16", "f32", "f64")
FLOATS_OF_8_BITS = ("f8E5M2", "f8E4M3FN")
NARROWED = ("bf16", *FLOATS_OF_8_BITS)
OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum,
    "maxui": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "minnumf": np.fmin, "maxnumf": np.fmax, "minimumf": np.minimum, "maximumf": np.maximum,
}  # fmt: skip
INTEGER_OPS = ("add", "mul", "minsi", "maxsi", "minui", "maxui", "and", "or", "xor")
FLOAT_OPS = ("add", "mul", "minnumf", "maxnumf", "minimumf", "maximumf")
BLOCKS: tuple[tuple[int, int, int], ...] = (
    (1, 1, 1), (7, 1, 1), (32, 1, 1), (33, 1, 1), (100, 1, 1), (64, 1, 1), (1024, 1, 1), (9, 5, 1), (3, 4, 5),
)  # fmt: skip

THREAD = """
  %tx = gpu.thread_id x
  %ty = gpu.thread_id y
  %tz = gpu.thread_id z
  %bx = gpu.block_id x
  %dx = gpu.block_dim x
  %dy = gpu.block_dim y
  %dz = gpu.block_dim z
  %p0 = arith.muli %tz, %dy : index
  %p1 = arith.addi %p0, %ty : index
  %p2 = arith.muli %p1, %dx : index
  %thread = arith.addi %p2, %tx : index
  %p3 = arith.muli %dx, %dy : index
  %threads = arith.muli %p3, %dz : index
  %p4 = arith.muli %bx, %threads : index
  %at = arith.addi %p4, %thread : index
"""
"""Defines %thread (of the block), %threads and %at (of the grid)."""


def stored(kind: str) -> str:
    """The element type of arrays for a type: NumPy has neither bf16 nor floats of 8 bits."""
    return "f32" if kind in NARROWED else kind


def load(kind: str, to: str = "%v", array: str = "%x") -> str:
    """Loads the thread's value as a ``kind``."""
    if kind in NARROWED:
        return f"{to}w = memref.load {array}[%at] : memref<?xf32>\n{to} = arith.truncf {to}w : f32 to {kind}\n"
    return f"{to} = memref.load {array}[%at] : memref<?x{kind}>\n"


def store(kind: str, value: str = "%r", array: str = "%out") -> str:
    if kind in NARROWED:
        return f"{value}w = arith.extf {value} : {kind} to f32\nmemref.store {value}w, {array}[%at] : memref<?xf32>\n"
    return f"memref.store {value}, {array}[%at] : memref<?x{kind}>\n"


def mapped(name: str, kind: str, body: str, *, more: str = "", attributes: str = "") -> str:
    """A kernel that makes %r of %v for each thread."""
    array = f"memref<?x{stored(kind)}>"
    return (
        f"gpu.func @{name}(%x: {array}, %out: {array}{more}) kernel {attributes} {{\n"
        f"{THREAD}{load(kind)}{body}\n{store(kind)}gpu.return\n}}\n"
    )


def values(kind: str, op: str, shape: tuple[int, ...], seed: int = 1) -> Any:
    """Numbers whose reduction is exact in any order."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[kind]
    if kind in INTEGERS or kind == "index":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype)
    if op == "mul":
        return random.choice(np.array([-1, 1], dtype), shape)
    if kind in FLOATS_OF_8_BITS and op == "add":  # all whole numbers up to 8 are exact
        ones = np.zeros(shape, dtype)
        ones[..., :8] = 1
        return random.permuted(ones, axis=-1)
    if kind in FLOATS_OF_8_BITS:
        return random.integers(-8, 9, shape).astype(dtype)
    if op == "add":
        return random.choice(np.array([-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], dtype), shape)
    return random.integers(-100, 100, shape).astype(dtype)


def reduced(op: str, x: Any) -> Any:
    """Along the last axis."""
    with np.errstate(over="ignore"):
        if op in ("minui", "maxui"):
            return OPS[op].reduce(x.view(f"u{x.dtype.itemsize}"), axis=-1).view(x.dtype)
        return OPS[op].reduce(x, axis=-1, dtype=x.dtype)


def ops_of(kind: str) -> tuple[str, ...]:
    return INTEGER_OPS if kind in INTEGERS else FLOAT_OPS


def module(body: str) -> str:
    return f"gpu.module @m {{\n{body}\n}}\n"


def launched(kernel: Any, block: tuple[int, int, int], x: Any, *more: Any, blocks: int = 3) -> Any:
    """The outputs of a kernel made by :func:`mapped`, one row per block."""
    out = np.zeros_like(x)
    kernel[blocks, block](x.reshape(-1), out.reshape(-1), *more)
    return out
