"""Random functions of tensors, and the steps of theirs that have steps inside: loops, branches, rows side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from randomized import tensor_parts, tensor_steps, tensor_updates
from randomized.tensors import Compute, Environment, Function, Value

ELEMENTS = (tensor_steps.elementwise, tensor_steps.elementwise, tensor_steps.reduction, tensor_steps.arithmetic)
PARTS = (
    tensor_steps.transpose, tensor_parts.slice_of, tensor_parts.insert, tensor_parts.pad, tensor_parts.concat,
    tensor_parts.gather, tensor_parts.reshape,
)  # fmt: skip
UPDATES = (tensor_updates.constant, tensor_updates.filled, tensor_updates.change, tensor_updates.change_part)


def generate(seed: int, fewest: int = 3, most: int = 9) -> Function:
    """A function of a few steps; the same seed gives the same."""
    function = Function(seed)
    random = function.random
    for i in range(random.randint(1, 3)):
        shape = [random.choice(function.sizes) for _ in range(random.choice([0, 1, 1, 2, 2, 2, 3]))]
        function.arguments.append(Value(f"a{i}", tuple(shape), tuple(random.random() < 0.4 for _ in shape)))
    function.values += function.arguments
    for _ in range(random.randint(fewest, most)):
        add(function, depth=0)
    last = function.values[-4:]
    function.results = random.sample(last, min(len(last), random.choice([1, 1, 2, 3])))
    return function


def add(function: Function, depth: int) -> None:
    """One step more, of any kind that the values are fit for."""
    kinds = [*ELEMENTS, *ELEMENTS, *PARTS, *UPDATES, tensor_steps.product, *FLOW[depth]]
    while not function.random.choice(kinds)(function, depth):
        pass


@contextmanager
def _inside(function: Function) -> Iterator[list[Compute]]:
    """What is written inside is indented, and its values and computations are not those of what is outside."""
    lines, steps, values = function.lines, function.steps, function.values
    function.lines, function.steps, function.values = [], [], list(values)
    try:
        yield function.steps
    finally:
        lines += [f"  {line}" for line in function.lines]
        function.lines, function.steps, function.values = lines, steps, values


def _leave(function: Function, like: Value, depth: int) -> Value:
    """Some steps, and a value of a type, which they have made if they can."""
    for _ in range(function.random.randint(1, 3)):
        add(function, depth + 1)
    made = function.pick(lambda value: value.shape == like.shape) or like
    return function.cast(made, like.known)


def _run(steps: list[Compute], env: Environment) -> None:
    for step in steps:
        step(env)


def loop(function: Function, depth: int) -> bool:
    """scf.for, which carries a value or two, and may count."""
    carried = [function.pick() for _ in range(function.random.choice([1, 1, 2]))]
    if not all(carried):
        return False
    starts = [value for value in carried if value is not None]
    element, count = function.element, function.random.choice([0, 1, 2, 3])
    low, high, step = (function.constant(number) for number in (0, count, 1))
    inner = [Value(function.fresh(), value.shape, value.known) for value in starts]
    group = function.fresh()
    carries = ", ".join(f"%{each.name} = %{value.name}" for each, value in zip(inner, starts, strict=True))
    types = ", ".join(value.type(element) for value in starts)
    counter = function.fresh()
    function.write(
        f"%{group}:{len(starts)} = scf.for %{counter} = %{low} to %{high} step %{step} "
        f"iter_args({carries}) -> ({types}) {{"
    )
    with _inside(function) as steps:
        number, number_of = function.fresh(), function.fresh()
        one = Value(number_of, (), ())
        function.write(
            f"%{number} = arith.index_cast %{counter} : index to {element}",
            f"%{number_of} = tensor.from_elements %{number} : {one.type(element)}",
        )
        function.values += [*inner, one]
        yielded = [_leave(function, value, depth) for value in inner]
        function.write(f"scf.yield {', '.join(f'%{each.name}' for each in yielded)} : {types}")
    function.write("}")

    def run(env: Environment) -> None:
        state = [env[value.name] for value in starts]
        for i in range(count):
            env.update({each.name: array for each, array in zip(inner, state, strict=True)})
            env[one.name] = np.array(i, function.dtype)
            _run(steps, env)
            state = [env[each.name] for each in yielded]
        env.update({f"{group}#{i}": array for i, array in enumerate(state)})

    function.steps.append(run)
    function.values += [Value(f"{group}#{i}", value.shape, value.known) for i, value in enumerate(starts)]
    return True


def repeat(function: Function, depth: int) -> bool:
    """scf.while, which changes a value until it has counted far enough: maybe before it asks, maybe behind."""
    start = function.pick()
    if start is None:
        return False
    element, count = function.element, function.random.choice([0, 1, 2, 3])
    zero, one, end = (function.constant(number) for number in (0, 1, count))
    before, after = (Value(function.fresh(), start.shape, start.known) for _ in range(2))
    group, kind = function.fresh(), start.type(element)
    counters, condition, next_one = [function.fresh() for _ in range(2)], function.fresh(), function.fresh()
    function.write(
        f"%{group}:2 = scf.while (%{before.name} = %{start.name}, %{counters[0]} = %{zero}) "
        f": ({kind}, index) -> ({kind}, index) {{"
    )
    changes_first = function.random.random() < 0.4
    with _inside(function) as asked:
        function.values.append(before)
        passed = _leave(function, before, depth) if changes_first else before
        function.write(
            f"%{condition} = arith.cmpi ult, %{counters[0]}, %{end} : index",
            f"scf.condition(%{condition}) %{passed.name}, %{counters[0]} : {kind}, index",
        )
    function.write("} do {", f"^bb0(%{after.name}: {kind}, %{counters[1]}: index):")
    with _inside(function) as done:
        function.values.append(after)
        yielded = _leave(function, after, depth)
        function.write(
            f"%{next_one} = arith.addi %{counters[1]}, %{one} : index",
            f"scf.yield %{yielded.name}, %{next_one} : {kind}, index",
        )
    function.write("}")

    def run(env: Environment) -> None:
        array = env[start.name]
        for i in range(count + 1):
            env[before.name] = array
            _run(asked, env)
            array = env[passed.name]
            if i < count:
                env[after.name] = array
                _run(done, env)
                array = env[yielded.name]
        env[f"{group}#0"] = array

    function.steps.append(run)
    function.values.append(Value(f"{group}#0", start.shape, start.known))
    return True


def branch(function: Function, depth: int) -> bool:
    """scf.if, on an element of a value or on a size."""
    like = function.pick()
    if like is None:
        return False
    element, condition = function.element, function.fresh()
    decides = function.pick(lambda value: value.rank == 0)
    limit = function.random.randint(-3, 3)
    if decides is not None and function.random.random() < 0.7:
        scalar, number = function.fresh(), function.constant(limit, element)
        function.write(
            f"%{scalar} = tensor.extract %{decides.name}[] : {decides.type(element)}",
            f"%{condition} = arith.cmpi sgt, %{scalar}, %{number} : {element}",
        )
    else:
        decides = None
        size, number = function.random.randrange(len(function.sizes)), function.constant(limit + 2)
        function.write(f"%{condition} = arith.cmpi sgt, %s{size}, %{number} : index")
    made, kind = Value(function.fresh(), like.shape, like.known), like.type(element)
    function.write(f"%{made.name} = scf.if %{condition} -> ({kind}) {{")
    ways = []
    for closing in ("} else {", "}"):
        with _inside(function) as steps:
            result = _leave(function, like, depth)
            function.write(f"scf.yield %{result.name} : {kind}")
        function.write(closing)
        ways.append((steps, result))

    def run(env: Environment) -> None:
        taken = env[decides.name] > limit if decides is not None else function.sizes[size] > limit + 2
        steps, result = ways[0 if taken else 1]
        _run(steps, env)
        env[made.name] = env[result.name]

    function.steps.append(run)
    function.values.append(made)
    return True


def rows(function: Function, depth: int) -> bool:
    """scf.forall over the first dimension of a value: each leaves a row of the result, made of a row of another."""
    base = function.pick(tensor_parts.has_parts)
    if base is None:
        return False
    element, random = function.element, function.random
    out = function.empty([(base, axis) for axis in range(base.rank)])
    count = function.size(base, 0)
    made, at, shared = Value(function.fresh(), out.shape, out.known), function.fresh(), function.fresh()
    kind, row_shape, row_known = made.type(element), base.shape[1:], base.known[1:]
    function.write(
        f"%{made.name} = scf.forall (%{at}) in (%{count}) shared_outs(%{shared} = %{out.name}) -> ({kind}) {{"
    )
    with _inside(function) as steps:
        row = Value(function.fresh(), row_shape, row_known)
        sizes = [
            str(size) if is_known else f"%{function.size(base, axis)}"
            for axis, (size, is_known) in enumerate(zip(row_shape, row_known, strict=True), start=1)
        ]
        ones, zeros = ["1"] * base.rank, ["0"] * len(row_shape)
        place = f"[{', '.join([f'%{at}', *zeros])}] [{', '.join(['1', *sizes])}] [{', '.join(ones)}]"
        function.write(
            f"%{row.name} = tensor.extract_slice %{base.name}{place} : {base.type(element)} to {row.type(element)}"
        )
        function.values.append(row)
        for _ in range(random.randint(1, 3)):
            add(function, depth + 1)
        result = function.cast(function.pick(lambda value: value.shape == row_shape) or row, row_known)
        function.write(
            "scf.forall.in_parallel {",
            f"  tensor.parallel_insert_slice %{result.name} into %{shared}{place} : {row.type(element)} into {kind}",
            "}",
        )
    function.write("}")

    def run(env: Environment) -> None:
        array = np.zeros(made.shape, function.dtype)
        for i in range(made.shape[0]):
            env[row.name] = env[base.name][i]
            _run(steps, env)
            array[i] = env[result.name]
        env[made.name] = array

    function.steps.append(run)
    function.values.append(made)
    return True


def call(function: Function, depth: int) -> bool:
    """A private function of a value or two, called once."""
    given = [value for _ in range(function.random.choice([1, 1, 2])) if (value := function.pick()) is not None]
    if not given:
        return False
    element, name = function.element, f"{function.name}_{function.fresh()}"
    inner = [Value(function.fresh(), value.shape, value.known) for value in given]
    lines, steps, values = function.lines, function.steps, function.values
    function.lines, function.steps, function.values = [], [], list(inner)
    for _ in range(function.random.randint(1, 3)):
        add(function, depth + 1)
    result = function.values[-1]
    function.helpers.append(function.written(name, "private ", inner, [result]))
    inside = function.steps
    function.lines, function.steps, function.values = lines, steps, values
    made = Value(function.fresh(), result.shape, result.known)
    sizes = [f"%s{i}" for i in range(len(function.sizes))]
    kinds = [*(value.type(element) for value in given), *("index" for _ in sizes)]
    arguments = ", ".join([*(f"%{value.name}" for value in given), *sizes])
    function.write(f"%{made.name} = func.call @{name}({arguments}) : ({', '.join(kinds)}) -> {made.type(element)}")

    def run(env: Environment) -> None:
        env.update({each.name: env[value.name] for each, value in zip(inner, given, strict=True)})
        _run(inside, env)
        env[made.name] = env[result.name]

    function.steps.append(run)
    function.values.append(made)
    return True


FLOW = ((loop, repeat, branch, rows, rows, call), (loop, repeat, branch, call), ())
"""By depth: threads have loops, branches and calls inside."""
