"""What an engine is given, and how its answer is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]

SIZES = ("large", "small")
LINE = 64
PIECE = 1 << 16
"""Elements that are compared at a time: they stay in the processor's caches."""


def aligned(array: Array) -> Array:
    """A copy that begins with a cache line, as the memory of engines with arrays of their own does."""
    bytes_ = np.empty(array.nbytes + LINE, np.uint8)
    begin = -bytes_.ctypes.data % LINE
    copy: Array = bytes_[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@dataclass(frozen=True)
class Problem:
    """One kernel with its data. Engines take arrays in the order inputs, outputs, scratch, then the scalars.

    ``scratch`` is memory that kernels of several launches need between them; other engines have no use for it.
    ``expected`` computes the right outputs with NumPy, floats in double precision. ``traffic`` counts the bytes that
    must be read and written at least, ``operations`` the arithmetic on elements.
    """

    kernel: str
    size: str
    inputs: Arrays
    outputs: Arrays
    expected: Callable[[], Mapping[str, Array]]
    traffic: int
    operations: int
    scratch: Arrays = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        for arrays in (self.inputs, self.outputs, self.scratch):
            arrays.update({name: aligned(array) for name, array in arrays.items()})

    def check(self, got: Mapping[str, Array]) -> None:
        """Raises ValueError where an output differs from what is expected: from its largest absolute value by more
        than ``tolerance``, or at all where that is 0."""
        for name, right in self.expected().items():
            answer = np.asarray(got[name])
            if answer.shape != right.shape:
                raise ValueError(f"{name} has the shape {answer.shape} in place of {right.shape}")
            allowed = self.tolerance * max(float(right.max()), -float(right.min())) if self.tolerance else 0.0
            step = max(1, PIECE * len(right) // right.size)
            pieces = (slice(at, at + step) for at in range(0, len(right), step))
            if all(np.abs(answer[piece].astype(np.float64) - right[piece]).max() <= allowed for piece in pieces):
                continue
            wrong = np.abs(answer.astype(np.float64) - right)
            place = np.unravel_index(int(np.nanargmax(np.where(np.isnan(wrong), np.inf, wrong))), wrong.shape)
            if not wrong[place] <= allowed:
                at = ", ".join(str(int(i)) for i in place)
                raise ValueError(f"{name}[{at}] is {answer[place]}, not {right[place]} (allowed: {allowed:.2g} off)")
