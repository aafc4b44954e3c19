"""JAX's functions as linalg on tensors: StableHLO, which JAX traces, through IREE's passes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from jax import export
from numpy.typing import NDArray

PASSES = ("--iree-stablehlo-input-transformation-pipeline", "--mlir-print-elementsattrs-with-hex-if-larger=-1")
"""The second: newer MLIR writes i1 constants in hex otherwise than MLIR 22 reads them."""
KEPT = re.compile(r"\biree_linalg_ext\.(\w+) (?!.*yield)")


class NotLowered(Exception):
    """The passes refuse the program, or leave operations of IREE's own in it; the text says which."""


def known_sizes(function: Callable[..., Any], arguments: Sequence[NDArray[Any]]) -> str:
    """The function for arrays of just these shapes."""
    return _lowered(jax.jit(function, keep_unused=True).lower(*arguments).as_text())


def unknown_sizes(function: Callable[..., Any], arguments: Sequence[NDArray[Any]]) -> str:
    """The function for arrays of these ranks: sizes of at least 4 are not in the types, equal ones known to be equal.
    Raises NotLowered where JAX cannot trace it so."""
    scope = export.SymbolicScope()

    def described(array: NDArray[Any]) -> jax.ShapeDtypeStruct:
        sizes = ",".join(f"d{size}" if size >= 4 else str(size) for size in array.shape)
        return jax.ShapeDtypeStruct(export.symbolic_shape(sizes, scope=scope) if array.ndim else (), array.dtype)

    try:
        traced = export.export(jax.jit(function, keep_unused=True), platforms=["cpu"])(*map(described, arguments))
    except Exception as error:  # of many types, which jax does not list
        raise NotLowered(f"jax: {str(error).splitlines()[0]}") from error
    return _lowered(traced.mlir_module())


def _lowered(program: str) -> str:
    tool = Path(sys.executable).with_name("iree-opt")
    try:
        done = subprocess.run([tool, *PASSES, "-"], input=program, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SystemExit(f"there is no {tool}: pip install '.[bench]'") from error
    if done.returncode:
        said = done.stderr.splitlines() or [f"exit code {done.returncode}"]
        raise NotLowered(f"iree-opt: {said[0]}")
    if kept := sorted({name for name in KEPT.findall(done.stdout) if name != "yield"}):
        raise NotLowered(f"iree-opt keeps {', '.join(kept)} of its own")
    return done.stdout.replace("util.func", "func.func").replace("util.return", "return")
