"""Steps of random kernels of blocks, of one value for each thread: what a thread computes alone, and what the threads
of a block exchange. A step is its text and what it does to the values so far, arrays of int32[threads] by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Values = dict[str, Any]
Step = tuple[list[str], Callable[[Values], None]]

OPERATIONS: dict[str, Callable[..., Any]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "xori": np.bitwise_xor, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "maxsi": np.maximum, "minsi": np.minimum,
}  # fmt: skip
REDUCTIONS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "maxsi": np.maximum, "minsi": np.minimum,
}  # fmt: skip
ATOMICS: dict[str, Any] = {"addi": np.add, "maxs": np.maximum, "ori": np.bitwise_or}
NARROW: dict[str, Any] = {"i8": np.int8, "i16": np.int16}


class BlockSteps:
    """Names, constants and memory of one kernel, and its steps. ``lanes``: how many threads a subgroup has."""

    def __init__(self, chance: random.Random, threads: int, lanes: int) -> None:
        self.chance, self.threads, self.lanes = chance, threads, lanes
        self.constants: dict[str, str] = {}
        self.private: list[tuple[str, str]] = []
        self.count = 0
        self.memory = f"memref<{threads}xi32, #gpu.address_space<workgroup>>"
        self.places = np.arange(threads)

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def number(self, value: int, kind: str = "i32") -> str:
        name = f"%{kind}_{value}"
        self.constants[name] = f"{name} = arith.constant {value} : {kind}"
        return name

    def shared(self) -> str:
        return self.chance.choice(["%s0", "%s1"])

    def arithmetic(self, scope: list[str]) -> Step:
        a, b, new = self.chance.choice(scope), self.chance.choice(scope), self.name()
        scope.append(new)
        kind = self.chance.choice([*OPERATIONS, "remui", "shli", "select"])
        if kind == "select":
            text = [
                f"{new}c = arith.cmpi slt, {a}, {b} : i32",
                f"{new} = arith.select {new}c, {a}, {self.number(7)} : i32",
            ]
            return text, lambda at: at.update({new: np.where(at[a] < at[b], at[a], np.int32(7))})
        if kind in OPERATIONS:
            text = [f"{new} = arith.{kind} {a}, {b} : i32"]
            return text, lambda at: at.update({new: OPERATIONS[kind](at[a], at[b])})
        text = [f"{new}m = arith.andi {b}, {self.number(15)} : i32"]
        if kind == "shli":
            text += [f"{new} = arith.shli {a}, {new}m : i32"]
            return text, lambda at: at.update({new: at[a] << (at[b] & 15)})
        text += [f"{new}d = arith.ori {new}m, {self.number(1)} : i32", f"{new} = arith.remui {a}, {new}d : i32"]
        return text, lambda at: at.update(
            {new: (at[a].view(np.uint32) % (at[b] & 15 | 1).view(np.uint32)).view(np.int32)}
        )

    def other_type(self, scope: list[str], between: list[str]) -> Step:
        """Through another type, which the thread has while it does what is `between`."""
        a, b, new = self.chance.choice(scope), self.chance.choice(scope), self.name()
        scope.append(new)
        kind = self.chance.choice(["i1", "i8", "i16", "i64", "f32", "f64", "vector"])
        if kind == "i1":
            text = [
                f"{new}c = arith.cmpi slt, {a}, {b} : i32",
                *between,
                f"{new} = arith.select {new}c, {b}, {a} : i32",
            ]
            return text, lambda at: at.update({new: np.maximum(at[a], at[b])})
        if kind in NARROW:
            text = [f"{new}{x} = arith.trunci {value} : i32 to {kind}" for x, value in (("a", a), ("b", b))]
            text += [
                f"{new}p = arith.muli {new}a, {new}b : {kind}",
                *between,
                f"{new} = arith.extsi {new}p : {kind} to i32",
            ]
            return text, lambda at: at.update({new: (at[a] * at[b]).astype(NARROW[kind]).astype(np.int32)})
        if kind == "i64":
            text = [f"{new}a = arith.extsi {a} : i32 to i64", f"{new}b = arith.extui {b} : i32 to i64"]
            text += [f"{new}p = arith.muli {new}a, {new}b : i64", *between]
            text += [
                f"{new}s = arith.shrsi {new}p, {self.number(9, 'i64')} : i64",
                f"{new} = arith.trunci {new}s : i64 to i32",
            ]
            return text, lambda at: at.update(
                {new: (at[a].astype(np.int64) * at[b].view(np.uint32) >> 9).astype(np.int32)}
            )
        if kind == "vector":
            text = [f"{new}a = vector.from_elements {a}, {b}, {a}, {b} : vector<4xi32>", *between]
            text += [f"{new} = vector.reduction <add>, {new}a : vector<4xi32> into i32"]
            return text, lambda at: at.update({new: 2 * (at[a] + at[b])})
        text = [
            f"{new}a = arith.andi {a}, {self.number(127)} : i32",
            f"{new}b = arith.andi {b}, {self.number(127)} : i32",
        ]
        text += [f"{new}{x}f = arith.sitofp {new}{x} : i32 to {kind}" for x in "ab"]
        text += [
            f"{new}d = arith.subf {new}af, {new}bf : {kind}",
            *between,
            f"{new} = arith.fptosi {new}d : {kind} to i32",
        ]
        return text, lambda at: at.update({new: (at[a] & 127) - (at[b] & 127)})

    def own_memory(self, scope: list[str], between: list[str]) -> Step:
        """An array of the thread's, of which it reads an element that shows when it runs."""
        size, name, new = self.chance.choice([3, 4, 8]), f"%p{len(self.private)}", self.name()
        memory = f"memref<{size}xi32, #gpu.address_space<private>>"
        self.private.append((name, memory))
        values, which = [self.chance.choice(scope) for _ in range(size)], self.chance.choice(scope)
        scope.append(new)
        text = [f"memref.store {value}, {name}[{self.number(i, 'index')}] : {memory}" for i, value in enumerate(values)]
        text += [
            f"{new}r = arith.remui {which}, {self.number(size)} : i32",
            f"{new}i = arith.index_castui {new}r : i32 to index",
        ]
        text += [*between, f"{new} = memref.load {name}[{new}i] : {memory}"]

        def run(at: Values) -> None:
            at[new] = np.stack([at[value] for value in values])[at[which].view(np.uint32) % size, self.places]

        return text, run

    def exchange(self, scope: list[str]) -> Step:
        """Each thread stores at a place of its own and loads from another's."""
        value, new, memory = self.chance.choice(scope), self.name(), self.shared()
        factor = self.chance.choice([n for n in range(1, self.threads) if np.gcd(n, self.threads) == 1])
        shift, turn = self.chance.randrange(self.threads), self.chance.randrange(self.threads)
        scope.append(new)
        all_threads = self.number(self.threads, "index")
        text = [
            f"{new}f = arith.muli %place, {self.number(factor, 'index')} : index",
            f"{new}g = arith.addi {new}f, {self.number(shift, 'index')} : index",
            f"{new}to = arith.remui {new}g, {all_threads} : index",
            f"memref.store {value}, {memory}[{new}to] : {self.memory}",
            "gpu.barrier",
            f"{new}h = arith.addi %place, {self.number(turn, 'index')} : index",
            f"{new}from = arith.remui {new}h, {all_threads} : index",
            f"{new} = memref.load {memory}[{new}from] : {self.memory}",
            "gpu.barrier",
        ]

        def run(at: Values) -> None:
            stored = np.zeros(self.threads, np.int32)
            stored[(self.places * factor + shift) % self.threads] = at[value]
            at[new] = stored[(self.places + turn) % self.threads]

        return text, run

    def shuffle(self, scope: list[str]) -> Step:
        mode, distance = self.chance.choice(["xor", "down", "up", "idx"]), self.chance.randrange(self.lanes)
        value, new = self.chance.choice(scope), self.name()
        scope.append(new)
        numbers = f"{self.number(distance)}, {self.number(self.lanes)}"
        text = [f"{new}s, {new}ok = gpu.shuffle {mode} {value}, {numbers} : i32"]
        text += [f"{new} = arith.select {new}ok, {new}s, {value} : i32"]
        lane = self.places % self.lanes
        source = {"xor": lane ^ distance, "down": lane + distance, "up": lane - distance, "idx": 0 * lane + distance}[
            mode
        ]
        there = (source >= 0) & (source < self.lanes)
        place = np.where(there, self.places - lane + source, self.places)
        return text, lambda at: at.update({new: at[value][place]})

    def reduction(self, scope: list[str]) -> Step:
        kind, value, new = self.chance.choice(list(REDUCTIONS)), self.chance.choice(scope), self.name()
        scope.append(new)
        group = self.chance.choice([self.threads, 2, 4, 8, 16, 32])
        if group == self.threads:
            text = f"{new} = gpu.all_reduce {kind} {value} uniform {{}} : (i32) -> i32"
        else:
            text = f"{new} = gpu.subgroup_reduce {kind} {value} cluster(size = {group}) : (i32) -> i32"

        def run(at: Values) -> None:
            at[new] = REDUCTIONS[kind].reduce(at[value].reshape(-1, group), axis=1, dtype=np.int32).repeat(group)

        return [text], run

    def atomic(self, scope: list[str]) -> Step:
        kind, value, new, memory = (
            self.chance.choice(list(ATOMICS)),
            self.chance.choice(scope),
            self.name(),
            self.shared(),
        )
        group = self.chance.choice([1, 2, 4, self.threads])
        scope.append(new)
        text = [
            f"memref.store {self.number(0)}, {memory}[%place] : {self.memory}",
            "gpu.barrier",
            f"{new}at = arith.divui %place, {self.number(group, 'index')} : index",
            f"{new}old = memref.atomic_rmw {kind} {value}, {memory}[{new}at] : (i32, {self.memory}) -> i32",
            "gpu.barrier",
            f"{new} = memref.load {memory}[{new}at] : {self.memory}",
            "gpu.barrier",
        ]

        def run(at: Values) -> None:
            groups = at[value].reshape(-1, group)
            at[new] = ATOMICS[kind].reduce(groups, axis=1, dtype=np.int32, initial=0).repeat(group)

        return text, run
