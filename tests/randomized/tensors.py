"""Random functions of integer tensors, as compilers of array programs write them, with what NumPy makes of them.

A value has one size for each dimension, of which its type knows some; what it does not know comes from arguments, or
from tensor.dim. Each step writes its text and keeps what computes the same with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

Array = Any
Environment = dict[str, Array]
Compute = Callable[[Environment], None]
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 17, 33)
TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


@dataclass(frozen=True)
class Value:
    """A tensor of the program: its name, its sizes, and which of these its type has."""

    name: str
    shape: tuple[int, ...]
    known: tuple[bool, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def type(self, element: str) -> str:
        sizes = "".join(f"{size if known else '?'}x" for size, known in zip(self.shape, self.known, strict=True))
        return f"tensor<{sizes}{element}>"


@dataclass
class Function:
    """A function @f{seed}: its text so far, and what computes it."""

    seed: int
    random: Random = field(init=False)
    element: str = field(init=False)
    sizes: list[int] = field(init=False)  # what %s0, %s1 … are
    helpers: list[str] = field(default_factory=list)  # other functions
    lines: list[str] = field(default_factory=list)
    steps: list[Compute] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.element = self.random.choice(list(TYPES))
        self.sizes = [self.random.choice(SIZES) for _ in range(3)]

    @property
    def name(self) -> str:
        return f"f{self.seed}"

    @property
    def text(self) -> str:
        return "".join(self.helpers) + self.written(self.name, "", self.arguments, self.results)

    def written(self, name: str, kind: str, arguments: Sequence[Value], results: Sequence[Value]) -> str:
        """A function of the lines so far, which also takes the sizes."""
        tensors = [f"%{each.name}: {each.type(self.element)}" for each in arguments]
        numbers = [f"%s{i}: index" for i in range(len(self.sizes))]
        types = ", ".join(each.type(self.element) for each in results)
        returned = ", ".join(f"%{each.name}" for each in results)
        body = "\n".join(f"  {line}" for line in [*self.lines, f"return {returned} : {types}"])
        return f"func.func {kind}@{name}({', '.join(tensors + numbers)}) -> ({types}) {{\n{body}\n}}\n"

    # For generators of steps.

    def fresh(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def write(self, *lines: str) -> None:
        self.lines += lines

    def constant(self, number: int, kind: str = "index") -> str:
        name = self.fresh()
        self.write(f"%{name} = arith.constant {number} : {kind}")
        return name

    def size(self, value: Value, axis: int) -> str:
        """The size of a dimension, as a value of the program."""
        known, size = value.known[axis], value.shape[axis]
        ways = ["constant"] if known else ["dim", *(["argument"] if size in self.sizes else [])]
        way = self.random.choice(ways)
        if way == "argument":
            return f"s{self.sizes.index(size)}"
        place = self.constant(size if known else axis)
        if known:
            return place
        name = self.fresh()
        self.write(f"%{name} = tensor.dim %{value.name}, %{place} : {value.type(self.element)}")
        return name

    def new(self, shape: Sequence[int], known: Sequence[bool]) -> Value:
        """A value that the caller's text defines."""
        value = Value(self.fresh(), tuple(shape), tuple(known))
        self.values.append(value)
        return value

    def empty(self, like: Sequence[tuple[Value, int]], known: Sequence[bool] | None = None) -> Value:
        """tensor.empty, with the sizes of dimensions of other values; it is no value of the program."""
        known = [value.known[axis] for value, axis in like] if known is None else known
        sizes = [self.size(value, axis) for (value, axis), is_known in zip(like, known, strict=True) if not is_known]
        made = Value(self.fresh(), tuple(value.shape[axis] for value, axis in like), tuple(known))
        self.write(
            f"%{made.name} = tensor.empty({', '.join(f'%{size}' for size in sizes)}) : {made.type(self.element)}"
        )
        return made

    def filled(self, like: Sequence[tuple[Value, int]], number: int) -> Value:
        empty, start = self.empty(like), self.constant(number, self.element)
        made = Value(self.fresh(), empty.shape, empty.known)
        kind = made.type(self.element)
        self.write(f"%{made.name} = linalg.fill ins(%{start} : {self.element}) outs(%{empty.name} : {kind}) -> {kind}")
        self.steps.append(lambda env: env.update({made.name: np.full(made.shape, number, self.dtype)}))
        return made

    def cast(self, value: Value, known: Sequence[bool]) -> Value:
        """The value with a type that knows these sizes."""
        if tuple(known) == value.known:
            return value
        made = Value(self.fresh(), value.shape, tuple(known))
        kinds = f"{value.type(self.element)} to {made.type(self.element)}"
        self.write(f"%{made.name} = tensor.cast %{value.name} : {kinds}")
        self.steps.append(lambda env: env.update({made.name: env[value.name]}))
        return made

    def pick(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the values, the last ones more often than others."""
        fitting = [value for value in self.values if wanted(value)]
        if not fitting:
            return None
        return self.random.choice(fitting[-3:] if self.random.random() < 0.6 else fitting)

    @property
    def dtype(self) -> Any:
        return TYPES[self.element]

    # For tests.

    def inputs(self) -> list[Array]:
        """Arrays for the tensors and, behind them, the sizes. Numbers are small and large."""
        random = np.random.default_rng(self.seed)
        limits = np.iinfo(self.dtype)
        arrays: list[Array] = []
        for each in self.arguments:
            small = random.integers(-9, 10, each.shape).astype(self.dtype)
            large = random.integers(limits.min, limits.max, each.shape, self.dtype, endpoint=True)
            arrays.append(np.where(random.random(each.shape) < 0.8, small, large).astype(self.dtype))
        return [*arrays, *self.sizes]

    def expected(self) -> list[Array]:
        """What the function gives for them."""
        env: Environment = dict(zip((each.name for each in self.arguments), self.inputs(), strict=False))
        with np.errstate(over="ignore"):
            for step in self.steps:
                step(env)
        return [env[each.name] for each in self.results]
