"""Random reductions of integers, whose bodies look more or less like sums and largest values, one after another in a
function of tensors, and what NumPy makes of them step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

Array = np.ndarray
JOINS = {
    "addi": np.add,
    "muli": np.multiply,
    "xori": np.bitwise_xor,
    "andi": np.bitwise_and,
    "maxsi": np.maximum,
    "minsi": np.minimum,
}
COMPARISONS = {
    "cmpi sgt,": np.greater,
    "cmpi sge,": np.greater_equal,
    "cmpi slt,": np.less,
    "cmpi sle,": np.less_equal,
    "cmpi eq,": np.equal,
}
OPERATIONS = JOINS | COMPARISONS | {"subi": np.subtract, "select": np.where}
LENGTHS, ROWS = (1, 64, 65, 130, 300, 520), (1, 3, 40)


@dataclass(frozen=True)
class Reduction:
    """Of an axis: what each step makes of its element %x, its number %n and the values before it, %o0, %o1 …"""

    axis: int
    starts: Sequence[int]
    body: Sequence[tuple[str, str, tuple[str, ...]]]  # results, operations and their operands
    yields: Sequence[str]

    def of(self, x: Array) -> list[Array]:
        """The steps in the author's order."""
        like = x.take(0, self.axis)
        values = [np.full_like(like, start) for start in self.starts]
        for step in range(x.shape[self.axis]):
            known = {f"o{k}": value for k, value in enumerate(values)}
            known |= {"x": x.take(step, self.axis), "n": np.full_like(like, step)}
            for result, operation, operands in self.body:
                known[result] = OPERATIONS[operation](*(known[operand] for operand in operands))
            values = [known[name] for name in self.yields]
        return values

    def text(self, number: int, shape: tuple[int, int]) -> str:
        """Leaves %r{number}#0 … of %x{number}, and their first one among its elements as %x{number + 1}."""
        kept, count = 1 - self.axis, len(self.yields)
        whole, part = f"tensor<{shape[0]}x{shape[1]}xi32>", f"tensor<{shape[kept]}xi32>"
        element, value = "affine_map<(i, k) -> (i, k)>", f"affine_map<(i, k) -> ({'ik'[kept]})>"
        kinds = ['"parallel"', '"parallel"']
        kinds[self.axis] = '"reduction"'
        lines = [f"%e{number} = tensor.empty() : {part}"]
        for k, start in enumerate(self.starts):
            lines += [
                f"%c{number}_{k} = arith.constant {start} : i32",
                f"%s{number}_{k} = linalg.fill ins(%c{number}_{k} : i32) outs(%e{number} : {part}) -> {part}",
            ]
        starts = ", ".join(f"%s{number}_{k}" for k in range(count))
        types = ", ".join([part] * count)
        lines += [
            f"%r{number}:{count} = linalg.generic {{indexing_maps = [{', '.join([element] + [value] * count)}],",
            f"    iterator_types = [{', '.join(kinds)}]}} ins(%x{number} : {whole}) outs({starts} : {types}) {{",
            f"^bb0(%x: i32, {', '.join(f'%o{k}: i32' for k in range(count))}):",
            f"  %i = linalg.index {self.axis} : index",
            "  %n = arith.index_cast %i : index to i32",
            *(f"  %{result} = arith.{op} {', '.join(f'%{each}' for each in of)} : i32" for result, op, of in self.body),
            f"  linalg.yield {', '.join(f'%{name}' for name in self.yields)} : {', '.join(['i32'] * count)}",
            f"}} -> ({types})",
            f"%f{number} = tensor.empty() : {whole}",
            f"%x{number + 1} = linalg.generic {{indexing_maps = [{element}, {value}, {element}],",
            f'    iterator_types = ["parallel", "parallel"]}} ins(%x{number}, %r{number}#0 : {whole}, {part})',
            f"    outs(%f{number} : {whole}) {{",
            "^bb0(%x: i32, %o: i32, %old: i32):",
            "  %v = arith.xori %x, %o : i32",
            "  linalg.yield %v : i32",
            f"}} -> {whole}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Program:
    """A function @f{seed} of a matrix, whose results are those of its reductions."""

    name: str
    shape: tuple[int, int]
    reductions: Sequence[Reduction]

    @property
    def text(self) -> str:
        results = [(f"%r{i}#{k}", each) for i, each in enumerate(self.reductions) for k in range(len(each.yields))]
        types = ", ".join(f"tensor<{self.shape[1 - each.axis]}xi32>" for _, each in results)
        body = "\n".join(each.text(i, self.shape) for i, each in enumerate(self.reductions))
        argument = f"%x0: tensor<{self.shape[0]}x{self.shape[1]}xi32>"
        returned = ", ".join(name for name, _ in results)
        return f"func.func @{self.name}({argument}) -> ({types}) {{\n{body}\nreturn {returned} : {types}\n}}\n"

    def argument(self) -> Array:
        """Some elements are equal, and some sums wrap around."""
        random = np.random.default_rng(self.shape[1])
        return random.choice(random.integers(-(2**31), 2**31, 40, np.int32), self.shape)

    def expected(self) -> list[Array]:
        """The results for it."""
        x, results = self.argument(), []
        for reduction in self.reductions:
            values = reduction.of(x)
            results += values
            x = x ^ np.expand_dims(values[0], reduction.axis)
        return results


def _reduction(random: Random, longer: int) -> Reduction:
    count = random.choice([1, 1, 1, 2, 2, 3])
    values = [f"o{k}" for k in range(count)]
    body: list[tuple[str, str, tuple[str, ...]]] = []

    def write(operation: str, *operands: str) -> str:
        body.append((f"v{len(body)}", operation, operands))
        return body[-1][0]

    def join(one: str, other: str) -> str:
        return write(random.choice(list(JOINS)), *random.sample([one, other], 2))

    def compare(one: str, other: str) -> str:
        return write(random.choice(list(COMPARISONS)), *random.sample([one, other], 2))

    def one(own: str) -> str:
        element = random.choice(["x", "x", "n", join("x", "n")])
        return random.choice(
            [
                lambda: join(own, element),
                lambda: join(own, element),
                lambda: write("select", compare(own, element), *random.sample([own, element], 2)),
                lambda: write("subi", *random.sample([own, element], 2)),
                lambda: join(join(own, element), random.choice(["x", "n", *values])),
                lambda: join(random.choice(values), element),
                lambda: join(own, write("select", compare("x", "n"), "x", "n")),
                lambda: random.choice([own, element]),
            ]
        )()

    kind = random.random()
    if kind < 0.4:
        yields = [join(value, "x") for value in values]
    elif kind < 0.6:  # as where a value and its place are looked for
        condition = compare("x", values[0])
        yields = [write("select", condition, new, old) for new, old in zip(["x", "n", "n"], values, strict=False)]
    else:
        yields = [one(value) for value in values]
    starts = [random.choice([0, 1, -1, -(2**31), 2**31 - 1]) for _ in values]
    return Reduction(longer if random.random() < 0.8 else 1 - longer, starts, body, yields)


def generate(seed: int) -> Program:
    """A function of one to three reductions; the same seed gives the same."""
    random = Random(seed)
    shape = random.sample([random.choice(ROWS), random.choice(LENGTHS)], 2)
    reductions = [_reduction(random, int(shape[1] > shape[0])) for _ in range(random.randint(1, 3))]
    return Program(f"f{seed}", (shape[0], shape[1]), reductions)
