"""Lines of TOSA for cases of the operations' table. What they mean is in TOSA's specification, version 1.0."""

# ruff: noqa: E501 - the MLIR of a case is easier to read unbroken
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from operations import Case
from tensor_cases import Array, computed


def constant(name: str, values: Any, element: str = "f32") -> str:
    """A line that makes a tensor of one dimension."""
    texts = [f"{float(value)!r}" if element.startswith("f") else str(value).lower() for value in np.ravel(values)]
    return f'%{name} = "tosa.const"() {{values = dense<[{", ".join(texts)}]> : tensor<{len(texts)}x{element}>}} : () -> tensor<{len(texts)}x{element}>\n'


def shape(name: str, sizes: Sequence[int]) -> str:
    """A line that makes a shape."""
    return f"%{name} = tosa.const_shape {{values = dense<{list(sizes)}> : tensor<{len(sizes)}xindex>}} : () -> !tosa.shape<{len(sizes)}>\n"


def listed(values: Sequence[int], element: str = "i64") -> str:
    return f"array<{element}: {', '.join(map(str, values))}>"


ZERO, NO_SHIFT = constant("z", [0]), constant("s", [0], "i8")


def binary(op: str, form: str, x: Array, y: Array, wanted: Array, attributes: str = "", off: float = 0.0) -> Case:
    return computed(
        f"tosa.{op}", form, [x, y], f"%r = tosa.{op} %a0, %a1 {attributes}: ($A0, $A1) -> $R", wanted, off=off
    )


def unary(op: str, form: str, x: Array, wanted: Array, attributes: str = "", off: float = 0.0) -> Case:
    return computed(f"tosa.{op}", form, [x], f"%r = tosa.{op} %a0 {attributes}: ($A0) -> $R", wanted, off=off)
