"""Steps of random functions of tensors that move elements: slices, insertions, padding, gathering, other shapes."""

from __future__ import annotations

import math

import numpy as np

from randomized.tensor_steps import keep
from randomized.tensors import Array, Environment, Function, Value


def has_parts(value: Value) -> bool:
    """MLIR takes no part of what is known to have no elements."""
    return value.rank > 0 and (0, True) not in zip(value.shape, value.known, strict=True)


def _numbers(function: Function, numbers: list[int], free: bool = True) -> tuple[list[str], list[bool]]:
    """Numbers as the program writes them: some in the text, others as values; and which are in the text."""
    known = [not free or function.random.random() < 0.5 for _ in numbers]
    words = [str(n) if k else f"%{_value(function, n)}" for n, k in zip(numbers, known, strict=True)]
    return words, known


def _value(function: Function, number: int) -> str:
    """A number that cannot be folded, where an argument has it."""
    if number in function.sizes and function.random.random() < 0.7:
        return f"s{function.sizes.index(number)}"
    return function.constant(number)


def part_of(function: Function, shape: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
    """Offsets, sizes and strides of a part of that shape."""
    offsets, sizes, strides = [], [], []
    for size in shape:
        stride = function.random.choice([1, 1, 1, 2, 3])
        offset = function.random.randint(0, size)
        most = math.ceil((size - offset) / stride)
        sizes.append(function.random.choice([most, most, function.random.randint(0, most)]))
        offsets.append(offset if sizes[-1] else 0)
        strides.append(stride if sizes[-1] > 1 else 1)
    return offsets, sizes, strides


def places_of(offsets: list[int], sizes: list[int], strides: list[int]) -> tuple[slice, ...]:
    return tuple(slice(o, o + n * s, s) if n else slice(0, 0) for o, n, s in zip(offsets, sizes, strides, strict=True))


def in_words(function: Function, *parts: list[int]) -> tuple[str, list[bool]]:
    """``[offsets] [sizes] [strides]``, and which sizes the type of the part knows."""
    words, known = [], []
    for numbers in parts:
        spelled, known_now = _numbers(function, numbers)
        words.append(f"[{', '.join(spelled)}]")
        known.append(known_now)
    return " ".join(words), known[1]


def slice_of(function: Function, depth: int) -> bool:
    base = function.pick(has_parts)
    if base is None:
        return False
    part = part_of(function, base.shape)
    words, known = in_words(function, *part)
    made = Value(function.fresh(), tuple(part[1]), tuple(known))
    element = function.element
    kinds = f"{base.type(element)} to {made.type(element)}"
    function.write(f"%{made.name} = tensor.extract_slice %{base.name}{words} : {kinds}")
    keep(function, made, lambda env: env[base.name][places_of(*part)].copy())
    return True


def insert(function: Function, depth: int) -> bool:
    """A part of one value, or a single element, is put into another one."""
    base = function.pick(has_parts)
    if base is None:
        return False
    element = function.element
    part = part_of(function, base.shape)
    source = function.pick(lambda value: value.shape == tuple(part[1]))
    if source is None:
        return _insert_element(function, base)
    words = [_numbers(function, part[0])[0]]
    words.append([str(n) if k else f"%{_value(function, n)}" for n, k in zip(part[1], source.known, strict=True)])
    words.append(_numbers(function, part[2])[0])
    spelled = " ".join(f"[{', '.join(each)}]" for each in words)
    made = Value(function.fresh(), base.shape, base.known)
    kinds = f"{source.type(element)} into {made.type(element)}"
    function.write(f"%{made.name} = tensor.insert_slice %{source.name} into %{base.name}{spelled} : {kinds}")

    def run(env: Environment) -> Array:
        array = env[base.name].copy()
        array[places_of(*part)] = env[source.name]
        return array

    keep(function, made, run)
    return True


def _insert_element(function: Function, base: Value) -> bool:
    if 0 in base.shape:
        return False
    element = function.element
    read, written = ([function.random.randrange(size) for size in base.shape] for _ in range(2))
    places = [", ".join(f"%{_value(function, n)}" for n in place) for place in (read, written)]
    scalar, made = function.fresh(), Value(function.fresh(), base.shape, base.known)
    kind = base.type(element)
    function.write(
        f"%{scalar} = tensor.extract %{base.name}[{places[0]}] : {kind}",
        f"%{made.name} = tensor.insert %{scalar} into %{base.name}[{places[1]}] : {kind}",
    )

    def run(env: Environment) -> Array:
        array = env[base.name].copy()
        array[tuple(written)] = array[tuple(read)]
        return array

    keep(function, made, run)
    return True


def pad(function: Function, depth: int) -> bool:
    base = function.pick(lambda value: 0 < value.rank < 4 and math.prod(value.shape) < 3000)
    if base is None:
        return False
    element, random = function.element, function.random
    low, high = ([random.choice([0, 0, 1, 2]) for _ in base.shape] for _ in range(2))
    spelled = []
    known = list(base.known)
    for numbers in (low, high):
        words, in_text = _numbers(function, numbers)
        spelled.append(f"[{', '.join(words)}]")
        known = [one and other for one, other in zip(known, in_text, strict=True)]
    shape = tuple(n + a + b for n, a, b in zip(base.shape, low, high, strict=True))
    made, number = Value(function.fresh(), shape, tuple(known)), random.randint(-5, 5)
    start = function.constant(number, element)
    indices = ", ".join(f"%{function.fresh()}: index" for _ in shape)
    function.write(
        f"%{made.name} = tensor.pad %{base.name} low{spelled[0]} high{spelled[1]} {{",
        f"^bb0({indices}):",
        f"  tensor.yield %{start} : {element}",
        f"}} : {base.type(element)} to {made.type(element)}",
    )
    widths = list(zip(low, high, strict=True))
    keep(function, made, lambda env: np.pad(env[base.name], widths, constant_values=number))
    return True


def concat(function: Function, depth: int) -> bool:
    one = function.pick(lambda value: value.rank > 0 and math.prod(value.shape) < 3000)
    if one is None:
        return False
    axis = function.random.randrange(one.rank)

    def fits(value: Value) -> bool:
        rests = [each.shape[:axis] + each.shape[axis + 1 :] for each in (value, one)]
        return value.rank == one.rank and rests[0] == rests[1] and math.prod(value.shape) < 3000

    other = function.pick(fits)
    if other is None:
        return False
    pairs = list(zip(one.known, other.known, strict=True))
    known = tuple(all(pair) if i == axis else any(pair) for i, pair in enumerate(pairs))
    shape = tuple(n + (other.shape[axis] if i == axis else 0) for i, n in enumerate(one.shape))
    made, element = Value(function.fresh(), shape, known), function.element
    function.write(
        f"%{made.name} = tensor.concat dim({axis}) %{one.name}, %{other.name}",
        f"    : ({one.type(element)}, {other.type(element)}) -> {made.type(element)}",
    )
    keep(function, made, lambda env: np.concatenate([env[one.name], env[other.name]], axis))
    return True


def gather(function: Function, depth: int) -> bool:
    """Elements along an axis, at places that another value has: what numbers have to be within is added."""
    base = function.pick(lambda value: value.rank > 0 and 0 not in value.shape)
    where = function.pick(lambda value: value.rank == 1)
    if base is None or where is None:
        return False
    element = function.element
    axis = function.random.randrange(base.rank)
    like = [(where, 0) if i == axis else (base, i) for i in range(base.rank)]
    out = function.empty(like)
    made = Value(function.fresh(), out.shape, out.known)
    size, least = base.shape[axis], np.iinfo(function.dtype).max
    limit, names = min(size, int(least)), [function.fresh() for _ in range(8)]
    last, zero = function.constant(limit - 1), function.constant(0)
    dims = ", ".join(f"d{i}" for i in range(base.rank))
    indices = [function.fresh() for _ in range(base.rank)]
    kinds = ", ".join(['"parallel"'] * base.rank)
    places = ", ".join(f"%{names[4] if i == axis else indices[i]}" for i in range(base.rank))
    function.write(
        f"%{made.name} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> (d{axis})>, "
        f"affine_map<({dims}) -> ({dims})>], iterator_types = [{kinds}]}}",
        f"    ins(%{where.name} : {where.type(element)}) outs(%{out.name} : {out.type(element)}) {{",
        f"^bb0(%{names[0]}: {element}, %{names[1]}: {element}):",
        *(f"  %{index} = linalg.index {i} : index" for i, index in enumerate(indices)),
        f"  %{names[2]} = arith.index_cast %{names[0]} : {element} to index",
        f"  %{names[3]} = arith.maxsi %{names[2]}, %{zero} : index",
        f"  %{names[4]} = arith.minsi %{names[3]}, %{last} : index",
        f"  %{names[5]} = tensor.extract %{base.name}[{places}] : {base.type(element)}",
        f"  linalg.yield %{names[5]} : {element}",
        f"}} -> {made.type(element)}",
    )
    keep(function, made, lambda env: env[base.name].take(env[where.name].astype(np.int64).clip(0, limit - 1), axis))
    return True


def reshape(function: Function, depth: int) -> bool:
    """Two neighbouring dimensions become one, or one becomes two, the outer of which is known."""
    base = function.pick(lambda value: value.rank > 0)
    if base is None:
        return False
    element = function.element
    axis = function.random.randrange(base.rank)
    if axis + 1 < base.rank and function.random.random() < 0.6:
        merged = base.shape[axis] * base.shape[axis + 1]
        shape = (*base.shape[:axis], merged, *base.shape[axis + 2 :])
        known = (*base.known[:axis], base.known[axis] and base.known[axis + 1], *base.known[axis + 2 :])
        made = Value(function.fresh(), shape, known)
        kinds = f"{base.type(element)} into {made.type(element)}"
        function.write(f"%{made.name} = tensor.collapse_shape %{base.name} {_groups(made.rank, axis)} : {kinds}")
    else:
        outer = function.random.choice([n for n in (1, 1, 2, 3, 4) if base.shape[axis] % n == 0])
        inner = base.shape[axis] // outer
        shape = (*base.shape[:axis], outer, inner, *base.shape[axis + 1 :])
        known = (*base.known[:axis], True, base.known[axis], *base.known[axis + 1 :])
        made = Value(function.fresh(), shape, known)
        places = [function.size(base, i) for i in range(base.rank)]
        places[axis : axis + 1] = ["", _divided(function, places[axis], outer)]
        sizes = [str(n) if k else f"%{place}" for n, k, place in zip(shape, known, places, strict=True)]
        kinds = f"{base.type(element)} into {made.type(element)}"
        function.write(
            f"%{made.name} = tensor.expand_shape %{base.name} {_groups(base.rank, axis)} "
            f"output_shape [{', '.join(sizes)}] : {kinds}"
        )
    keep(function, made, lambda env: env[base.name].reshape(shape))
    return True


def _divided(function: Function, whole: str, by: int) -> str:
    divisor, part = function.constant(by), function.fresh()
    function.write(f"%{part} = arith.divui %{whole}, %{divisor} : index")
    return part


def _groups(count: int, double: int) -> str:
    """``[[0], [1, 2], [3]]``: the one at `double` has two dimensions."""
    groups, at = [], 0
    for i in range(count):
        groups.append([at, at + 1] if i == double else [at])
        at += len(groups[-1])
    return str(groups)
