"""Operands of an instruction as functions of the block: where values come from, and where results go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import STORED, WIDTHS, Block
from ptx.kinds import SIZES, UNSIGNED, bits_of, is_signed, reader, writer
from ptx.specials import special
from ptx.syntax import Function, Instruction, Number, Operand, Pair, Register, Special, Symbol, Vector

if TYPE_CHECKING:
    from ptx.program import Program

Array = Any
Step = Callable[[Block], None]
Source = Callable[[Block], Array]
Target = Callable[[Block, Array], None]


class Maker:
    """Makes the step of one instruction."""

    def __init__(self, program: Program, function: Function, instruction: Instruction) -> None:
        self.program, self.function = program, function
        self.op, self.operands = instruction.op, instruction.operands

    def source(self, operand: Operand, kind: str) -> Source:
        """An operand's numbers, an element per lane; of packed types two."""
        bits, read = self.bits(operand, kind), reader(kind)
        return lambda block: read(bits(block))

    def bits(self, operand: Operand, kind: str) -> Source:
        """An operand's bits, of the type's size."""
        if kind == "pred":
            return self.predicate(operand)
        size = SIZES[kind]
        dtype = UNSIGNED[size]
        if isinstance(operand, Register):
            key = operand.key
            if self.program.module.registers[key] == "pred":
                raise EmulationError("a predicate where a number is expected")
            if WIDTHS[self.program.module.registers[key]] == size:
                return lambda block: block.registers[key]
            return lambda block: block.registers[key].astype(dtype)
        if isinstance(operand, Number):
            value = bits_of(operand.text, kind)
            return lambda block: np.full(block.size, value, dtype)
        if isinstance(operand, Special):
            found = special(operand.name)
            return lambda block: np.broadcast_to(found(block), block.size).astype(dtype)
        if isinstance(operand, Symbol):
            key, offset = operand.key, operand.offset
            return lambda block: np.full(block.size, block.launch.address(key) + offset, np.uint64).astype(dtype)
        if isinstance(operand, Vector):
            return self.joined(operand, size)
        raise EmulationError(f"no operand: {operand}")

    def joined(self, operand: Vector, size: int) -> Source:
        """``{%r1, %r2}`` as one wider number."""
        part = size // len(operand.parts)
        parts = [self.bits(each, f"b{8 * part}") for each in operand.parts]
        dtype = UNSIGNED[size]
        return lambda block: np.stack([each(block) for each in parts], axis=1).reshape(-1).view(dtype)

    def predicate(self, operand: Operand) -> Source:
        if isinstance(operand, Number):
            value = operand.text not in ("0", "-0")
            return lambda block: np.full(block.size, value)
        if not isinstance(operand, Register):
            raise EmulationError(f"no predicate: {operand}")
        key = operand.key
        if operand.negated:
            return lambda block: ~block.registers[key]
        return lambda block: block.registers[key]

    def target(self, operand: Operand, kind: str) -> Target:
        """Where numbers go; ``_`` takes anything."""
        write = writer(kind)
        put = self.put_bits(operand, kind)
        return lambda block, value: put(block, write(value))

    def put_bits(self, operand: Operand, kind: str) -> Target:
        """Where bits go; a wider register is extended, with the sign of signed types."""
        if isinstance(operand, Symbol) and operand.key == "_":
            return lambda block, bits: None
        if isinstance(operand, Vector):
            return self.split(operand, SIZES[kind])
        if not isinstance(operand, Register):
            raise EmulationError(f"no result: {operand}")
        key = operand.key
        declared = self.program.module.registers[key]
        if declared == "pred" or kind == "pred" or WIDTHS[declared] == SIZES[kind]:
            return lambda block, bits: block.put(key, bits)
        stored = STORED[WIDTHS[declared]]
        if WIDTHS[declared] < SIZES[kind]:
            raise EmulationError(f"a result of .{kind} in a register of .{declared}")
        if is_signed(kind):
            signed = np.dtype(f"i{WIDTHS[declared]}")
            narrow = np.dtype(f"i{SIZES[kind]}")
            return lambda block, bits: block.put(key, bits.view(narrow).astype(signed).view(stored))
        return lambda block, bits: block.put(key, bits.astype(stored))

    def split(self, operand: Vector, size: int) -> Target:
        """The counterpart of :meth:`joined`."""
        part = size // len(operand.parts)
        puts = [self.put_bits(each, f"b{8 * part}") for each in operand.parts]
        dtype = UNSIGNED[part]

        def put(block: Block, bits: Array) -> None:
            columns = np.ascontiguousarray(bits).view(dtype).reshape(len(bits), -1)
            for index, each in enumerate(puts):
                each(block, columns[:, index].copy())

        return put

    def pair(self, operand: Operand) -> tuple[Operand, Operand]:
        """Two results, of which the second may not be asked for."""
        if isinstance(operand, Pair):
            return operand.parts[0], operand.parts[1]
        return operand, Symbol("_")
