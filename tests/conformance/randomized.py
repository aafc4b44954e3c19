"""Random kernels: control flow, barriers, lanes and private memory in any nesting, and a model that runs them on NumPy.

Each thread has a number and changes it. Branches and loops that threads take differently hold what needs no barrier:
arithmetic, private memory, and exchanges among the lanes that are there. Branches and loops that all threads take alike
hold anything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance import Answer, Launch

TILE = "memref<1024xi32, #gpu.address_space<workgroup>>"
OWN = "memref<4xi32>"


@dataclass
class Statement:
    """``kind`` with two small numbers, and what it holds."""

    kind: str
    a: int = 0
    b: int = 0
    bodies: list[list[Statement]] = field(default_factory=list)


LOCAL = ("add", "xor", "multiply", "lane", "save", "restore", "warp_sum", "first_lane")
TOGETHER = ("neighbour", "all_reduce", "whole_warp_max", "shuffle")


def statements(choose: random.Random, depth: int, uniform: bool) -> list[Statement]:
    """A few statements; ``uniform``: all threads of the block come here."""
    made = []
    for _ in range(choose.randint(1, 4)):
        a, b = choose.randint(1, 7), choose.randint(1, 5)
        if depth and choose.random() < 0.5:
            same = uniform and choose.random() < 0.6
            kind = choose.choice(("if", "for")) + ("_same" if same else "")
            bodies = [statements(choose, depth - 1, same) for _ in range(2 if kind.startswith("if") else 1)]
            made.append(Statement(kind, a, b, bodies))
        else:
            made.append(Statement(choose.choice(LOCAL + TOGETHER if uniform else LOCAL), a, b))
    return made


class Writer:
    """Statements as MLIR. ``value`` is the name of the thread's number."""

    def __init__(self) -> None:
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def write(self, body: list[Statement], value: str) -> tuple[list[str], str]:
        lines: list[str] = []
        for statement in body:
            more, value = self.statement(statement, value)
            lines += more
        return lines, value

    def statement(self, s: Statement, value: str) -> tuple[list[str], str]:
        r, t, u = self.name(), self.name(), self.name()
        constant = f"{t} = arith.constant {s.a} : i32"
        if s.kind in ("add", "xor", "multiply"):
            operation = {"add": "addi", "xor": "xori", "multiply": "muli"}[s.kind]
            return [constant, f"{r} = arith.{operation} {value}, {t} : i32"], r
        if s.kind == "lane":
            return [f"{r} = arith.xori {value}, %lane : i32"], r
        if s.kind in ("save", "restore"):
            place = f"{t} = arith.constant {s.a % 4} : index"
            if s.kind == "save":
                return [place, f"memref.store {value}, %own[{t}] : {OWN}"], value
            lines = [place, f"{u} = memref.load %own[{t}] : {OWN}", f"{r} = arith.addi {value}, {u} : i32"]
            return lines, r
        if s.kind == "warp_sum":
            return [f"{r} = gpu.subgroup_reduce add {value} : (i32) -> i32"], r
        if s.kind == "first_lane":
            lines = [f"{t} = gpu.subgroup_broadcast {value}, first_active_lane : i32"]
            return [*lines, f"{r} = arith.subi {value}, {t} : i32"], r
        if s.kind == "whole_warp_max":
            lines = [f"{t} = gpu.subgroup_reduce maxsi {value} uniform : (i32) -> i32"]
            return [*lines, f"{r} = arith.xori {value}, {t} : i32"], r
        if s.kind == "all_reduce":
            lines = [f"{t} = gpu.all_reduce add {value} uniform {{}} : (i32) -> i32"]
            return [*lines, f"{r} = arith.subi {t}, {value} : i32"], r
        if s.kind == "shuffle":
            first, ok = f"{u}f", f"{u}k"
            lines = [constant, f"{u} = arith.constant 32 : i32"]
            lines.append(f"{first}, {ok} = gpu.shuffle up {value}, {t}, {u} : i32")
            return [*lines, f"{r} = arith.select {ok}, {first}, {value} : i32"], r
        if s.kind == "neighbour":
            lines = [
                f"{t}c = arith.constant {s.a} : index", f"{t}s = arith.addi %t, {t}c : index",
                f"{t} = arith.remui {t}s, %n : index", f"memref.store {value}, %tile[%t] : {TILE}", "gpu.barrier",
                f"{r} = memref.load %tile[{t}] : {TILE}", "gpu.barrier",
            ]  # fmt: skip
            return lines, r
        return self.structure(s, value, r, t)

    def structure(self, s: Statement, value: str, r: str, t: str) -> tuple[list[str], str]:
        same = s.kind.endswith("_same")
        source = "%argument" if same else "%ti"
        lines = [f"{t}m = arith.constant {s.b} : i32", f"{t}a = arith.constant {s.a} : i32"]
        lines += [f"{t}s = arith.addi {source}, {t}a : i32", f"{t}r = arith.remui {t}s, {t}m : i32"]
        if s.kind.startswith("if"):
            lines.append(f"{t}z = arith.constant 0 : i32")
            lines.append(f"{t} = arith.cmpi eq, {t}r, {t}z : i32")
            then, left = self.write(s.bodies[0], value)
            otherwise, right = self.write(s.bodies[1], value)
            lines.append(f"{r} = scf.if {t} -> i32 {{")
            return [*lines, *then, f"scf.yield {left} : i32 }} else {{", *otherwise, f"scf.yield {right} : i32 }}"], r
        start = self.name()
        inside, last = self.write(s.bodies[0], start)
        lines.append(f"{t} = arith.index_cast {t}r : i32 to index")
        lines.append(f"{r} = scf.for {t}i = %c0 to {t} step %c1 iter_args({start} = {value}) -> i32 {{")
        return [*lines, *inside, f"scf.yield {last} : i32 }}"], r


