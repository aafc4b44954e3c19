"""Which part of memory a random vector transfer reads or writes, and in which order of dimensions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class Transfer:
    """``part``: the sizes of what is transferred, in memory's order; the vector's dimension i is its ``order[i]``. It
    stands in the last dimensions of an array of the shape ``memory`` at ``starts`` and may end beyond it."""

    memory: tuple[int, ...]
    part: tuple[int, ...]
    starts: tuple[int, ...]
    order: tuple[int, ...]
    promised: tuple[bool, ...]  # by the vector's dimensions: what is transferred does not end beyond the memory

    @property
    def exprs(self) -> list[str]:
        outer = len(self.memory) - len(self.part)
        return [f"d{outer + dim}" for dim in self.order]

    @property
    def in_bounds(self) -> list[bool]:
        return list(self.promised)

    def attributes(self, exprs: Sequence[str], in_bounds: Sequence[bool]) -> str:
        dims = ", ".join(f"d{i}" for i in range(len(self.memory)))
        ends = ", ".join(str(each).lower() for each in in_bounds)
        return f"{{permutation_map = affine_map<({dims}) -> ({', '.join(exprs)})>, in_bounds = [{ends}]}}"

    def _inside(self) -> tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]:
        """The place in the outer dimensions, what of the rest is meant, and which of the part that is."""
        outer = len(self.memory) - len(self.part)
        counts = [
            max(0, min(size, end - start))
            for size, end, start in zip(self.part, self.memory[outer:], self.starts[outer:], strict=True)
        ]
        here = tuple(slice(start, start + count) for start, count in zip(self.starts[outer:], counts, strict=True))
        return self.starts[:outer], here, tuple(map(slice, counts))

    def read(self, array: Array, padding: Array) -> Array:
        """The part, in memory's order."""
        outer, here, there = self._inside()
        part = np.full(self.part, padding, array.dtype)
        part[there] = array[outer][here]
        return part

    def write(self, array: Array, part: Array, mask: Array) -> Array:
        """The array with the part in it, where the mask is set."""
        outer, here, there = self._inside()
        array = array.copy()
        inner = array[outer]
        inner[here] = np.where(mask[there], part[there], inner[here])
        return array


def transfer(choose: random.Random, rank: int, spare: tuple[int, int], shape: Sequence[int] | None = None) -> Transfer:
    """``spare``: by how much memory may be larger than the part. ``shape``: the vector's, where it is known."""
    order = list(range(rank))
    if choose.random() < 0.5:
        choose.shuffle(order)
    sizes = list(shape) if shape is not None else [choose.choice((1, 2, 3, 4, 5, 8)) for _ in order]
    part = [sizes[order.index(dim)] for dim in range(rank)]
    inner = [max(1, size + choose.randint(*spare)) for size in part]
    starts = [choose.randint(0, end if choose.random() < 0.3 else max(0, end - size))
              for size, end in zip(part, inner, strict=True)]  # fmt: skip
    outer = [choose.randint(1, 3) for _ in range(choose.random() < 0.3)]
    starts = [choose.randrange(size) for size in outer] + starts
    fits = [starts[len(outer) + dim] + part[dim] <= inner[dim] and choose.random() < 0.5 for dim in order]
    return Transfer(tuple(outer + inner), tuple(part), tuple(starts), tuple(order), tuple(fits))
