"""What kernels mean: small kernels, grouped by theme, each with a function that gives NumPy's answer.

A theme is a file ``THEME.mlir`` with kernels and a module ``THEME.py`` with their answers. test_conformance.py runs
each kernel in every way in which the CPU can run it, on blocks and grids of odd sizes.
"""

from __future__ import annotations

import importlib
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
THEMES = ("ids", "barriers", "memory", "lanes", "reductions", "atomics", "numbers", "flow")

Shape = tuple[int, int, int]
BLOCKS: tuple[Shape, ...] = (
    (1, 1, 1), (7, 1, 1), (31, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (65, 1, 1), (100, 1, 1), (1024, 1, 1),
    (8, 4, 1), (33, 3, 1), (4, 3, 5), (1, 1, 7), (16, 8, 8), (2, 8, 64), (5, 1, 13), (97, 2, 1),
)  # fmt: skip
GRIDS: tuple[Shape, ...] = ((1, 1, 1), (2, 1, 1), (3, 2, 1), (1, 2, 3), (5, 1, 1))


@dataclass(frozen=True)
class Launch:
    """One launch: its sizes, the warps' size, and where its values come from."""

    grid: Shape
    block: Shape
    warp: int
    random: np.random.Generator

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def total(self) -> int:
        """Threads of the grid."""
        return self.blocks * self.threads

    @property
    def thread(self) -> Any:
        """By thread of the grid: its number in its block."""
        return np.arange(self.total) % self.threads

    @property
    def lane(self) -> Any:
        return self.thread % self.warp

    @property
    def first(self) -> Any:
        """By thread of the grid: where its warp begins."""
        return np.arange(self.total) - self.lane

    @property
    def present(self) -> Any:
        """By thread of the grid: how many lanes its warp has."""
        return np.minimum(self.threads - (self.thread - self.lane), self.warp)

    def by_warp(self, function: Callable[[Any], Any], values: Any) -> Any:
        """What ``function`` makes of the values of each warp, for its threads."""
        parts = [
            values[start : start + count] for start, count in sorted(set(zip(self.first, self.present, strict=True)))
        ]
        return np.concatenate([np.broadcast_to(function(part), part.shape) for part in parts])

    def by_block(self, function: Callable[[Any], Any], values: Any) -> Any:
        parts = values.reshape(self.blocks, self.threads, *values.shape[1:])
        return np.concatenate([np.broadcast_to(function(part), part.shape) for part in parts])

    def integers(self, low: int, high: int, dtype: Any = np.int32, shape: Sequence[int] | None = None) -> Any:
        """One per thread, from ``low`` to below ``high``."""
        return self.random.integers(low, high, shape or self.total, np.int64).astype(dtype)

    def any_of(self, dtype: Any) -> Any:
        """Integers of all sizes that the type has, one per thread."""
        raw = self.random.integers(0, 256, self.total * np.dtype(dtype).itemsize, np.uint8)
        return raw.view(dtype)


@dataclass(frozen=True)
class Answer:
    """A launch's arguments and what its arrays hold afterwards, in the arguments' order.

    An expected array may come with a mask of the elements that have to be so, as a pair; a function judges the array
    that it is given; None stands for one that does not matter. ``tolerance`` is relative."""

    arguments: Sequence[Any]
    expected: Sequence[Any]
    shared: int = 0
    tolerance: float = 0.0


def copied(arguments: Any) -> tuple[list[Any], list[Any]]:
    """The arguments with copies of the arrays, and these."""
    given = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    return given, [value for value in given if isinstance(value, np.ndarray)]


def judge(found: Sequence[Any], answer: Answer) -> None:
    """Compares the arrays after a launch with the answer."""
    for array, expected in zip(found, answer.expected, strict=True):
        if expected is None:
            continue
        if callable(expected):
            expected(array)
            continue
        values, mask = expected if isinstance(expected, tuple) else (expected, slice(None))
        assert array.dtype == values.dtype
        # As numbers that NumPy can compare, whatever type they have.
        known = array.dtype.kind in "iuc" or array.dtype in (np.float32, np.float64)
        left, right = (array, values) if known else (array.astype(np.float32), values.astype(np.float32))
        if answer.tolerance:
            np.testing.assert_allclose(left[mask], right[mask], rtol=answer.tolerance)
        else:
            np.testing.assert_array_equal(left[mask], right[mask])


@dataclass(frozen=True)
class Kernel:
    """A kernel, the sizes it can be launched with, and its answer.

    ``cpu_only``: the CPU gives it a meaning, and GPUs none: not all threads of a warp come to a barrier together."""

    theme: str
    name: str
    answer: Callable[[Launch], Answer]
    blocks: Sequence[Shape]
    grids: Sequence[Shape]
    cpu_only: bool = False

    def launches(self, warp: int, count: int) -> Iterator[tuple[Launch, Answer]]:
        """Launches of sizes drawn by chance, the same each time."""
        random = np.random.default_rng(zlib.crc32(f"{self.theme}.{self.name}".encode()))
        for _ in range(count):
            grid, block = (tuple(map(int, random.choice(sizes))) for sizes in (self.grids, self.blocks))
            launch = Launch(grid, block, warp, np.random.default_rng(random.integers(1 << 32)))
            yield launch, self.answer(launch)


@dataclass
class Theme:
    """The kernels of one file, or of a text."""

    name: str
    text: str = ""
    kernels: list[Kernel] = field(default_factory=list)

    def kernel(
        self, *values: str, blocks: Sequence[Shape] = BLOCKS, grids: Sequence[Shape] = GRIDS, cpu_only: bool = False
    ) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
        """Registers the answer of the kernel that is called as the function is.

        With ``values``, words separated by spaces, of the kernels of an ``each``: they are appended to the name after
        "_" and handed to the function.
        """

        def register(function: Callable[..., Answer]) -> Callable[..., Answer]:
            for words in [value.split() for value in values] or [[]]:
                name = "_".join([function.__name__.rstrip("_"), *words]).lstrip("_")

                def answer(launch: Launch, words: Sequence[str] = words) -> Answer:
                    return function(launch, *words)

                self.kernels.append(Kernel(self.name, name, answer, blocks, grids, cpu_only))
            return function

        return register

    @property
    def source(self) -> str:
        """The program: the prelude and the kernels in one module."""
        text = expand(self.text or (HERE / f"{self.name}.mlir").read_text())
        return f"gpu.module @{self.name} {{\n{(HERE / 'prelude.mlir').read_text()}{text}}}\n"


def expand(text: str) -> str:
    """Repeats what stands between ``// each A B: a1 b1, a2 b2`` and ``// end`` with ``$A`` and ``$B`` replaced; with
    one name, its values are separated by spaces."""

    def repeated(match: re.Match[str]) -> str:
        names = match[1].split()
        rows = [row.split() for row in (match[2].split(",") if len(names) > 1 else match[2].split())]
        parts = []
        for row in rows:
            part = match[3]
            for name, value in zip(names, row, strict=True):
                part = part.replace(f"${name}", value)
            parts.append(part)
        return "".join(parts)

    return re.sub(r"^// each ([\w ]+): ([^\n]+)\n(.*?)^// end\n", repeated, text, flags=re.MULTILINE | re.DOTALL)


def all_themes() -> list[Theme]:
    return [importlib.import_module(f"{__name__}.{name}").THEME for name in THEMES]


def all_kernels() -> list[Kernel]:
    return list(itertools.chain.from_iterable(theme.kernels for theme in all_themes()))