def kernel(name: str, body: list[Statement]) -> str:
    lines, last = Writer().write(body, "%start")
    text = "\n      ".join(lines)
    return f"""
    gpu.func @{name}(%x: memref<?xi32>, %argument: i32) workgroup(%tile: {TILE}) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %at = func.call @at() : () -> index
      %t = func.call @thread() : () -> index
      %n = func.call @threads() : () -> index
      %ti = arith.index_cast %t : index to i32
      %lane64 = gpu.lane_id
      %lane = arith.index_cast %lane64 : index to i32
      %start = memref.load %x[%at] : memref<?xi32>
      %own = memref.alloca() : {OWN}
      scf.for %i = %c0 to %c4 step %c1 {{
        memref.store %ti, %own[%i] : {OWN}
      }}
      {text}
      memref.store {last}, %x[%at] : memref<?xi32>
      gpu.return
    }}
""".replace("%at = func", "%c4 = arith.constant 4 : index\n      %at = func")


class Model:
    """One block of a launch on NumPy, its threads side by side; ``there`` marks those that execute a statement."""

    def __init__(self, launch: Launch, values: Any, argument: int) -> None:
        self.thread = np.arange(launch.threads)
        self.lane = self.thread % launch.warp
        self.warps = [self.thread[i : i + launch.warp] for i in range(0, launch.threads, launch.warp)]
        self.argument = argument
        self.value = values.copy()
        self.own = np.tile(self.thread.astype(np.int32)[:, None], (1, 4))

    def run(self, body: list[Statement], there: Any) -> None:
        for statement in body:
            if there.any():
                self.statement(statement, there)

    def of_warps(self, function: Any, there: Any) -> Any:
        """What ``function`` makes of the values of those lanes of each warp that are there."""
        result = np.zeros_like(self.value)
        for warp in self.warps:
            chosen = warp[there[warp]]
            if len(chosen):
                result[chosen] = function(self.value[chosen])
        return result

    def statement(self, s: Statement, there: Any) -> None:
        v = self.value
        if s.kind.startswith(("if", "for")):
            source = self.argument if s.kind.endswith("_same") else self.thread
            rest = np.broadcast_to((source + s.a) % s.b, v.shape)
            if s.kind.startswith("if"):
                self.run(s.bodies[0], there & (rest == 0))
                self.run(s.bodies[1], there & (rest != 0))
            else:
                for i in range(s.b):
                    self.run(s.bodies[0], there & (rest > i))
            return
        if s.kind == "save":
            self.own[there, s.a % 4] = v[there]
            return
        self.value = np.where(there, self.result(s, there), v).astype(np.int32)

    def result(self, s: Statement, there: Any) -> Any:
        v = self.value
        if s.kind == "restore":
            return v + self.own[:, s.a % 4]
        if s.kind == "lane":
            return v ^ self.lane
        if s.kind == "neighbour":
            return np.roll(v, -s.a)
        if s.kind == "shuffle":
            return np.where((self.lane >= s.a) & (self.lane < 32), v[np.maximum(self.thread - s.a, 0)], v)
        if s.kind == "warp_sum":
            return self.of_warps(lambda values: values.sum(dtype=np.int32), there)
        if s.kind == "first_lane":
            return v - self.of_warps(lambda values: values[0], there)
        if s.kind == "whole_warp_max":
            return v ^ self.of_warps(np.max, there)
        if s.kind == "all_reduce":
            return v.sum(dtype=np.int32) - v
        return {"add": np.add, "xor": np.bitwise_xor, "multiply": np.multiply}[s.kind](v, np.int32(s.a))


def programs(seed: int, count: int) -> Iterator[tuple[str, list[Statement]]]:
    choose = random.Random(seed)
    for i in range(count):
        yield f"k{i}", statements(choose, 3, uniform=True)


def answer(body: list[Statement], launch: Launch) -> Answer:
    x, argument = launch.any_of(np.int32), int(launch.random.integers(0, 100))
    parts = []
    with np.errstate(over="ignore"):
        for values in x.reshape(launch.blocks, launch.threads):
            model = Model(launch, values, argument)
            model.run(body, np.ones(launch.threads, bool))
            parts.append(model.value)
    return Answer([x, np.int32(argument)], [np.concatenate(parts)])
