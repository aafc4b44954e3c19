"""What the tests of threads that work together share: sizes of blocks, kernels that reduce, NumPy's answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from compiling import on_host

from offload.runtime import Library

WARP = 32


BLOCKS = [1, 7, 32, 33, 256, 1024, (8, 4), (33, 3), (4, 3, 5), (1, 1, 7), (16, 8, 8)]


def size_of(block: int | tuple[int, ...]) -> int:
    return int(np.prod(block))


REDUCE = """
  gpu.func @{op}_{type}(%x: memref<?x{type}>, %out: memref<?x{type}>) kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r = gpu.all_reduce {op} %v uniform {{}} : ({type}) -> {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    gpu.return
  }}
"""


PLACE = """
  func.func private @place() -> index {
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %b = gpu.block_id x
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %dz = gpu.block_dim z
    %0 = arith.muli %b, %dz : index
    %1 = arith.addi %0, %tz : index
    %2 = arith.muli %1, %dy : index
    %3 = arith.addi %2, %ty : index
    %4 = arith.muli %3, %dx : index
    %5 = arith.addi %4, %tx : index
    return %5 : index
  }
"""


DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


INTEGER_OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum,
    "maxui": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


FLOAT_OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minnumf": np.fmin, "maxnumf": np.fmax, "minimumf": np.minimum,
    "maximumf": np.maximum,
}  # fmt: skip


def module(name: str, body: str) -> Library:
    return on_host(f"gpu.module @{name} {{\n{body}\n}}\n")


def values(kind: str, op: str, shape: tuple[int, ...], seed: int) -> Any:
    """Values whose reduction is exact in any order, or nearly."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[kind]
    if kind.startswith("i"):
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype)
    if op == "mul":
        return random.choice(np.array([-1, 1, 2, 0.5], dtype), shape)
    return random.integers(-512, 512, shape).astype(dtype)


def reduced(op: str, x: Any) -> Any:
    if op in ("minui", "maxui"):
        unsigned = x.view(f"u{x.dtype.itemsize}")
        return INTEGER_OPS[op].reduce(unsigned, axis=-1).view(x.dtype)
    ufunc = (INTEGER_OPS if x.dtype.kind == "i" else FLOAT_OPS)[op]
    with np.errstate(over="ignore"):
        return ufunc.reduce(x, axis=-1, dtype=x.dtype)
