"""Random chains of views of a memref, with the elements of the array that they show.

A view is known by its sizes, strides and offset in elements, and which of them its type knows; what the type does not
know comes from arguments of the program, so that nothing can be folded."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

TYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "f16": np.float16, "f32": np.float32, "i64": np.int64, "complex<f32>": np.complex64,
}  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A size, stride or offset; ``known`` to the type or not."""

    value: int
    known: bool = True

    def __str__(self) -> str:
        return str(self.value) if self.known else "?"

    def __mul__(self, other: Number) -> Number:
        return Number(self.value * other.value, self.known and other.known)


@dataclass(frozen=True)
class View:
    """``plain``: its type has no layout, its elements lie one behind the other."""

    name: str
    sizes: tuple[Number, ...]
    strides: tuple[Number, ...]
    offset: Number
    plain: bool = False

    def type(self, element: str) -> str:
        sizes = "".join(f"{size}x" for size in self.sizes)
        if self.plain:
            return f"memref<{sizes}{element}>"
        offset = "" if self.offset == Number(0) else f", offset: {self.offset}"
        return f"memref<{sizes}{element}, strided<[{', '.join(map(str, self.strides))}]{offset}>>"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size.value for size in self.sizes)

    def of(self, array: np.ndarray) -> np.ndarray:
        """The elements of an array that the view shows, as NumPy's view of it."""
        flat = array.reshape(-1)
        strides = [stride.value * array.itemsize for stride in self.strides]
        start = min(self.offset.value, flat.size)
        if 0 in self.shape:
            return np.empty(self.shape, array.dtype)
        return np.lib.stride_tricks.as_strided(flat[start:], self.shape, strides)


def _plain_strides(sizes: tuple[Number, ...]) -> tuple[Number, ...]:
    strides = [Number(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(sizes)])


