"""Steps of random functions of tensors that are about memory: tensors that are in the program's text, and values that
are changed where they are, whole or in part."""

from __future__ import annotations

import math

import numpy as np

from randomized.tensor_parts import has_parts, in_words, part_of, places_of
from randomized.tensor_steps import keep
from randomized.tensors import Array, Environment, Function, Value


def constant(function: Function, depth: int) -> bool:
    """A tensor like another one, of numbers that the program has, with every size known."""
    like = function.pick(lambda value: math.prod(value.shape) < 200)
    if like is None:
        return False
    random = function.random
    numbers = np.reshape([random.randint(-9, 9) for _ in range(math.prod(like.shape))], like.shape)
    is_splat = 0 in like.shape or random.random() < 0.3
    words = random.randint(-9, 9) if is_splat else str(numbers.tolist())
    array = np.full(like.shape, words) if is_splat else numbers
    made = Value(function.fresh(), like.shape, tuple(True for _ in like.shape))
    function.write(f"%{made.name} = arith.constant dense<{words}> : {made.type(function.element)}")
    keep(function, made, lambda env: array)
    return True


def filled(function: Function, depth: int) -> bool:
    like = function.pick()
    if like is None:
        return False
    function.values.append(function.filled([(like, axis) for axis in range(like.rank)], function.random.randint(-9, 9)))
    return True


def _changed(function: Function, out: Value, number: int) -> Value:
    """``out * number + 1``, computed where ``out`` is."""
    element, made = function.element, Value(function.fresh(), out.shape, out.known)
    factor, one = function.constant(number, element), function.constant(1, element)
    old, product, new = (function.fresh() for _ in range(3))
    indices = ", ".join(f"d{i}" for i in range(out.rank))
    kinds = ", ".join(['"parallel"'] * out.rank)
    same = f"affine_map<({indices}) -> ({indices})>"
    function.write(
        f"%{made.name} = linalg.generic {{indexing_maps = [{same}], iterator_types = [{kinds}]}}",
        f"    outs(%{out.name} : {out.type(element)}) {{",
        f"^bb0(%{old}: {element}):",
        f"  %{product} = arith.muli %{old}, %{factor} : {element}",
        f"  %{new} = arith.addi %{product}, %{one} : {element}",
        f"  linalg.yield %{new} : {element}",
        f"}} -> {made.type(element)}",
    )
    return made


def change(function: Function, depth: int) -> bool:
    """All of a value, which may be needed as it was, too."""
    base, number = function.pick(), function.random.randint(-3, 3)
    if base is None:
        return False
    keep(function, _changed(function, base, number), lambda env: (env[base.name] * number + 1).astype(function.dtype))
    return True


def change_part(function: Function, depth: int) -> bool:
    """A part is taken out, changed, and put back: into what it was taken from, or into another like it."""
    base = function.pick(has_parts)
    if base is None:
        return False
    element, number = function.element, function.random.randint(-3, 3)
    into = function.pick(lambda value: value.shape == base.shape and value.known == base.known)
    if into is None or function.random.random() < 0.7:
        into = base
    part = part_of(function, base.shape)
    words, known = in_words(function, *part)
    taken = Value(function.fresh(), tuple(part[1]), tuple(known))
    function.write(
        f"%{taken.name} = tensor.extract_slice %{base.name}{words} : {base.type(element)} to {taken.type(element)}"
    )
    changed = _changed(function, taken, number)
    made = Value(function.fresh(), into.shape, into.known)
    kinds = f"{changed.type(element)} into {made.type(element)}"
    function.write(f"%{made.name} = tensor.insert_slice %{changed.name} into %{into.name}{words} : {kinds}")

    def run(env: Environment) -> Array:
        array = env[into.name].copy()
        array[places_of(*part)] = (env[base.name][places_of(*part)] * number + 1).astype(function.dtype)
        return array

    keep(function, made, run)
    return True
