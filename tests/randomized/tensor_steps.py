"""The steps of random functions of tensors: each adds a value, where there are values it can work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from randomized.tensors import Array, Environment, Function, Value

JOINS: dict[str, np.ufunc] = {
    "addi": np.add,
    "muli": np.multiply,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
}
BINARY: dict[str, np.ufunc] = {**JOINS, "subi": np.subtract, "andi": np.bitwise_and, "ori": np.bitwise_or}
COMPARISONS = {"slt": np.less, "sge": np.greater_equal, "eq": np.equal}
STARTS = {"addi": 0, "muli": 1, "xori": 0, "maxsi": -7, "minsi": 7}


def axes_of(random: Random, loops: Sequence[int], value: Value) -> list[int | None] | None:
    """Which loops lead to which dimensions of a value; None stands for its only element. None where none do."""
    places: list[int | None] = []
    for size in value.shape:
        free = [i for i, loop in enumerate(loops) if loop == size and i not in places]
        if size == 1 and (not free or random.random() < 0.3):
            places.append(None)
        elif free:
            places.append(random.choice(free))
        else:
            return None
    return places


def _spread(array: Array, places: Sequence[int | None], loops: Sequence[int]) -> Array:
    """The array with a dimension for each loop."""
    kept = [place for place in places if place is not None]
    array = array.reshape([loops[place] for place in kept]).transpose(np.argsort(kept).astype(int))
    shape = [loop if i in kept else 1 for i, loop in enumerate(loops)]
    return np.broadcast_to(array.reshape(shape), loops)


def _map(rank: int, places: Sequence[int | None]) -> str:
    results = ", ".join("0" if place is None else f"d{place}" for place in places)
    return f"affine_map<({', '.join(f'd{i}' for i in range(rank))}) -> ({results})>"


class Body:
    """The body of a generic operation: expressions of scalars, with what they are of arrays."""

    def __init__(self, function: Function, known: Sequence[tuple[str, Callable[[Environment], Array]]]) -> None:
        self.function, self.known = function, list(known)
        self.lines: list[str] = []

    def any(self) -> tuple[str, Callable[[Environment], Array]]:
        return self.function.random.choice(self.known[-4:] + self.known[:2])

    def apply(self, operation: str, *operands: tuple[str, Callable[[Environment], Array]]) -> None:
        name, element = self.function.fresh(), self.function.element
        names, computes = [f"%{each[0]}" for each in operands], [each[1] for each in operands]
        if operation in COMPARISONS:
            flag = self.function.fresh()
            self.lines += [
                f"%{flag} = arith.cmpi {operation}, {names[0]}, {names[1]} : {element}",
                f"%{name} = arith.select %{flag}, {names[2]}, {names[3]} : {element}",
            ]
        else:
            self.lines.append(f"%{name} = arith.{operation} {names[0]}, {names[1]} : {element}")

        def made(env: Environment) -> Array:
            one, other, *chosen = [compute(env) for compute in computes]
            if operation in COMPARISONS:
                return np.where(COMPARISONS[operation](one, other), *chosen)
            return BINARY[operation](one, other)

        self.known.append((name, made))

    def grow(self, count: int) -> None:
        for _ in range(count):
            operation = self.function.random.choice([*BINARY, *COMPARISONS])
            self.apply(operation, *(self.any() for _ in range(4 if operation in COMPARISONS else 2)))

    def index(self, axis: int, loops: Sequence[int]) -> None:
        """The number of a loop's step becomes known."""
        place, number = self.function.fresh(), self.function.fresh()
        self.lines += [
            f"%{place} = linalg.index {axis} : index",
            f"%{number} = arith.index_cast %{place} : index to {self.function.element}",
        ]
        shape = [-1 if i == axis else 1 for i in range(len(loops))]
        counted = np.arange(loops[axis]).astype(self.function.dtype).reshape(shape)
        self.known.append((number, lambda env: np.broadcast_to(counted, loops)))


