"""Random kernels on integers of 1 to 128 bits, scalars or vectors, with what they must compute in Python's integers.

Values are signed numbers; a step adds one or two to the kernel's text and to the list of computations."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

WIDTHS = (1, 2, 3, 7, 8, 9, 13, 16, 24, 31, 32, 33, 48, 57, 63, 64, 65, 80, 100, 127, 128)
INPUTS = (8, 16, 32, 64)
"""Widths of the kernel's arrays: %x0 … of i8 to i64. What it stores goes to %out, memref<?x?xi64>."""

Value = tuple[str, int]  # SSA name, width
Env = dict[str, int]


def signed(number: int, width: int) -> int:
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


def unsigned(number: int, width: int) -> int:
    return number & (1 << width) - 1


def _towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _trailing_zeros(number: int, width: int) -> int:
    return (number & -number).bit_length() - 1 if number else width


SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add, "subi": operator.sub, "muli": operator.mul, "andi": operator.and_, "ori": operator.or_,
    "xori": operator.xor, "maxsi": max, "minsi": min,
}  # fmt: skip
UNSIGNED: dict[str, Callable[[int, int], int]] = {"maxui": max, "minui": min}
QUOTIENTS: dict[str, Callable[[int, int], int]] = {
    "divsi": _towards_zero, "remsi": lambda a, b: a - b * _towards_zero(a, b), "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
}  # fmt: skip
UNSIGNED_QUOTIENTS: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv, "remui": operator.mod, "ceildivui": lambda a, b: -(-a // b),
}  # fmt: skip
COUNTS: dict[str, Callable[[int, int], int]] = {
    "ctpop": lambda a, width: a.bit_count(), "ctlz": lambda a, width: width - a.bit_length(), "cttz": _trailing_zeros,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


@dataclass
class Kernel:
    """One kernel, whose threads take ``lanes`` elements each. ``columns``: what each column of %out has, as a value
    and the first of the 64 bits that are stored of it."""

    name: str
    lanes: int
    choose: random.Random
    lines: list[str] = field(default_factory=list)
    computations: list[Callable[[Env], None]] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    columns: list[tuple[Value, int]] = field(default_factory=list)
    names: int = 0

    def type(self, width: int) -> str:
        return f"vector<{self.lanes}xi{width}>" if self.lanes > 1 else f"i{width}"

    def line(self, text: str) -> str:
        """Adds ``%new = text`` and returns the name."""
        self.names += 1
        self.lines.append(f"    %v{self.names} = {text}")
        return f"%v{self.names}"

    def made(self, name: str, width: int, compute: Callable[[Env], int]) -> None:
        self.computations.append(lambda env: env.update({name: signed(compute(env), width)}))
        self.values.append((name, width))

    def constant(self, number: int, width: int) -> str:
        text = str(signed(number, width)) if width > 1 else ("true" if number & 1 else "false")
        kind = self.type(width)
        return self.line(f"arith.constant dense<{text}> : {kind}" if self.lanes > 1 else f"arith.constant {number & 1}"
                         " : i1" if width == 1 else f"arith.constant {text} : {kind}")  # fmt: skip

    def pick(self, width: int | None = None) -> Value:
        able = [value for value in self.values if width in (None, value[1])]
        if able and self.choose.random() < 0.85:
            return self.choose.choice(able[-12:])
        width = width or self.choose.choice(WIDTHS)
        number = self.choose.choice((0, 1, -1, 2, 1 << width - 1, (1 << width - 1) - 1, self.choose.getrandbits(width)))
        self.made(self.constant(number, width), width, lambda env: number)
        return self.values[-1]

    def select(self, condition: str, one: str, two: str, width: int) -> str:
        conditions = f"{self.type(1)}, " if self.lanes > 1 else ""
        return self.line(f"arith.select {condition}, {one}, {two} : {conditions}{self.type(width)}")

    # Steps.

    def binary(self) -> None:
        a, width = self.pick()
        b, _ = self.pick(width)
        name, compute = self.choose.choice([*SIGNED.items(), *UNSIGNED.items()])
        view = unsigned if name in UNSIGNED else signed
        result = self.line(f"arith.{name} {a}, {b} : {self.type(width)}")
        self.made(result, width, lambda env: compute(view(env[a], width), view(env[b], width)))

    def quotient(self) -> None:
        """The divisor is not zero, and where signs count, positive or below -1."""
        a, width = self.pick()
        b, _ = self.pick(width)
        if width < 3:
            return
        kind, low = self.type(width), (1 << width - 1) - 1
        positive = self.line(f"arith.andi {b}, {self.constant(low, width)} : {kind}")
        is_zero = self.line(f"arith.cmpi eq, {positive}, {self.constant(0, width)} : {kind}")
        divisor = self.select(is_zero, self.constant(1, width), positive, width)
        negative = self.choose.random() < 0.4
        name, compute = self.choose.choice([*(QUOTIENTS if negative else QUOTIENTS | UNSIGNED_QUOTIENTS).items()])
        if negative:
            divisor = self.line(f"arith.xori {divisor}, {self.constant(-1, width)} : {kind}")
        view = unsigned if name in UNSIGNED_QUOTIENTS else signed

        def value(env: Env) -> int:
            number = env[b] & low or 1
            return compute(view(env[a], width), -number - 1 if negative else number)

        self.made(self.line(f"arith.{name} {a}, {divisor} : {kind}"), width, value)

    def shift(self) -> None:
        a, width = self.pick()
        b, _ = self.pick(width)
        if width < 3:
            return
        kind, name = self.type(width), self.choose.choice(("shli", "shrsi", "shrui"))
        amount = self.line(f"arith.remui {b}, {self.constant(width - 1, width)} : {kind}")
        view = unsigned if name == "shrui" else signed
        way = operator.lshift if name == "shli" else operator.rshift
        result = self.line(f"arith.{name} {a}, {amount} : {kind}")
        self.made(result, width, lambda env: way(view(env[a], width), unsigned(env[b], width) % (width - 1)))

    def convert(self) -> None:
        a, width = self.pick()
        to = self.choose.choice([each for each in WIDTHS if each != width])
        name = "trunci" if to < width else self.choose.choice(("extsi", "extui"))
        view = unsigned if name == "extui" else signed
        result = self.line(f"arith.{name} {a} : {self.type(width)} to {self.type(to)}")
        self.made(result, to, lambda env: view(env[a], width))

    def compare(self) -> None:
        a, width = self.pick()
        b, _ = self.pick(width)
        name, holds = self.choose.choice([*COMPARISONS.items()])
        sign = self.choose.choice("su") if name not in ("eq", "ne") else ""
        view = unsigned if sign == "u" else signed
        result = self.line(f"arith.cmpi {sign}{name}, {a}, {b} : {self.type(width)}")
        self.made(result, 1, lambda env: holds(view(env[a], width), view(env[b], width)))

    def choice(self) -> None:
        condition, _ = self.pick(1)
        a, width = self.pick()
        b, _ = self.pick(width)
        self.made(self.select(condition, a, b, width), width, lambda env: env[a] if env[condition] else env[b])

    def count(self) -> None:
        a, width = self.pick()
        name, compute = self.choose.choice([*COUNTS.items()])
        result = self.line(f"math.{name} {a} : {self.type(width)}")
        self.made(result, width, lambda env: compute(unsigned(env[a], width), width))

    def extended(self) -> None:
        a, width = self.pick()
        b, _ = self.pick(width)
        name, view, way = self.choose.choice(
            (("mulsi", signed, operator.mul), ("mului", unsigned, operator.mul), ("addui", unsigned, operator.add))
        )
        high = 1 if name == "addui" else width
        self.names += 2
        low, rest = f"%v{self.names - 1}", f"%v{self.names}"
        types = self.type(width) + (f", {self.type(1)}" if name == "addui" else "")
        self.lines.append(f"    {low}, {rest} = arith.{name}_extended {a}, {b} : {types}")
        self.made(low, width, lambda env: way(env[a], env[b]))
        self.made(rest, high, lambda env: way(view(env[a], width), view(env[b], width)) >> width)

    # The whole.

    def write(self, steps: int) -> None:
        self.lines.append("    %i = gpu.thread_id x")
        if self.lanes > 1:
            self.lines.append(f"    %lanes = arith.constant {self.lanes} : index")
            self.lines.append("    %at = arith.muli %i, %lanes : index")
        for number, width in enumerate(INPUTS):
            memory = f"memref<?xi{width}>"
            load = f"vector.load %x{number}[%at] : {memory}, {self.type(width)}"
            name = self.line(load if self.lanes > 1 else f"memref.load %x{number}[%i] : {memory}")
            self.computations.append(lambda env, name=name, number=number: env.update({name: env[f"%x{number}"]}))
            self.values.append((name, width))
        for _ in range(steps):
            self.choose.choice((self.binary, self.binary, self.quotient, self.shift, self.convert, self.convert,
                                self.compare, self.choice, self.count, self.extended))()  # fmt: skip
        for value in self.values[-10:]:
            for first in range(0, value[1], 64):
                self.store(value, first)

    def store(self, value: Value, first: int) -> None:
        name, width = value
        if first:
            name = self.line(f"arith.shrui {name}, {self.constant(first, width)} : {self.type(width)}")
        if width != 64:
            cast = "extsi" if width < 64 else "trunci"
            name = self.line(f"arith.{cast} {name} : {self.type(width)} to {self.type(64)}")
        column = self.line(f"arith.constant {len(self.columns)} : index")
        for lane in range(self.lanes):
            element, row = name, "%i"
            if self.lanes > 1:
                element = self.line(f"vector.extract {name}[{lane}] : i64 from {self.type(64)}")
                row = self.line(f"arith.addi %at, {self.line(f'arith.constant {lane} : index')} : index")
            self.lines.append(f"    memref.store {element}, %out[{row}, {column}] : memref<?x?xi64>")
        self.columns.append((value, first))

    @property
    def text(self) -> str:
        arrays = "".join(f"%x{number}: memref<?xi{width}>, " for number, width in enumerate(INPUTS))
        body = "\n".join(self.lines)
        return f"  gpu.func @{self.name}({arrays}%out: memref<?x?xi64>) kernel {{\n{body}\n    gpu.return\n  }}\n"

    def expected(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """What %out has afterwards."""
        out = np.zeros((len(inputs[0]), len(self.columns)), np.int64)
        for row, numbers in enumerate(zip(*inputs, strict=True)):
            env = {f"%x{number}": int(value) for number, value in enumerate(numbers)}
            for compute in self.computations:
                compute(env)
            out[row] = [
                signed(unsigned(env[name], width) >> first if width > 64 else env[name], 64)
                for (name, width), first in self.columns
            ]
        return out


def generate(seed: int, steps: int = 30) -> Kernel:
    """A kernel on scalars, or on vectors of up to 8 numbers."""
    choose = random.Random(seed)
    kernel = Kernel(f"k{seed}", choose.choice((1, 1, 2, 3, 8)), choose)
    kernel.write(steps)
    return kernel


def inputs(seed: int, size: int = 24) -> list[np.ndarray]:
    """Arrays for it, with the numbers at the ends of each type among them."""
    rng, arrays = np.random.default_rng(seed), []
    for width in INPUTS:
        limits = np.iinfo(f"int{width}")
        array = rng.integers(limits.min, limits.max, size, limits.dtype, endpoint=True)
        array[:6] = 0, 1, -1, limits.max, limits.min, 2
        arrays.append(array)
    return arrays
