"""Branches, calls, ends and barriers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import AbortedError, EmulationError

from ptx.block import Barrier, Block
from ptx.builtins import BUILTINS
from ptx.maker import Maker, Step
from ptx.syntax import Number, Operand, Symbol, Vector
from ptx.table import instruction

Array = Any


@instruction("bra")
def _branch(maker: Maker) -> Step:
    (label,) = maker.operands
    assert isinstance(label, Symbol)
    pc = maker.program.labels[label.key]

    def step(block: Block) -> None:
        block.pc = pc

    return step


@instruction("brx")
def _branch_by_number(maker: Maker) -> Step:
    """``brx.idx``: to one of the labels of ``.branchtargets``."""
    number, table = maker.operands
    assert isinstance(table, Symbol)
    places = [maker.program.labels[label] for label in maker.program.targets[table.key]]
    which = maker.bits(number, "b32")

    def step(block: Block) -> None:
        active, numbers = block.active, which(block)
        for chosen in np.unique(numbers[active]).tolist():
            if chosen >= len(places):
                raise EmulationError(f"branch number {chosen} of {len(places)}")
            block.send(active & (numbers == chosen), places[chosen])
        block.go(np.zeros(block.size, bool))

    return step


@instruction("exit")
def _exit(maker: Maker) -> Step:
    return Block.end


@instruction("trap", "brkpt")
def _trap(maker: Maker) -> Step:
    def step(block: Block) -> None:
        raise AbortedError("the program aborted")

    return step


@instruction("nanosleep", "pmevent", "setmaxnreg")
def _nothing(maker: Maker) -> Step:
    return lambda block: None


@instruction("ret")
def _return(maker: Maker) -> Step:
    name = maker.function.name

    def step(block: Block) -> None:
        outer = block.active & (block.depth == 0)
        inner = block.active & ~outer
        if inner.any():
            block.depth = block.depth - inner.astype(np.int8)
            back = block.returns[block.depth, np.arange(block.size)]
            block.running[name] = block.running[name] & ~inner
            block.callee = np.where(inner, block.launch.program.numbers[name], block.callee)
            for pc in np.unique(back[inner]).tolist():
                block.send(inner & (back == pc), pc)
        block.go(outer)
        if outer.any():
            block.end()

    return step


@instruction("call")
def _call(maker: Maker) -> Step:
    """``call (result), function, (params)``; the results are fetched by the step behind it."""
    operands = list(maker.operands)
    if operands and isinstance(operands[0], Vector) and len(operands) > 1:
        operands.pop(0)
    callee, *rest = operands
    given = (
        [part.key for part in rest[0].parts if isinstance(part, Symbol)] if rest and isinstance(rest[0], Vector) else []
    )
    if builtin := _builtin(maker, callee):
        results = _results(maker.operands)
        return lambda block: builtin(block, given, results)
    if isinstance(callee, Symbol):
        name = callee.key
        maker.program.body(name)  # that there is one
        return lambda block: _enter(block, name, given, block.active)
    target = maker.bits(callee, "b64")

    def step(block: Block) -> None:
        active, entries = block.active, target(block)
        for entry in np.unique(entries[active]).tolist():
            name = block.launch.program.function_at(entry)
            block.go(active & (entries == entry))
            _enter(block, name, given, block.active)
        block.go(np.zeros(block.size, bool))

    return step


def _enter(block: Block, name: str, given: list[str], lanes: Array) -> None:
    program = block.launch.program
    function = program.body(name)
    inside = block.running.get(name, np.zeros(block.size, bool))
    if (inside & lanes).any():
        raise EmulationError(f"{name} calls itself, which is not known")
    block.running[name] = inside | lanes
    for key, param in zip(given, function.params, strict=True):
        held = block.params[param.key]
        held[lanes, : param.size] = block.params[key][lanes, : param.size]
    if int(block.depth.max()) + 1 >= len(block.returns):
        block.returns = np.concatenate([block.returns, np.zeros_like(block.returns)])
    block.returns[block.depth[lanes], np.flatnonzero(lanes)] = block.pc
    block.depth = block.depth + lanes.astype(np.int8)
    block.send(lanes, program.entries[name])
    block.go(np.zeros(block.size, bool))


def _results(operands: tuple[Operand, ...]) -> list[str]:
    if operands and isinstance(operands[0], Vector) and len(operands) > 1:
        return [part.key for part in operands[0].parts if isinstance(part, Symbol)]
    return []


def _builtin(maker: Maker, callee: Operand) -> Callable[[Block, list[str], list[str]], None] | None:
    """The driver's own function of that name."""
    if isinstance(callee, Symbol) and not maker.program.has_body(callee.key):
        return BUILTINS.get(callee.key)
    return None


def after_call(maker: Maker) -> Step | None:
    """What the caller does when it goes on: results become its own."""
    results = _results(maker.operands)
    if not results or _builtin(maker, maker.operands[1]):
        return None

    def step(block: Block) -> None:
        program = block.launch.program
        for number in np.unique(block.callee[block.active]).tolist():
            function = program.body(program.names[number])
            lanes = block.active & (block.callee == number)
            for key, result in zip(results, function.results, strict=True):
                block.params[key][lanes, : result.size] = block.params[result.key][lanes, : result.size]

    return step


@instruction("bar", "barrier")
def _barrier(maker: Maker) -> Step:
    words = [word for word in maker.op[1:] if word not in ("cta", "aligned")]
    if words and words[0] == "cluster":
        return _cluster_barrier(words)
    if words == ["warp", "sync"]:
        members = maker.source(maker.operands[0], "u32")

        def together(block: Block) -> None:
            block.together(members(block))

        return together
    if words[0] not in ("sync", "arrive"):
        return _reducing(maker, words)
    waits = words[0] == "sync"
    number = maker.source(maker.operands[0], "u32")
    wanted = maker.source(maker.operands[1], "u32") if len(maker.operands) > 1 else None

    def step(block: Block) -> None:
        lane = int(block.indices[0])
        which = int(number(block)[lane])
        count = int(wanted(block)[lane]) if wanted else 0
        if count % 32:
            raise EmulationError(f"a barrier of {count} threads, which are no whole warps")
        block.barriers.setdefault(which, Barrier()).arrive(block, count, wait=waits)

    return step


def _reducing(maker: Maker, words: list[str]) -> Step:
    """bar.red: all threads of the block have to be here, which those that wait at a barrier of their own are."""
    kind = words[-1]
    put = maker.target(maker.operands[0], "pred" if kind == "pred" else "u32")
    given = maker.source(maker.operands[-1], "pred")
    if words[:2] not in (["red", "popc"], ["red", "and"], ["red", "or"]) or not isinstance(maker.operands[1], Number):
        raise EmulationError(f"no instruction {'.'.join(maker.op)}")

    def step(block: Block) -> None:
        if block.count < block.living:
            block.parked[block.pc - 1] = block.active | block.parked.get(block.pc - 1, False)
            block.go(np.zeros(block.size, bool))
            return
        values = given(block)[block.active]
        result = {"popc": values.sum(), "and": values.all(), "or": values.any()}[words[1]]
        block.completed += 1
        block.watch.barrier()
        put(block, np.full(block.size, result, bool if kind == "pred" else np.uint32))

    return step


def _cluster_barrier(words: list[str]) -> Step:
    def step(block: Block) -> None:
        block.launch.cluster_barrier(block).step(block, words[1])

    return step