def _inputs(function: Function, loops: Sequence[int], most: int) -> list[tuple[Value, list[int | None]]]:
    """Values that loops of these sizes can read, and where."""
    found = []
    for _ in range(function.random.randint(1, most)):
        value = function.pick()
        if value is not None and (places := axes_of(function.random, loops, value)) is not None:
            found.append((value, places))
    return found


def _generic(
    function: Function,
    inputs: Sequence[tuple[Value, list[int | None]]],
    out: Value,
    places: Sequence[int | None],
    kinds: Sequence[str],
    body: Sequence[str],
    arguments: Sequence[str],
    result: str,
) -> Value:
    """The text of a linalg.generic."""
    element, made = function.element, Value(function.fresh(), out.shape, out.known)
    maps = ", ".join(_map(len(kinds), each) for each in [*(places for _, places in inputs), places])
    ins = ", ".join(f"%{value.name}" for value, _ in inputs)
    types = ", ".join(value.type(element) for value, _ in inputs)
    quoted = ", ".join(f'"{kind}"' for kind in kinds)
    function.write(
        f"%{made.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{quoted}]}}",
        *([f"    ins({ins} : {types})"] if inputs else []),
        f"    outs(%{out.name} : {out.type(element)}) {{",
        f"^bb0({', '.join(f'%{name}: {element}' for name in arguments)}):",
        *(f"  {line}" for line in body),
        f"  linalg.yield %{result} : {element}",
        f"}} -> {made.type(element)}",
    )
    return made


def _read(value: Value, places: Sequence[int | None], loops: Sequence[int]) -> Callable[[Environment], Array]:
    return lambda env: _spread(env[value.name], places, loops)


def elementwise(function: Function, depth: int) -> bool:
    """Of one value's sizes, in any order, with others that are spread over them."""
    base = function.pick()
    if base is None:
        return False
    random = function.random
    order = random.sample(range(base.rank), base.rank)
    like = [(base, axis) for axis in order]
    loops = [base.shape[axis] for axis in order]
    places: list[int | None] = [order.index(axis) for axis in range(base.rank)]
    inputs = [(base, places), *_inputs(function, loops, 2)]
    names = [function.fresh() for _ in inputs]
    known = [(name, _read(value, at, loops)) for name, (value, at) in zip(names, inputs, strict=True)]
    body = Body(function, known)
    out = function.empty(like)
    if loops and random.random() < 0.3:
        body.index(random.randrange(len(loops)), loops)
    body.grow(random.randint(1, 4))
    result, compute = body.known[-1]
    kinds = ["parallel"] * len(loops)
    arguments = [*names, function.fresh()]
    made = _generic(function, inputs, out, range(len(loops)), kinds, body.lines, arguments, result)
    keep(function, made, lambda env: np.array(np.broadcast_to(compute(env), loops)))
    return True


def reduction(function: Function, depth: int) -> bool:
    """Of some of a value's dimensions, into what starts as a number or as another value."""
    base = function.pick(lambda value: value.rank > 0)
    if base is None:
        return False
    random = function.random
    gone = sorted(random.sample(range(base.rank), random.randint(1, base.rank)))
    left = [axis for axis in range(base.rank) if axis not in gone]
    random.shuffle(left)
    join = random.choice(list(JOINS))
    shape = tuple(base.shape[axis] for axis in left)
    start = function.pick(lambda value: value.shape == shape) if random.random() < 0.3 else None
    if start is None:
        start = function.filled([(base, axis) for axis in left], STARTS[join])
    places: list[int | None] = list(range(base.rank))
    inputs = [(base, places), *_inputs(function, base.shape, 1)]
    names = [function.fresh() for _ in inputs]
    known = [(name, _read(value, at, base.shape)) for name, (value, at) in zip(names, inputs, strict=True)]
    body = Body(function, known)
    body.grow(random.choice([0, 0, 1, 2]))
    (name, compute), old, result = body.known[-1], function.fresh(), function.fresh()
    operands = random.sample([name, old], 2)
    lines = [*body.lines, f"%{result} = arith.{join} %{operands[0]}, %{operands[1]} : {function.element}"]
    kinds = ["reduction" if axis in gone else "parallel" for axis in range(base.rank)]
    made = _generic(function, inputs, start, left, kinds, lines, [*names, old], result)
    ordered = [sorted(left).index(axis) for axis in left]

    def run(env: Environment) -> Array:
        array = np.broadcast_to(compute(env), base.shape)
        reduced = JOINS[join].reduce(array, axis=tuple(gone), initial=_neutral(function, join))
        return JOINS[join](np.asarray(reduced, function.dtype).transpose(ordered), env[start.name])

    keep(function, made, run)
    return True


