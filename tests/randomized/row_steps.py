"""Random chains of linalg operations on the same rows of integers, and what NumPy makes of them one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

Memory = dict[str, np.ndarray]
ARGUMENTS = {"x": "elements", "y": "elements", "z": "elements", "s": "numbers", "t": "numbers", "g": "columns"}
LOCALS = {"p": "elements", "q": "elements", "u": "numbers", "v": "numbers"}
KINDS = ARGUMENTS | LOCALS
MAPS = {"elements": "(i, k) -> (i, k)", "numbers": "(i, k) -> (i)", "columns": "(i, k) -> (k)"}
BODIES = {"addi": np.add, "muli": np.multiply, "xori": np.bitwise_xor, "subi": np.subtract}
COMBINERS: dict[str, Callable[..., np.ndarray]] = {
    "addi": lambda x, first: first + x.sum(1, dtype=np.int32),
    "maxsi": lambda x, first: np.maximum(first, x.max(1, initial=-(2**31))),
    "xori": lambda x, first: first ^ np.bitwise_xor.reduce(x, 1),
}
LENGTHS = (1, 40, 64, 65, 100, 132, 1024, 1028, 2500)


@dataclass(frozen=True)
class Program:
    """A function @f{seed} of six memrefs of i32: x, y, z (rows x length), s, t (rows), g (length)."""

    name: str
    text: str
    rows: int
    length: int
    shared: bool  # x and y are the same memory
    steps: Sequence[Callable[[Memory], None]]

    def arrays(self) -> list[np.ndarray]:
        """Arguments of a call."""
        random = np.random.default_rng(self.rows)
        shapes = {"elements": (self.rows, self.length), "numbers": (self.rows,), "columns": (self.length,)}
        memory = {name: random.integers(-(2**31), 2**31, shapes[kind], np.int32) for name, kind in KINDS.items()}
        if self.shared:
            memory["y"] = memory["x"]
        return [memory[name] for name in ARGUMENTS]

    def expected(self) -> list[np.ndarray]:
        """What a call leaves in such arguments."""
        arrays = self.arrays()
        memory = dict(zip(ARGUMENTS, arrays, strict=True)) | {
            name: arrays[0 if kind == "elements" else 3].copy() for name, kind in LOCALS.items()
        }
        for step in self.steps:
            step(memory)
        return arrays


class _Writer:
    def __init__(self, random: Random, rows: int, length: int, static: bool) -> None:
        self.random = random
        sizes = (str(rows), str(length)) if static else ("?", "?")
        shapes = {"elements": "x".join(sizes), "numbers": sizes[0], "columns": sizes[1]}
        self.types = {kind: f"memref<{shape}xi32>" for kind, shape in shapes.items()}
        self.lines = [
            "%seven = arith.constant 7 : i32",
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            f"%rows = memref.dim %x, %c0 : {self.types['elements']}",
            f"%length = memref.dim %x, %c1 : {self.types['elements']}",
        ]
        dynamic = {"elements": "%rows, %length", "numbers": "%rows"}
        for name, kind in LOCALS.items():
            self.lines += [f"%{name} = memref.alloc({'' if static else dynamic[kind]}) : {self.types[kind]}"]
        self.steps: list[Callable[[Memory], None]] = []
        for name in LOCALS:
            self.fill(name)

    def some(self, *kinds: str) -> str:
        names = [name for name, kind in KINDS.items() if kind in kinds]
        # Arguments that are written may be one memory, which keeps steps apart.
        return self.random.choice(names + 6 * [name for name in names if name in LOCALS])

    def typed(self, *names: str) -> str:
        types = ", ".join(self.types[KINDS[name]] for name in names)
        return ", ".join(f"%{name}" for name in names) + " : " + types

    def leaves(self, target: str, values: Callable[[Memory], np.ndarray]) -> None:
        def step(memory: Memory) -> None:
            memory[target][...] = values(memory)

        self.steps.append(step)

    def generic(self, inputs: Sequence[str], output: str, loops: Sequence[str], body: str) -> None:
        maps = [MAPS[KINDS[name]] if len(loops) == 2 else "(i) -> (i)" for name in (*inputs, output)]
        self.lines += [
            f"linalg.generic {{indexing_maps = [{', '.join(f'affine_map<{each}>' for each in maps)}],",
            f"    iterator_types = [{', '.join(loops)}]}} ins({self.typed(*inputs)}) outs({self.typed(output)}) {{",
            f"^bb0({', '.join(f'%v{number}: i32' for number in range(len(maps)))}):",
            f"  %r = arith.{body} : i32",
            "  linalg.yield %r : i32",
            "}",
        ]

    def fill(self, name: str) -> None:
        self.lines += [f"linalg.fill ins(%seven : i32) outs({self.typed(name)})"]
        self.leaves(name, lambda memory: np.int32(7))

    def copy(self, source: str, target: str) -> None:
        kind = self.types[KINDS[source]]
        self.lines += [f"memref.copy %{source}, %{target} : {kind} to {kind}"]
        self.leaves(target, lambda memory: memory[source].copy())

    def reduce(self) -> None:
        source, target, combiner = self.some("elements"), self.some("numbers"), self.random.choice(list(COMBINERS))
        self.generic([source], target, ['"parallel"', '"reduction"'], f"{combiner} %v1, %v0")
        self.leaves(target, lambda memory: COMBINERS[combiner](memory[source], memory[target]))

    def elements(self) -> None:
        left, target, right = self.some("elements"), self.some("elements"), self.some(*MAPS)
        body, is_old = self.random.choice(list(BODIES)), self.random.random() < 0.3
        self.generic([left, right], target, ['"parallel"'] * 2, f"{body} %v{2 if is_old else 0}, %v1")

        def values(memory: Memory) -> np.ndarray:
            other = memory[right][:, None] if KINDS[right] == "numbers" else memory[right]
            return BODIES[body](memory[target if is_old else left], other)

        self.leaves(target, values)

    def numbers(self) -> None:
        left, right, target = (self.some("numbers") for _ in range(3))
        body = self.random.choice(list(BODIES))
        self.generic([left, right], target, ['"parallel"'], f"{body} %v0, %v1")
        self.leaves(target, lambda memory: BODIES[body](memory[left], memory[right]))

    def one(self) -> None:
        kind = self.random.choice(["elements", "numbers"])
        choices = [self.reduce, self.reduce, self.elements, self.elements, self.numbers]
        choices += [lambda: self.copy(self.some(kind), self.some(kind)), lambda: self.fill(self.some(kind))]
        self.random.choice(choices)()

    def text(self, name: str) -> str:
        ends = [f"memref.dealloc {self.typed(local)}" for local in LOCALS]
        arguments = ", ".join(f"%{argument}: {self.types[kind]}" for argument, kind in ARGUMENTS.items())
        body = "\n".join(f"  {line}" for line in [*self.lines, *ends, "return"])
        return f"func.func @{name}({arguments}) {{\n{body}\n}}\n"


def generate(seed: int) -> Program:
    """A function of two to ten steps; the same seed gives the same."""
    random = Random(seed)
    rows, length = random.choice([1, 3, 9]), random.choice(LENGTHS)
    writer = _Writer(random, rows, length, static=random.random() < 0.7)
    for _ in range(random.randint(2, 10)):
        writer.one()
    if random.random() < 0.7:  # what the function has for itself shows
        writer.copy("u", "t")
        writer.copy("p", "z")
    name = f"f{seed}"
    return Program(name, writer.text(name), rows, length, random.random() < 0.3, writer.steps)
