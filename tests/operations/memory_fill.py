"""gpu.memset on the host side: element types, layouts, tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from offload.runtime import Library
from operations import Case


def _filled(dtype: Any, value: Any) -> Any:
    def run(library: Library) -> None:
        out = np.zeros(37, dtype)
        library.fill(out, value)
        np.testing.assert_array_equal(out, np.full(37, value, dtype))

    return run


def _sync(element: str) -> str:
    return f"""
func.func @fill(%x: memref<?x{element}>, %v: {element}) {{
  gpu.memset %x, %v : memref<?x{element}>, {element}
  return
}}
"""


CASES = [
    Case("gpu.memset", f"sync, {element}", _sync(element), _filled(dtype, value))
    for element, dtype, value in [
        ("i8", np.int8, -3),
        ("i16", np.int16, -300),
        ("i32", np.int32, 1 << 30),
        ("i64", np.int64, -(1 << 60)),
        ("f32", np.float32, 2.5),
        ("f64", np.float64, -0.125),
    ]
]
