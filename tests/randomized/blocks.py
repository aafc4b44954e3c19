"""Random kernels of blocks, with what they must compute. What all threads of a block do together, branches and loops
too, has barriers and exchanges inside; what each does for itself has none. Values are int32[threads]."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from randomized.block_steps import BlockSteps, Step, Values

SHAPES = [(32, 1, 1), (64, 1, 1), (128, 1, 1), (256, 1, 1), (8, 8, 1), (16, 2, 2), (32, 4, 1)]
ARGUMENTS = ["%a", "%b"]
Array = np.ndarray[Any, Any]


class Flow(BlockSteps):
    """Steps that have steps inside. ``number``: of the block, the argument %u, which all threads know."""

    def __init__(self, chance: random.Random, threads: int, lanes: int, prefix: str) -> None:
        super().__init__(chance, threads, lanes)
        self.prefix, self.functions, self.argument = prefix, [], 0

    functions: list[str]

    def several(self, scope: list[str], depth: int, together: bool, count: int, alone: bool = False) -> Step:
        """``together``: all threads come here; ``alone``: in a function, which has no memory."""
        text: list[str] = []
        runs: list[Callable[[Values], None]] = []
        for _ in range(count):
            kinds = ["arithmetic"] * 3 + ["other_type"] + ["own_memory"] * (not alone)
            if together:
                kinds += ["exchange"] * 3 + ["reduction", "atomic"] + ["shuffle"] * (self.threads % self.lanes == 0)
            if depth:
                kinds += ["branch", "loop"] * (2 if together else 1) + ["call"] * (not alone)
            kind = self.chance.choice(kinds)
            if kind in ("branch", "loop"):
                shared = together and self.chance.random() < 0.6
                lines, run = getattr(self, kind)(scope, depth - 1, shared, alone)
            elif kind in ("other_type", "own_memory"):
                lines, run = getattr(self, kind)(scope, ["gpu.barrier"] * (together and self.chance.random() < 0.5))
            else:
                lines, run = getattr(self, kind)(scope)
            text += lines
            runs.append(run)

        def all_runs(at: Values) -> None:
            for run in runs:
                run(at)

        return text, all_runs

    def call(self, scope: list[str]) -> Step:
        given, new, name = (
            [self.chance.choice(scope) for _ in range(2)],
            self.name(),
            f"{self.prefix}f{len(self.functions)}",
        )
        scope.append(new)
        constants, self.constants = self.constants, {}
        inner = ["%c", "%d"]
        lines, run = self.several(inner, 2, False, self.chance.randint(1, 4), alone=True)
        result = self.chance.choice(inner)
        body = "\n".join([*self.constants.values(), *lines, f"return {result} : i32"])
        self.constants = constants
        self.functions.append(f"func.func private @{name}(%c: i32, %d: i32) -> i32 {{\n{body}\n}}\n")

        def called(at: Values) -> None:
            own = {"%c": at[given[0]], "%d": at[given[1]]}
            run(own)
            at[new] = own[result]

        return [f"{new} = func.call @{name}({', '.join(given)}) : (i32, i32) -> i32"], called

    def condition(self, scope: list[str], together: bool) -> tuple[list[str], str, Callable[[Values], Array]]:
        new = self.name()
        a, b = self.chance.choice(scope), self.chance.choice(scope)
        if not together:
            return [f"{new} = arith.cmpi slt, {a}, {b} : i32"], new, lambda at: at[a] < at[b]
        mask = self.number(1 << self.chance.randrange(4))
        compared = [f"{new}m = arith.andi {{}}, {mask} : i32", f"{new} = arith.cmpi ne, {new}m, {self.number(0)} : i32"]
        bit = int(mask.rsplit("_", 1)[1])
        if self.chance.random() < 0.5:
            compared[0] = compared[0].format("%u")
            return compared, new, lambda at: np.full(self.threads, bool(self.argument & bit))
        compared[0] = compared[0].format(f"{new}r")
        reduced = f"{new}r = gpu.all_reduce xor {a} uniform {{}} : (i32) -> i32"
        return [reduced, *compared], new, lambda at: np.full(self.threads, bool(np.bitwise_xor.reduce(at[a]) & bit))

    def branch(self, scope: list[str], depth: int, together: bool, alone: bool) -> Step:
        lines, condition, holds = self.condition(scope, together)
        ways = []
        for least in (1, 0):
            inner = list(scope)
            step = self.several(inner, depth, together, self.chance.randint(least, 4), alone)
            ways.append((step, self.chance.choice(inner)))
        (then, one), (otherwise, other) = ways
        new = self.name()
        scope.append(new)
        lines = [*lines, f"{new} = scf.if {condition} -> (i32) {{", *then[0], f"scf.yield {one} : i32"]
        lines += ["} else {", *otherwise[0], f"scf.yield {other} : i32", "}"]

        def run(at: Values) -> None:
            true, false = dict(at), dict(at)
            then[1](true)
            otherwise[1](false)
            at[new] = np.where(holds(at), true[one], false[other])

        return lines, run

    def steps_of_loop(self, scope: list[str], together: bool) -> tuple[list[str], Callable[[Values], Array]]:
        """How often, up to three times: %v…n. What is read from one thread is the same for all, too."""
        new, value = self.name(), self.chance.choice(scope)
        kind = self.chance.choice(["argument", "memory", "reduction"]) if together else "value"
        before, source = [], value
        if kind == "argument":
            source = "%u"
        elif kind == "memory":
            memory, thread = self.shared(), self.chance.randrange(self.threads)
            before = [f"memref.store {value}, {memory}[%place] : {self.memory}", "gpu.barrier"]
            place, source = self.number(thread, "index"), f"{new}l"
            before += [f"{source} = memref.load {memory}[{place}] : {self.memory}", "gpu.barrier"]
        elif kind == "reduction":
            source = f"{new}l"
            before = [f"{source} = gpu.all_reduce maxsi {value} uniform {{}} : (i32) -> i32"]
        before += [
            f"{new}m = arith.andi {source}, {self.number(3)} : i32",
            f"{new}n = arith.index_cast {new}m : i32 to index",
        ]

        def count(at: Values) -> Array:
            if kind == "value":
                return at[value] & 3
            numbers = {
                "argument": lambda: self.argument,
                "memory": lambda: at[value][thread],
                "reduction": lambda: at[value].max(),
            }
            return np.full(self.threads, numbers[kind]() & 3)

        return before, count

    def loop(self, scope: list[str], depth: int, together: bool, alone: bool) -> Step:
        before, count = self.steps_of_loop(scope, together)
        end = before[-1].split(" = ")[0]
        first, carried, new, index, number = self.chance.choice(scope), *(self.name() for _ in range(4))
        inner = [*scope, carried, number]
        body, run = self.several(inner, depth, together, self.chance.randint(1, 4), alone)
        last = self.chance.choice(inner)
        scope.append(new)
        zero, one = self.number(0, "index"), self.number(1, "index")
        body = [f"{number} = arith.index_cast {index} : index to i32", *body]
        if self.chance.random() < 0.6:
            head = f"{new} = scf.for {index} = {zero} to {end} step {one} iter_args({carried} = {first}) -> (i32) {{"
            lines = [*before, head, *body, f"scf.yield {last} : i32", "}"]
        else:
            types = "index, i32"
            lines = [
                *before,
                f"{new}i, {new} = scf.while ({new}j = {zero}, {new}c = {first}) : ({types}) -> ({types}) {{",
                f"{new}more = arith.cmpi ult, {new}j, {end} : index",
                f"scf.condition({new}more) {new}j, {new}c : {types}",
                "} do {",
                f"^bb0({index}: index, {carried}: i32):",
                *body,
                f"{new}next = arith.addi {index}, {one} : index",
                f"scf.yield {new}next, {last} : {types}",
                "}",
            ]

        def repeated(at: Values) -> None:
            steps, value = count(at), at[first]
            for step in range(int(steps.max())):
                within = {**at, carried: value, number: np.full(self.threads, step, np.int32)}
                run(within)
                value = np.where(step < steps, within[last], value)
            at[new] = value

        return lines, repeated


@dataclass(frozen=True)
class Kernel:
    """``text``: functions and a kernel of %u (i32), %x and %y (memref<?xi32>) and %out (memref<?xi32>), which it
    writes, one element for each thread of the grid."""

    name: str
    text: str
    block: tuple[int, int, int]
    flow: Flow
    run: Callable[[Values], None]
    result: str

    @property
    def threads(self) -> int:
        return int(np.prod(self.block))

    def expected(self, u: int, x: Array, y: Array) -> Array:
        self.flow.argument = u
        found = []
        for start in range(0, len(x), self.threads):
            part = slice(start, start + self.threads)
            at: Values = {"%a": x[part], "%b": y[part], "%t": np.arange(self.threads, dtype=np.int32)}
            self.run(at)
            found.append(at[self.result])
        return np.concatenate(found)


def generate(seed: int, lanes: int = 32) -> Kernel:
    chance = random.Random(seed)
    block = chance.choice(SHAPES)
    name, threads = f"k{seed}", int(np.prod(block))
    flow = Flow(chance, threads, lanes, name)
    scope = [*ARGUMENTS, "%t"]
    lines, run = flow.several(scope, 3, True, chance.randint(4, 10))
    result = scope[-1]
    place = [
        *(f"%t{axis} = gpu.thread_id {axis}" for axis in "xyz"),
        f"%place = affine.linearize_index disjoint [%tz, %ty, %tx] by ({block[2]}, {block[1]}, {block[0]}) : index",
        "%t = arith.index_cast %place : index to i32",
        f"%first = arith.muli %bx, {flow.number(threads, 'index')} : index",
        "%at = arith.addi %first, %place : index",
        *(
            f"{value} = memref.load {array}[%at] : memref<?xi32>"
            for value, array in zip(ARGUMENTS, ("%x", "%y"), strict=True)
        ),
    ]
    body = [
        *flow.constants.values(),
        "%bx = gpu.block_id x",
        *place,
        *lines,
        f"memref.store {result}, %out[%at] : memref<?xi32>",
    ]
    workgroup = ", ".join(f"%s{i}: {flow.memory}" for i in range(2))
    private = ", ".join(f"{memory}: {kind}" for memory, kind in flow.private)
    known = f" attributes {{known_block_size = array<i32: {', '.join(map(str, block))}>}}" if seed % 2 else ""
    text = (
        "".join(flow.functions)
        + f"gpu.func @{name}(%u: i32, %x: memref<?xi32>, %y: memref<?xi32>, %out: memref<?xi32>) workgroup({workgroup})"
        + (f" private({private})" if private else "")
        + f" kernel{known} {{\n"
        + "\n".join([*body, "gpu.return", "}\n"])
    )
    return Kernel(name, text, block, flow, run, result)