def _neutral(function: Function, join: str) -> Array:
    limits = np.iinfo(function.dtype)
    return function.dtype({"maxsi": limits.min, "minsi": limits.max}.get(join, STARTS[join]))


def keep(function: Function, made: Value, compute: Callable[[Environment], Array]) -> None:
    function.values.append(made)
    function.steps.append(lambda env: env.update({made.name: np.asarray(compute(env), function.dtype)}))


def arithmetic(function: Function, depth: int) -> bool:
    """An operation of arith on whole tensors."""
    one = function.pick()
    other = function.pick(lambda value: one is not None and value.shape == one.shape)
    if one is None or other is None:
        return False
    other = function.cast(other, one.known)
    operation = function.random.choice(list(BINARY))
    made = Value(function.fresh(), one.shape, one.known)
    function.write(f"%{made.name} = arith.{operation} %{one.name}, %{other.name} : {one.type(function.element)}")
    keep(function, made, lambda env: BINARY[operation](env[one.name], env[other.name]))
    return True


def transpose(function: Function, depth: int) -> bool:
    base = function.pick(lambda value: value.rank > 1)
    if base is None:
        return False
    order = function.random.sample(range(base.rank), base.rank)
    out = function.empty([(base, axis) for axis in order])
    made, element = Value(function.fresh(), out.shape, out.known), function.element
    function.write(
        f"%{made.name} = linalg.transpose ins(%{base.name} : {base.type(element)})",
        f"    outs(%{out.name} : {out.type(element)}) permutation = {order}",
    )
    keep(function, made, lambda env: env[base.name].transpose(order))
    return True


def product(function: Function, depth: int) -> bool:
    """linalg.matmul, matvec, vecmat, dot or batch_matmul."""
    one = function.pick(lambda value: 1 <= value.rank <= 3)
    if one is None:
        return False
    batch = one.rank == 3
    fits: Callable[[Value], bool] = (
        (lambda value: value.rank == 3 and (value.shape[0], value.shape[1]) == (one.shape[0], one.shape[2]))
        if batch
        else (lambda value: 1 <= value.rank <= 2 and value.shape[0] == one.shape[-1])
    )
    other = function.pick(fits)
    if other is None:
        return False
    names = {(1, 1): "dot", (1, 2): "vecmat", (2, 1): "matvec", (2, 2): "matmul", (3, 3): "batch_matmul"}
    like = [(one, axis) for axis in range(one.rank - 1)]
    like += [(other, axis) for axis in range(2 if batch else 1, other.rank)]
    out = function.filled(like, function.random.choice([0, 0, 3]))
    made, element = Value(function.fresh(), out.shape, out.known), function.element
    function.write(
        f"%{made.name} = linalg.{names[one.rank, other.rank]}",
        f"    ins(%{one.name}, %{other.name} : {one.type(element)}, {other.type(element)})",
        f"    outs(%{out.name} : {out.type(element)}) -> {made.type(element)}",
    )
    keep(function, made, lambda env: env[out.name] + env[one.name] @ env[other.name])
    return True