@dataclass
class Program:
    """A chain of views of %x. ``arguments``: values of %n0 …, the numbers that types do not know."""

    name: str
    choose: random.Random
    element: str = ""
    lines: list[str] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)
    base: View = field(default_factory=lambda: View("%x", (), (), Number(0)))
    last: View = field(default_factory=lambda: View("%x", (), (), Number(0)))
    names: int = 0

    def chance(self, probability: float) -> bool:
        return self.choose.random() < probability

    def stated(self, number: Number) -> str:
        if number.known:
            return str(number.value)
        self.arguments.append(number.value)
        return f"%n{len(self.arguments) - 1}"

    def list(self, numbers: Any) -> str:
        return ", ".join(self.stated(number) for number in numbers)

    def view(self, sizes: Any, strides: Any, offset: Number, plain: bool = False) -> View:
        self.names += 1
        return View(f"%w{self.names}", tuple(sizes), tuple(strides), offset, plain)

    def add(self, view: View, operation: str, word: str = "to") -> None:
        self.lines.append(
            f"{view.name} = memref.{operation} : {self.last.type(self.element)} {word} {view.type(self.element)}"
        )
        self.last = view

    # Steps.

    def subview(self) -> None:
        of = self.last
        starts, sizes, steps = [], [], []
        for size in of.shape:
            step = self.choose.choice((1, 1, 1, 2, 3))
            most = -(-size // step)
            count = self.choose.randint(0 if self.chance(0.04) else min(1, most), most)
            room = size - (count - 1) * step - 1 if count else size
            start = Number(self.choose.randint(0, room), self.chance(0.6))
            # MLIR takes no known start behind the last element, where no elements are seen either.
            starts.append(replace(start, known=start.known and start.value < size))
            sizes.append(Number(count, self.chance(0.6)))
            steps.append(Number(step, self.chance(0.7)))
        offset = of.offset
        for start, stride in zip(starts, of.strides, strict=True):
            part = start * stride
            known = part.known or Number(0) in (start, stride)  # 0 times what is not known
            offset = Number(offset.value + part.value, offset.known and known)
        # All of size 1 or none: MLIR does not always find out which of several a type has left out.
        all_stay = self.chance(0.5)
        kept = [i for i, size in enumerate(sizes) if size != Number(1) or all_stay]
        view = self.view([sizes[i] for i in kept], [of.strides[i] * steps[i] for i in kept], offset)
        self.add(view, f"subview {of.name}[{self.list(starts)}] [{self.list(sizes)}] [{self.list(steps)}]")

    def transpose(self) -> None:
        of, order = self.last, list(range(len(self.last.sizes)))
        if len(order) < 2:
            return
        self.choose.shuffle(order)
        view = self.view([of.sizes[i] for i in order], [of.strides[i] for i in order], of.offset)
        dims = ", ".join(f"d{i}" for i in range(len(order)))
        self.add(view, f"transpose {of.name} ({dims}) -> ({', '.join(f'd{i}' for i in order)})")

    def cast(self) -> None:
        def forget(number: Number) -> Number:
            return replace(number, known=number.known and self.chance(0.6))

        of = self.last
        view = self.view(map(forget, of.sizes), map(forget, of.strides), forget(of.offset))
        self.add(view, f"cast {of.name}")

    def expand(self) -> None:
        of = self.last
        able = [i for i, size in enumerate(of.shape) if size]
        if not able or len(of.sizes) > 3:
            return
        at = self.choose.choice(able)
        size = of.shape[at]
        first = self.choose.choice([part for part in range(1, size + 1) if size % part == 0])
        parts = [Number(first), Number(size // first)]
        if self.chance(0.3):
            parts.insert(self.choose.randrange(3), Number(1))
        if not of.sizes[at].known:
            parts = [replace(part, known=self.chance(0.4)) for part in parts]
            if all(part.known for part in parts):
                parts[0] = replace(parts[0], known=False)
        strides = [of.strides[at]]
        for part in reversed(parts[1:]):
            strides.insert(0, strides[0] * part)
        sizes = (*of.sizes[:at], *parts, *of.sizes[at + 1 :])
        # MLIR gives a view of one dimension that has no gaps no layout.
        plain = of.plain or (len(of.sizes) == 1 and of.strides[0] == Number(1) and of.offset == Number(0))
        view = self.view(sizes, (*of.strides[:at], *strides, *of.strides[at + 1 :]), of.offset, plain)
        groups = self.groups(len(of.sizes), at, len(parts))
        self.add(view, f"expand_shape {of.name} [{groups}] output_shape [{self.list(sizes)}]", "into")

    def collapse(self) -> None:
        """Two dimensions that lie one behind the other; of size 1, which stride stays is the type's own rule."""
        of = self.last
        able = [
            i
            for i, (one, two) in enumerate(itertools.pairwise(of.shape))
            if of.strides[i].value == of.strides[i + 1].value * two and one > 1 and two > 1
        ]
        if not able:
            return
        at = self.choose.choice(able)
        sizes = (*of.sizes[:at], of.sizes[at] * of.sizes[at + 1], *of.sizes[at + 2 :])
        stride = of.strides[at + 1]
        if not of.plain:  # a last size that the type does not know may be 1, and then the stride before it counts
            stride = replace(stride, known=stride.known and of.sizes[at + 1].known)
        view = self.view(sizes, (*of.strides[:at], stride, *of.strides[at + 2 :]), of.offset, of.plain)
        self.add(view, f"collapse_shape {of.name} [{self.groups(len(sizes), at, 2)}]", "into")

    def groups(self, count: int, at: int, size: int) -> str:
        """``count`` groups of one dimension each, but for one of ``size``."""
        dims = itertools.count()
        return ", ".join(f"[{', '.join(str(next(dims)) for _ in range(size if i == at else 1))}]" for i in range(count))

    def reinterpret(self) -> None:
        """Sizes and strides of any kind, such that no element is seen twice."""
        rank, total = self.choose.randint(1, 3), int(np.prod(self.base.shape))
        for _ in range(10):
            sizes = [Number(self.choose.randint(1, 5), self.chance(0.5)) for _ in range(rank)]
            strides = [Number(self.choose.choice((1, 2, 3, 4, 5, 7, 9)), self.chance(0.5)) for _ in range(rank)]
            view = View("", tuple(sizes), tuple(strides), Number(self.choose.randint(0, 8), self.chance(0.5)))
            seen = [
                view.offset.value + sum(i * stride.value for i, stride in zip(index, strides, strict=True))
                for index in np.ndindex(view.shape)
            ]
            if max(seen) < total and len(set(seen)) == len(seen):
                view = self.view(sizes, strides, view.offset)
                stated = f"offset: [{self.stated(view.offset)}], sizes: [{self.list(sizes)}]"
                self.add(view, f"reinterpret_cast {self.last.name} to {stated}, strides: [{self.list(strides)}]")
                return

    def write(self, steps: int) -> None:
        self.element = self.choose.choice(list(TYPES))
        rank = self.choose.randint(1, 3)
        sizes = tuple(Number(self.choose.randint(2, 7), self.chance(0.5)) for _ in range(rank))
        self.base = self.last = View("%x", sizes, _plain_strides(sizes), Number(0), plain=True)
        while self.last.name == "%x" or self.chance(1 - 1 / steps):
            self.choose.choice((self.subview, self.subview, self.subview, self.transpose, self.cast, self.expand,
                                self.collapse, self.collapse, self.reinterpret))()  # fmt: skip

    # What the program does: the view's elements and those of %out change places.

    @property
    def out(self) -> str:
        return f"memref<{'?x' * len(self.last.sizes)}{self.element}>"

    @property
    def parameters(self) -> str:
        numbers = "".join(f", %n{i}: index" for i in range(len(self.arguments)))
        return f"%x: {self.base.type(self.element)}, %out: {self.out}{numbers}"

    @property
    def swap(self) -> str:
        place = f"[{', '.join(f'%i{i}' for i in range(len(self.last.sizes)))}]"
        view = f"{self.last.name}{place} : {self.last.type(self.element)}"
        return (
            f"%t = memref.load {view}\n%u = memref.load %out{place} : {self.out}\n"
            f"memref.store %t, %out{place} : {self.out}\nmemref.store %u, {view}\n"
        )

    @property
    def ends(self) -> str:
        """%c0, %c1 and the view's sizes, %d0 …"""
        dims = "".join(
            f"%k{i} = arith.constant {i} : index\n%d{i} = memref.dim {self.last.name}, %k{i} : "
            f"{self.last.type(self.element)}\n"
            for i in range(len(self.last.sizes))
        )
        return f"%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n{dims}"

    @property
    def kernel(self) -> str:
        """One thread goes through all elements."""
        rank, lines = len(self.last.sizes), "\n".join(self.lines)
        loops = "".join(f"scf.for %i{i} = %c0 to %d{i} step %c1 {{\n" for i in range(rank))
        body = f"{lines}\n{self.ends}{loops}{self.swap}{'}' * rank}"
        return f"gpu.func @{self.name}({self.parameters}) kernel {{\n{body}\ngpu.return\n}}\n"

    @property
    def function(self) -> str:
        """linalg.generic with both as its outputs, which becomes a kernel on views that the host has made."""
        rank, element, lines = len(self.last.sizes), self.element, "\n".join(self.lines)
        dims = ", ".join(f"d{i}" for i in range(rank))
        same, parallel = f"affine_map<({dims}) -> ({dims})>", ", ".join(['"parallel"'] * rank)
        return (
            f"func.func @{self.name}({self.parameters}) {{\n{lines}\n"
            f"linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{parallel}]}} "
            f"outs({self.last.name}, %out : {self.last.type(element)}, {self.out}) {{\n"
            f"^bb0(%a: {element}, %b: {element}):\n  linalg.yield %b, %a : {element}, {element}\n}}\nreturn\n}}\n"
        )

    @property
    def copies(self) -> str:
        """The same by copies of views through memory of the device."""
        rank, view = len(self.last.sizes), self.last.type(self.element)
        sizes, lines = ", ".join(f"%d{i}" for i in range(rank)), "\n".join(self.lines)
        return (
            f"func.func @{self.name}({self.parameters}) {{\n{lines}\n{self.ends}"
            f"%m = gpu.alloc ({sizes}) : {self.out}\n"
            f"gpu.memcpy %m, {self.last.name} : {self.out}, {view}\n"
            f"gpu.memcpy {self.last.name}, %out : {view}, {self.out}\n"
            f"gpu.memcpy %out, %m : {self.out}, {self.out}\ngpu.dealloc %m : {self.out}\nreturn\n}}\n"
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """%x and %out before the call."""
        modulus = 2 if self.element == "i1" else 97
        numbers = [np.arange(np.prod(shape, dtype=int)).reshape(shape) for shape in (self.base.shape, self.last.shape)]
        x, out = (np.asarray((number * 3 + i) % modulus, TYPES[self.element]) for i, number in enumerate(numbers))
        return x, out

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Both after it."""
        x, out = self.arrays()
        shown = self.last.of(x)
        before = shown.copy()
        shown[...] = out
        return x, before


def generate(seed: int, steps: int = 4) -> Program:
    program = Program(f"f{seed}", random.Random(seed))
    program.write(steps)
    return program
