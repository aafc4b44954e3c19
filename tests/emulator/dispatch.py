"""Launches: blocks of waves with the registers that a kernel descriptor asks for, and the kernel's arguments."""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from emulator import buffers
from emulator.code_object import CodeObject, Kernel
from emulator.denormals import check_mode
from emulator.errors import EmulationError
from emulator.memory import Memory
from emulator.program import Program
from emulator.wave import EXEC, Wave, garbage

Size = Sequence[int]
_SLICE = 20_000  # instructions after which a wave lets others go on, for one may wait for another in a loop
_LIMIT = 40_000_000  # instructions of a launch
_TTMP = 108


class Block:
    """The waves of a work group and their local data share."""

    def __init__(self, launch: Launch, index: Size) -> None:
        self.launch, self.index = launch, index
        self.lds = garbage((launch.lds_size,), np.uint8) if launch.lds_size else np.empty(0, np.uint8)
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        self.waves = [launch.wave(self, first, threads) for first in range(0, threads, launch.lanes)]

    def barrier_complete(self, wave: Wave) -> bool:
        """May the wave go on?"""
        return all(other.ended or other.signals >= wave.waits for other in self.waves)

    def run(self) -> bool:
        """Runs each wave for a while; True when all have ended."""
        before = [wave.executed for wave in self.waves]
        for wave in self.waves:
            if not wave.ended and self.barrier_complete(wave):
                wave.run(_SLICE)
        alive = [wave for wave in self.waves if not wave.ended]
        if alive and before == [wave.executed for wave in self.waves]:
            raise EmulationError(f"{self.launch.kernel.name}: waves wait at a barrier that others do not reach")
        return not alive


