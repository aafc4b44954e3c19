"""The kernels that random programs launch: their MLIR text and their meaning in NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

TYPES: dict[str, Any] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}
"""Element types of buffers, by their name in MLIR."""

THREADS = 32
"""Threads per block of every launch."""

_PLACE = """
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %s = arith.muli %b, %c32 : index
      %i = arith.addi %s, %t : index
      %n = memref.dim %x, %c0 : memref<?xTYPE>
      %inside = arith.cmpi ult, %i, %n : index"""


def _numbers(kind: str) -> tuple[str, str, str]:
    """The suffix of the arithmetic operations and the two factors of an element type. The factors of floats are
    powers of two: products are exact, so it does not matter whether a compiler fuses them with the sum."""
    return ("f", "0.5", "-0.25") if kind.startswith("f") else ("i", "3", "-2")


def _kernels(kind: str) -> str:
    suffix, first, second = _numbers(kind)
    text = f"""
    gpu.func @scale_{kind}(%x: memref<?xTYPE>, %a: TYPE, %v: TYPE) kernel {{{_PLACE}
      scf.if %inside {{
        %o = memref.load %x[%i] : memref<?xTYPE>
        %p = arith.mul{suffix} %o, %a : TYPE
        %r = arith.add{suffix} %p, %v : TYPE
        memref.store %r, %x[%i] : memref<?xTYPE>
      }}
      gpu.return
    }}
    gpu.func @join_{kind}(%x: memref<?xTYPE>, %y: memref<?xTYPE>) kernel {{{_PLACE}
      %f = arith.constant {first} : TYPE
      scf.if %inside {{
        %o = memref.load %x[%i] : memref<?xTYPE>
        %q = memref.load %y[%i] : memref<?xTYPE>
        %p = arith.mul{suffix} %o, %f : TYPE
        %r = arith.sub{suffix} %q, %p : TYPE
        memref.store %r, %x[%i] : memref<?xTYPE>
      }}
      gpu.return
    }}
    gpu.func @mix_{kind}(%x: memref<?xTYPE>, %y: memref<?xTYPE>, %z: memref<?xTYPE>) kernel {{{_PLACE}
      %f = arith.constant {first} : TYPE
      %g = arith.constant {second} : TYPE
      scf.if %inside {{
        %o = memref.load %y[%i] : memref<?xTYPE>
        %q = memref.load %z[%i] : memref<?xTYPE>
        %p = arith.mul{suffix} %o, %f : TYPE
        %w = arith.mul{suffix} %q, %g : TYPE
        %r = arith.add{suffix} %p, %w : TYPE
        memref.store %r, %x[%i] : memref<?xTYPE>
      }}
      gpu.return
    }}
    gpu.func @turn_{kind}(%x: memref<?xTYPE>) workgroup(%w: memref<32xTYPE, #gpu.address_space<workgroup>>) kernel {{
      {_PLACE}
      %c1 = arith.constant 1 : index
      scf.if %inside {{
        %o = memref.load %x[%i] : memref<?xTYPE>
        memref.store %o, %w[%t] : memref<32xTYPE, #gpu.address_space<workgroup>>
      }}
      gpu.barrier
      scf.if %inside {{
        %left = arith.subi %n, %s : index
        %count = arith.minui %left, %c32 : index
        %last = arith.subi %count, %c1 : index
        %other = arith.subi %last, %t : index
        %q = memref.load %w[%other] : memref<32xTYPE, #gpu.address_space<workgroup>>
        memref.store %q, %x[%i] : memref<?xTYPE>
      }}
      gpu.return
    }}"""
    return text.replace("TYPE", kind)


def module(kinds: Iterable[str]) -> str:
    """The gpu.module with the kernels of those element types."""
    return "gpu.module @work {" + "".join(map(_kernels, kinds)) + "\n}\n"


def _factors(array: Any) -> tuple[Any, Any]:
    _, first, second = _numbers("f" if array.dtype.kind == "f" else "i")
    return array.dtype.type(float(first)), array.dtype.type(float(second))


def scale(x: Any, a: Any, b: Any) -> None:
    x[:] = x * a + b


def join(x: Any, y: Any) -> None:
    x[:] = y - x * _factors(x)[0]


def mix(x: Any, y: Any, z: Any) -> None:
    first, second = _factors(x)
    x[:] = y * first + z * second


def turn(x: Any) -> None:
    for start in range(0, len(x), THREADS):
        x[start : start + THREADS] = x[start : start + THREADS][::-1].copy()
