"""Random kernels of one thread on vectors of any rank, with what they leave in memory.

A kernel is made for the arrays that it gets: each step adds to its text and does the same to NumPy's arrays. Places and
sizes of masks come in part from an argument that is 0, so that they cannot be folded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from randomized.shapes import Array, transfer

TYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32,
    "f64": np.float64,
}  # fmt: skip
BITS: dict[str, Callable[..., Array]] = {"andi": np.logical_and, "ori": np.logical_or, "xori": np.logical_xor}
INTEGERS: dict[str, Callable[..., Array]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "maxsi": np.maximum, "minsi": np.minimum,
    "xori": np.bitwise_xor,
}  # fmt: skip
FLOATS: dict[str, Callable[..., Array]] = {"maximumf": np.maximum, "minimumf": np.minimum}
REDUCTIONS: dict[str, dict[str, Callable[..., Array]]] = {
    "b": {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor},
    "i": {"add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "xor": np.bitwise_xor},
    "f": {"maximumf": np.maximum, "minimumf": np.minimum},
}
LARGEST = 128  # elements of a value


def literal(value: Any) -> str:
    if value.ndim:
        return f"[{', '.join(map(literal, value))}]"
    return str(value.item()).lower()


def typed(shape: Sequence[int], element: str) -> str:
    return f"vector<{''.join(f'{size}x' for size in shape)}{element}>"


@dataclass(frozen=True)
class Value:
    """A vector: its SSA name, its elements, their type in MLIR."""

    name: str
    array: Array
    element: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def type(self) -> str:
        return typed(self.shape, self.element)


@dataclass
class Kernel:
    """``memory``: of each argument %m0 … its type, and its array before and after the kernel. %zero is the last."""

    name: str
    choose: random.Random
    numbers: np.random.Generator
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    memory: list[tuple[str, Array, Array]] = field(default_factory=list)
    names: int = 0

    # Names, numbers, values.

    def chance(self, probability: float) -> bool:
        return self.choose.random() < probability

    def line(self, text: str) -> str:
        self.names += 1
        self.lines.append(f"%v{self.names} = {text}")
        return f"%v{self.names}"

    def made(self, text: str, array: Array, element: str) -> None:
        self.values.append(Value(self.line(text), np.asarray(array), element))

    def random(self, shape: Sequence[int], element: str) -> Array:
        low, end = (0, 2) if element == "i1" else (-9, 10)
        return np.asarray(self.numbers.integers(low, end, shape)).astype(TYPES[element])

    def constant(self, array: Array, element: str) -> str:
        if array.ndim:
            return self.line(f"arith.constant dense<{literal(array)}> : {typed(array.shape, element)}")
        return self.line(f"arith.constant {literal(array)}" + (f" : {element}" if element != "i1" else ""))

    def index(self, number: int) -> str:
        name = self.line(f"arith.constant {number} : index")
        return self.line(f"arith.addi {name}, %zero : index") if self.chance(0.6) else name

    def indices(self, numbers: Sequence[int]) -> str:
        return ", ".join(self.index(number) for number in numbers)

    def array(self, before: Array, after: Array, element: str) -> tuple[str, str]:
        """An argument with these elements before and after the kernel: its name and type."""
        sizes = "".join(f"{size if self.chance(0.5) else '?'}x" for size in before.shape)
        self.memory.append((f"memref<{sizes}{element}>", before, after))
        return f"%m{len(self.memory) - 1}", self.memory[-1][0]

    def mask(self, shape: Sequence[int]) -> tuple[str, Array]:
        kind, ends = typed(shape, "i1"), [self.choose.randint(0, size) for size in shape]
        array = np.zeros(shape, np.bool_)
        array[tuple(map(slice, ends))] = True
        if self.chance(0.4):
            return self.line(f"vector.create_mask {self.indices(ends)} : {kind}"), array
        if all(ends) and self.chance(0.5):
            return self.line(f"vector.constant_mask {ends} : {kind}"), array
        array = self.random(shape, "i1")
        return self.constant(array, "i1"), array

    def pick(self, able: Callable[[Value], bool] = lambda value: True) -> Value | None:
        found = [value for value in self.values if able(value) and value.array.size]
        return self.choose.choice(found[-8:]) if found else None

    def partner(self, of: Value) -> Value:
        """A value of the same type; itself, where there is no other."""
        return self.pick(lambda value: value.type == of.type) or of

    # Steps: memory.

    def read(self) -> None:
        element, rank = self.choose.choice(list(TYPES)), self.choose.randint(1, 3)
        chosen = transfer(self.choose, rank, spare=(0, 3))
        before = self.random(chosen.memory, element)
        name, memory = self.array(before, before, element)
        padding = self.random((), element)
        mask, held = self.mask(chosen.part) if self.chance(0.35) else ("", np.ones(chosen.part, np.bool_))
        value = np.where(held, chosen.read(before, padding), padding).transpose(chosen.order)
        exprs, shape, ends = chosen.exprs, list(value.shape), chosen.in_bounds
        if not mask and self.chance(0.25):  # a dimension that memory lacks
            at, size = self.choose.randint(0, rank), self.choose.randint(1, 3)
            exprs.insert(at, "0"), shape.insert(at, size), ends.insert(at, True)
            value = np.broadcast_to(np.expand_dims(value, at), shape)
        self.made(
            f"vector.transfer_read {name}[{self.indices(chosen.starts)}], {self.constant(padding, element)}"
            f"{mask and ', '}{mask} {chosen.attributes(exprs, ends)} : {memory}, {typed(shape, element)}",
            value, element,
        )  # fmt: skip

    def write(self) -> None:
        value = self.pick()
        if value is None:
            return
        chosen = transfer(self.choose, value.array.ndim, spare=(-1, 2), shape=value.shape)
        before = self.random(chosen.memory, value.element)
        mask, held = self.mask(chosen.part) if self.chance(0.35) else ("", np.ones(chosen.part, np.bool_))
        after = chosen.write(before, value.array.transpose(np.argsort(chosen.order)), held)
        name, memory = self.array(before, after, value.element)
        self.lines.append(
            f"vector.transfer_write {value.name}, {name}[{self.indices(chosen.starts)}]{mask and ', '}{mask} "
            f"{chosen.attributes(chosen.exprs, chosen.in_bounds)} : {value.type}, {memory}"
        )

    def masked(self) -> None:
        """Loads and stores of one dimension under a mask, of neighbours or of chosen places."""
        value = self.pick(lambda value: value.array.ndim == 1)
        if value is None:
            return
        size, element, kind = value.array.size, value.element, value.type
        before = self.random([size + self.choose.randint(0, 6)], element)
        start = self.choose.randint(0, before.size - size)
        mask, held = self.mask([size])
        places = self.numbers.permutation(before.size)[:size] - start
        after = before.copy()
        which = self.choose.choice(("load", "gather", "expand", "store", "scatter", "compress"))
        if which == "store":
            after[start : start + size][held] = value.array[held]
        elif which == "scatter":
            after[(places + start)[held]] = value.array[held]
        elif which == "compress":
            after[start : start + held.sum()] = value.array[held]
        name, memory = self.array(before, after, element)
        at, flags = f"{name}[{self.index(start)}]", typed([size], "i1")
        if which in ("gather", "scatter"):
            at += f" [{self.constant(places.astype(np.int32), 'i32')}]"
            flags = f"{typed([size], 'i32')}, {flags}"
        types = f"{memory}, {flags}, {kind}"
        if which in ("store", "scatter", "compress"):
            operation = {"store": "maskedstore", "compress": "compressstore"}.get(which, which)
            self.lines.append(f"vector.{operation} {at}, {mask}, {value.name} : {types}")
            return
        found = value.array.copy()
        source = before[places + start] if which == "gather" else before[start : start + size]
        found[held] = source[: held.sum()] if which == "expand" else source[held]
        operation = {"load": "maskedload", "expand": "expandload"}.get(which, which)
        self.made(f"vector.{operation} {at}, {mask}, {value.name} : {types} into {kind}", found, element)

    # Steps: elements.

    def elementwise(self) -> None:
        value = self.pick()
        if value is None:
            return
        other = self.partner(value)
        kinds = BITS if value.element == "i1" else INTEGERS if value.element.startswith("i") else FLOATS
        name, compute = self.choose.choice([*kinds.items()])
        self.made(f"arith.{name} {value.name}, {other.name} : {value.type}", compute(value.array, other.array),
                  value.element)  # fmt: skip

    def smaller(self) -> None:
        value = self.pick(lambda value: value.element != "i1")
        if value is None:
            return
        other, flags = self.partner(value), typed(value.shape, "i1")
        compare = "cmpi slt" if value.element.startswith("i") else "cmpf olt"
        less = value.array < other.array
        self.made(f"arith.{compare}, {value.name}, {other.name} : {value.type}", less, "i1")
        text = f"arith.select {self.values[-1].name}, {value.name}, {other.name} : {flags}, {value.type}"
        self.made(text, np.where(less, value.array, other.array), value.element)

    def reduce(self) -> None:
        value = self.pick()
        if value is None:
            return
        name, compute = self.choose.choice([*REDUCTIONS[value.array.dtype.kind].items()])
        dims = sorted(self.choose.sample(range(value.array.ndim), self.choose.randint(1, value.array.ndim)))
        kept = [i for i in range(value.array.ndim) if i not in dims]
        start = self.random([value.shape[i] for i in kept], value.element)
        result = typed(start.shape, value.element) if kept else value.element
        mask, held = self.mask(value.shape) if self.chance(0.4) else ("", np.ones(value.shape, np.bool_))
        rows, flags = (each.transpose(kept + dims).reshape(*start.shape, -1) for each in (value.array, held))
        sofar = start
        for i in range(rows.shape[-1]):
            with np.errstate(over="ignore"):
                sofar = np.where(flags[..., i], compute(sofar, rows[..., i]), sofar).astype(start.dtype)
        text = (
            f"vector.multi_reduction <{name}>, {value.name}, {self.constant(start, value.element)} {dims} : "
            f"{value.type} to {result}"
        )
        if mask:
            text = f"vector.mask {mask} {{ {text} }} : {typed(value.shape, 'i1')} -> {result}"
        if kept:
            self.made(text, sofar, value.element)
        else:
            self.made(f"vector.broadcast {self.line(text)} : {result} to {typed([2], value.element)}",
                      np.full(2, sofar), value.element)  # fmt: skip

    def scan(self) -> None:
        value = self.pick(lambda value: value.element in ("i32", "i64") and value.array.ndim > 1)
        if value is None:
            return
        dim, inclusive = self.choose.randrange(value.array.ndim), self.chance(0.5)
        start = self.random(np.delete(value.shape, dim), value.element)
        sums = np.cumsum(np.moveaxis(value.array, dim, 0), 0, dtype=value.array.dtype)
        if not inclusive:
            sums = np.concatenate([start[None], start[None] + sums[:-1]])
        first = self.constant(start, value.element)
        self.names += 2
        names = [f"%v{self.names - 1}", f"%v{self.names}"]
        self.lines.append(
            f"{', '.join(names)} = vector.scan <add>, {value.name}, {first} {{inclusive = {str(inclusive).lower()}, "
            f"reduction_dim = {dim} : i64}} : {value.type}, {typed(start.shape, value.element)}"
        )
        for name, array in zip(names, (np.moveaxis(sums, 0, dim), sums[-1]), strict=True):
            self.values.append(Value(name, array, value.element))

    def contract(self) -> None:
        value = self.pick(lambda value: value.element in ("i32", "i64") and value.array.ndim == 2)
        other = self.pick(lambda each: value is not None and each.element == value.element and each.array.ndim == 2
                          and each.shape[0] == value.shape[1])  # fmt: skip
        if value is None or other is None:
            return
        turned = self.chance(0.5)
        product = value.array @ other.array
        start = self.random(product.T.shape if turned else product.shape, value.element)
        places = ("m, k", "k, n", "n, m" if turned else "m, n")
        maps = ", ".join(f"affine_map<(m, n, k) -> ({place})>" for place in places)
        self.made(
            f'vector.contract {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"], '
            f"kind = #vector.kind<add>}} {value.name}, {other.name}, {self.constant(start, value.element)} : "
            f"{value.type}, {other.type} into {typed(start.shape, value.element)}",
            start + (product.T if turned else product), value.element,
        )  # fmt: skip

    # Steps: shapes.

    def transpose(self) -> None:
        value = self.pick(lambda value: value.array.ndim > 1)
        if value is None:
            return
        order = self.choose.sample(range(value.array.ndim), value.array.ndim)
        turned = value.array.transpose(order)
        text = f"vector.transpose {value.name}, {order} : {value.type} to {typed(turned.shape, value.element)}"
        self.made(text, turned, value.element)

    def shuffle(self) -> None:
        value = self.pick()
        if value is None:
            return
        other = self.pick(lambda each: each.element == value.element and each.shape[1:] == value.shape[1:]) or value
        both = np.concatenate([value.array, other.array])
        order = [self.choose.randrange(len(both)) for _ in range(self.choose.randint(1, 8))]
        text = f"vector.shuffle {value.name}, {other.name} {order} : {value.type}, {other.type}"
        self.made(text, both[order], value.element)

    def reshape(self) -> None:
        value = self.pick()
        if value is None:
            return
        sizes, left = list[int](), value.array.size
        for _ in range(self.choose.randint(0, 2)):
            sizes.append(self.choose.choice([part for part in range(1, left + 1) if left % part == 0]))
            left //= sizes[-1]
        sizes.append(left)
        text = f"vector.shape_cast {value.name} : {value.type} to {typed(sizes, value.element)}"
        self.made(text, value.array.reshape(sizes), value.element)

    def broadcast(self) -> None:
        value = self.pick(lambda value: value.array.ndim < 3)
        if value is None:
            return
        sizes = [self.choose.randint(1, 3) if size == 1 else size for size in value.shape]
        sizes.insert(0, self.choose.randint(1, 3))
        text = f"vector.broadcast {value.name} : {value.type} to {typed(sizes, value.element)}"
        self.made(text, np.broadcast_to(value.array, sizes), value.element)

    def position(self, shape: Sequence[int]) -> tuple[tuple[int, ...], str]:
        """A place in these dimensions; which of its numbers are constants is chance."""
        place = tuple(self.choose.randrange(size) for size in shape)
        return place, ", ".join(self.index(number) if self.chance(0.4) else str(number) for number in place)

    def part(self) -> None:
        """A part of a value is taken out, and put into another place of it."""
        value = self.pick(lambda value: value.array.ndim > 1)
        if value is None:
            return
        depth = self.choose.randint(1, value.array.ndim - 1)
        place, text = self.position(value.shape[:depth])
        kind = typed(value.shape[depth:], value.element)
        self.made(f"vector.extract {value.name}[{text}] : {kind} from {value.type}", value.array[place], value.element)
        part, (place, text) = self.values[-1], self.position(value.shape[:depth])
        changed = value.array.copy()
        changed[place] = part.array
        text = f"vector.insert {part.name}, {value.name} [{text}] : {kind} into {value.type}"
        self.made(text, changed, value.element)

    def slices(self) -> None:
        value = self.pick()
        if value is None:
            return
        sizes = [self.choose.randint(1, size) for size in value.shape]
        starts = [self.choose.randint(0, size - part) for size, part in zip(value.shape, sizes, strict=True)]
        slices = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
        ones, kind = [1] * len(sizes), typed(sizes, value.element)
        text = f"{{offsets = {starts}, sizes = {sizes}, strides = {ones}}} : {value.type} to {kind}"
        self.made(f"vector.extract_strided_slice {value.name} {text}", value.array[slices], value.element)
        part, other = self.values[-1], self.partner(value)
        changed = other.array.copy()
        changed[slices] = part.array
        text = f"{{offsets = {starts}, strides = {ones}}} : {kind} into {value.type}"
        self.made(f"vector.insert_strided_slice {part.name}, {other.name} {text}", changed, value.element)

    def interleave(self) -> None:
        value = self.pick()
        if value is None:
            return
        other = self.partner(value)
        both = np.stack([value.array, other.array], -1).reshape(*value.shape[:-1], -1)
        text = f"vector.interleave {value.name}, {other.name} : {value.type} -> {typed(both.shape, value.element)}"
        self.made(text, both, value.element)

    # The whole.

    def compose(self, steps: int) -> None:
        for _ in range(3):
            self.read()
        for _ in range(steps):
            self.choose.choice((self.read, self.write, self.masked, self.elementwise, self.smaller, self.reduce,
                                self.reduce, self.scan, self.contract, self.transpose, self.shuffle, self.reshape,
                                self.broadcast, self.part, self.slices, self.interleave))()  # fmt: skip
            self.values = [value for value in self.values if value.array.size <= LARGEST]
        for value in self.values[-8:]:
            name, memory = self.array(np.zeros_like(value.array), np.ascontiguousarray(value.array), value.element)
            zeros = ", ".join(["%zero"] * value.array.ndim)
            self.lines.append(f"vector.store {value.name}, {name}[{zeros}] : {memory}, {value.type}")

    @property
    def text(self) -> str:
        arguments = "".join(f"%m{i}: {kind}, " for i, (kind, _, _) in enumerate(self.memory))
        body = "\n".join(self.lines)
        return f"gpu.func @{self.name}({arguments}%zero: index) kernel {{\n{body}\ngpu.return\n}}\n"


def generate(seed: int, steps: int = 20) -> Kernel:
    kernel = Kernel(f"k{seed}", random.Random(seed), np.random.default_rng(seed))
    kernel.compose(steps)
    return kernel
