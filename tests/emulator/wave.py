"""A wave: its registers, masks and program counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError

if TYPE_CHECKING:
    from emulator.dispatch import Block
    from emulator.program import Program

Array = Any

VCC, EXEC, NULL_OR_M0, M0_OR_NULL = 106, 126, 124, 125
_GARBAGE = np.random.default_rng(42)


def garbage(shape: tuple[int, ...], dtype: Any) -> Array:
    """What registers and memory hold before they are written: nothing to rely on."""
    return _GARBAGE.integers(0, np.iinfo(dtype).max, shape, dtype)


class Lanes:
    """What descriptions ask for: lanes of vector operations, or the single lane of scalar ones."""

    def __init__(self, wave: Wave, count: int) -> None:
        self.wave = wave
        self.lane = np.arange(count, dtype=np.uint32)
        self.all_lanes = np.ones(count, bool)
        self.is_wave32 = np.array([wave.lanes == 32])
        self.mode_ieee = np.array([wave.ieee])
        self.mode_dx10_clamp = np.array([True])
        self.small = wave.program.small_floats

    def scc_value(self) -> Array:
        return np.array([self.wave.scc], bool)

    def exec_value(self) -> Array:
        return self.wave.s[EXEC : EXEC + 2].view(np.uint64).copy()

    def m0_value(self) -> Array:
        return self.wave.s[self.wave.m0 : self.wave.m0 + 1].copy()


class Wave:
    """Registers are 32-bit words: ``s`` [register], ``v`` [register, lane], of which 256 and up are accumulators."""

    def __init__(self, program: Program, block: Block, lanes: int, ieee: bool) -> None:
        self.program, self.block, self.lanes, self.ieee = program, block, lanes, ieee
        self.s = garbage((128,), np.uint32)
        self.v = garbage((512, lanes), np.uint32)
        self.m0 = NULL_OR_M0 if program.family == "cdna" else M0_OR_NULL
        self.null = -1 if program.family == "cdna" else NULL_OR_M0
        if self.null >= 0:
            self.s[self.null] = 0
        self.scc = 0
        self.pc = 0
        self.mode = 0
        self.indexing = 0  # see gpr_index.py
        self.signals = self.waits = 0  # at the block's barrier
        self.ended = False
        self.scratch: Array = None  # bytes [lane, offset]
        self.vector, self.scalar = Lanes(self, lanes), Lanes(self, 1)
        self.executed = 0
        self._active: Array = None

    # Masks

    @property
    def active(self) -> Array:
        """The lanes that EXEC has."""
        if self._active is None:
            self._active = self.mask_at(EXEC)
        return self._active

    def mask_at(self, register: int) -> Array:
        """A mask in scalar registers, an element per lane."""
        words = self.s[register : register + self.lanes // 32]
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def set_mask(self, register: int, mask: Array) -> None:
        """The counterpart of :meth:`mask_at`."""
        mask = np.broadcast_to(mask, self.lanes)
        if register != self.null:
            self.s[register : register + self.lanes // 32] = np.packbits(mask, bitorder="little").view(np.uint32)
        if register >= EXEC:
            self._active = None

    def set_exec(self, value: int) -> None:
        """EXEC from a number."""
        self.s[EXEC : EXEC + 2] = (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
        self._active = None

    # Scalar registers

    def get64(self, register: int) -> int:
        """Two scalar registers."""
        return int(self.s[register]) | int(self.s[register + 1]) << 32

    def set_scalar(self, register: int, words: Array) -> None:
        """Scalar registers from the first on; the null register takes nothing."""
        if register == self.null:
            return
        if register + len(words) > 128:
            raise EmulationError(f"a write to the scalar operand {register}")
        self.s[register : register + len(words)] = words
        if register + len(words) > EXEC:
            self._active = None

    def set_vector(self, register: int, value: Array) -> None:
        """A vector register, in the active lanes."""
        np.copyto(self.v[register], value, where=self.active)

    def run(self, limit: int) -> None:
        """Executes until the end, a barrier that is not complete, or ``limit`` instructions."""
        program = self.program
        steps = program.steps
        with np.errstate(all="ignore"):
            for _ in range(limit):
                step = steps.get(self.pc) or program.decode(self.pc)
                self.executed += 1
                here = self.pc
                self.pc = here + step.size
                try:
                    step.run(self)
                except EmulationError as error:
                    raise type(error)(f"{error}\n  {program.describe(here)}") from error
                except Exception as error:
                    raise EmulationError(f"{type(error).__name__}: {error}\n  {program.describe(here)}") from error
                if step.stops and (self.ended or not self.block.barrier_complete(self)):
                    return