class Launch:
    """A kernel on a grid. ``params`` are the addresses of the arguments, as hipModuleLaunchKernel takes them."""

    def __init__(
        self, program: Program, kernel: Kernel, grid: Size, block: Size, dynamic: int, params: Iterable[int]
    ) -> None:
        self.program, self.kernel = program, kernel
        self.grid, self.block = grid, block
        self.code: CodeObject = program.code
        self.memory: Memory = program.code.memory
        properties = kernel.word(56, "<H")
        self.lanes = 32 if properties & 1 << 10 else 64
        self.properties, self.rsrc1, self.rsrc2 = properties, kernel.word(48), kernel.word(52)
        self.lds_size = -(-(kernel.word(0) + dynamic) // 4) * 4  # of whole words, as it is addressed
        self.scratch_size = kernel.word(4)
        self.dynamic = dynamic
        self._check()
        self._kernarg = ctypes.create_string_buffer(max(kernel.word(8), 8) + 64)
        self.kernarg = -(-ctypes.addressof(self._kernarg) // 64) * 64
        self._packet = ctypes.create_string_buffer(self._dispatch_packet(), 64)
        self._fill(params)

    def _check(self) -> None:
        limit = self.kernel.metadata[".max_flat_workgroup_size"]
        threads = self.block[0] * self.block[1] * self.block[2]
        if not 0 < threads <= limit:
            raise EmulationError(f"{self.kernel.name}: blocks of {threads} threads, at most {limit} are allowed")
        if self.lds_size > 160 * 1024 or (self.lds_size > 64 * 1024 and self.program.chip != "gfx950"):
            raise EmulationError(f"{self.kernel.name}: {self.lds_size} bytes of local data share")
        if self.kernel.metadata.get(".uses_dynamic_stack"):
            self.scratch_size += 16384
        check_mode(self.rsrc1 >> 12 & 0xFF)
        if not (self.rsrc1 >> 21 & 1 or self._is12):
            raise EmulationError(f"{self.kernel.name}: a mode in which clamp leaves NaN")

    def _dispatch_packet(self) -> bytes:
        return struct.pack(
            "<HHHHHHIIIIIQQQQ",
            2, 3, *self.block, 0, *(size * count for size, count in zip(self.block, self.grid, strict=True)),
            self.scratch_size, self.lds_size, 0, self.kernarg, 0, 0,
        )  # fmt: skip

    def _fill(self, params: Iterable[int]) -> None:
        hidden = {
            **{f"hidden_block_count_{axis}": count for axis, count in zip("xyz", self.grid, strict=True)},
            **{f"hidden_group_size_{axis}": size for axis, size in zip("xyz", self.block, strict=True)},
            "hidden_grid_dims": 3 if self.grid[2] * self.block[2] > 1 else 2 if self.grid[1] * self.block[1] > 1 else 1,
            "hidden_dynamic_lds_size": self.dynamic,
            "hidden_hostcall_buffer": self.program.hostcalls.address,
            "hidden_shared_base": 1 << 16, "hidden_private_base": 2 << 16,
        }  # fmt: skip
        explicit = iter(params)
        for argument in self.kernel.metadata.get(".args", ()):
            kind, size, offset = argument[".value_kind"], argument[".size"], argument[".offset"]
            if kind.startswith("hidden_"):
                value = hidden.get(kind, 0)
                ctypes.memmove(self.kernarg + offset, value.to_bytes(8, "little"), size)
            else:
                ctypes.memmove(self.kernarg + offset, next(explicit), size)

    def run(self) -> int:
        """Runs the grid and returns how many instructions that took."""
        # Of whole 16 bytes: the last three numbers, where they begin such, are read as four.
        self.memory.add(self.kernarg, max(-(-self.kernel.word(8) // 16) * 16, 16), "the kernel's arguments")
        self.memory.add(ctypes.addressof(self._packet), 64, "the dispatch packet")
        try:
            return self._run()
        finally:
            self.memory.remove(self.kernarg)
            self.memory.remove(ctypes.addressof(self._packet))

    def _run(self) -> int:
        total = 0
        indices = iter(np.ndindex(self.grid[2], self.grid[1], self.grid[0]))
        waiting: deque[Block] = deque()
        while True:
            index = next(indices, None)
            if index is not None:
                waiting.append(Block(self, index[::-1]))
            elif not waiting:
                return total
            block = waiting.popleft()
            while not (ended := block.run()) and all(wave.ended or wave.waits for wave in block.waves):
                if max(wave.executed for wave in block.waves) > _LIMIT:
                    raise EmulationError(f"{self.kernel.name}: more than {_LIMIT} instructions")
                if any(wave.executed % _SLICE == 0 for wave in block.waves):
                    break
            if ended:
                total += sum(wave.executed for wave in block.waves)
            else:
                waiting.append(block)

    # Registers at the start

    def wave(self, block: Block, first: int, threads: int) -> Wave:
        """A wave of a block whose first thread is ``first``."""
        wave = Wave(self.program, block, self.lanes, bool(self.rsrc1 >> 23 & 1) and not self._is12)
        count = min(self.lanes, threads - first)
        wave.set_exec((1 << count) - 1)
        wave.pc = self.kernel.entry
        wave.mode = self.rsrc1 >> 12 & 0xFF
        wave.scratch = garbage((self.lanes, self.scratch_size), np.uint8)
        self._scalars(wave, block.index)
        thread = np.arange(first, first + self.lanes)
        x, rest = thread % self.block[0], thread // self.block[0]
        y, z = rest % self.block[1], rest // self.block[1]
        asked = self.rsrc2 >> 11 & 3  # what is not asked for is 0
        wave.v[0] = x | (y << 10 if asked > 0 else 0) | (z << 20 if asked > 1 else 0)
        if self._is12:
            wave.s[_TTMP + 8] = (first // self.lanes) << 25
        return wave

    @property
    def _is12(self) -> bool:
        return self.program.family == "rdna4"

    def _scalars(self, wave: Wave, index: Size) -> None:
        at = 0

        def put(*words: int) -> None:
            nonlocal at
            for word in words:
                wave.s[at] = word & 0xFFFFFFFF
                at += 1

        packet = ctypes.addressof(self._packet)
        base = self.program.private_base
        if self.properties & 1:
            put(*buffers.SCRATCH)
        for bit, value in ((1, packet), (2, 0), (3, self.kernarg), (4, 1), (5, base)):
            if self.properties & 1 << bit:
                put(value, value >> 32)
        if self.properties & 1 << 6:
            put(self.scratch_size)
        preload = self.kernel.word(58, "<H")
        for index_ in range(preload & 0x7F):
            put(*struct.unpack("<I", ctypes.string_at(self.kernarg + 4 * ((preload >> 7) + index_), 4)))
        if preload:
            wave.pc += 256
        users = self.rsrc2 >> 1 & 0x1F
        if at > users:
            raise EmulationError(f"{at} user registers where the descriptor has {users}")
        at = users
        if self._is12:
            wave.s[_TTMP + 9], wave.s[_TTMP + 7] = index[0], index[1] | index[2] << 16
            return
        for axis in range(3):
            if self.rsrc2 & 1 << (7 + axis):
                put(index[axis])
        if self.rsrc2 & 1 << 10:
            put(0)
        if self.rsrc2 & 1 and self.program.chip in ("gfx90a", "gfx908"):
            put(0)


__all__ = ["EXEC", "Block", "Launch"]
