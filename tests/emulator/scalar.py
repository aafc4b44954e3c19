"""Scalar arithmetic: the manual's meaning on one lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator import counting
from emulator.denormals import KEPT_F32, by_mode, flushed, flushing, is_f32
from emulator.operands import format_of, raw, reader
from emulator.program import plain_name
from emulator.vector import described, fields

if TYPE_CHECKING:
    from emulator.program import Program
    from emulator.wave import Wave


def step(program: Program, inst: Any) -> Callable[[Wave], None]:
    """A scalar instruction as a function of a wave."""
    kind, name, op = type(inst).__name__, plain_name(inst), inst.op
    operands = program.tables.operands.get(op, {})
    if kind.startswith("SOP1"):
        form, bits = format_of(operands, "ssrc0")
        read = reader(program.family, raw(inst, "ssrc0"), form, bits, raw(inst, "literal"))
        if (counted := counting.scalar_step(name, raw(inst, "sdst"), read)) is not None:
            return counted
    means = described(program, op)
    sources: list[Callable[[Wave], Any]] = []
    for index in range(2):
        field = f"ssrc{index}"
        if hasattr(type(inst), field) and field in operands:
            form, bits = format_of(operands, field)
            read = reader(program.family, raw(inst, field), form, bits, raw(inst, "literal"))
            sources.append(by_mode(read, flushing(read)) if is_f32(form) else read)
        else:
            sources.append(lambda wave: None)
    form, bits = format_of(operands, "sdst")
    destination = raw(inst, "sdst")
    if kind.startswith("SOPK"):
        immediate = np.array([raw(inst, "simm16")], np.uint32)
        compared = name.startswith("S_CMPK")
        register = reader(program.family, destination, "B32", 32, 0)
        sources = [register if compared else lambda wave: immediate, lambda wave: immediate]
    details = fields(inst)
    first, second = sources
    old = reader(program.family, destination, form, bits, 0)
    needs_old = "D0" in means.reads
    is_float = is_f32(form)
    if is_float:
        old = by_mode(old, flushing(old))
    outputs, run_meaning = means.outputs, means.run

    def run(wave: Wave) -> None:
        made = run_meaning(
            wave.scalar, details, first(wave), second(wave), None, old(wave).copy() if needs_old else None, None
        )
        for output, value in zip(outputs, made, strict=True):
            value = np.atleast_1d(value)
            if output == "D0":
                value = flushed(value) if is_float and not wave.mode & KEPT_F32 else value
                wave.set_scalar(destination, value.view(np.uint32))
            elif output == "SCC":
                wave.scc = int(value[0])
            elif output == "EXEC":
                number = int(value[0])
                wave.set_exec(number if wave.lanes == 64 else number & 0xFFFFFFFF | wave.get64(126) & ~0xFFFFFFFF)

    return run
