"""A block of threads: registers, who is where, and who waits for whom.

All threads of a block are lanes of arrays. Those at one instruction go on together; of several groups the one that is
furthest behind goes first, so that groups meet again. Barriers and what a warp does together wait for the lanes named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from emulator.errors import EmulationError
from emulator.wave import garbage

from ptx.races import Watch

if TYPE_CHECKING:
    from ptx.program import Launch

Array = Any

WARP = 32
STORED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
WIDTHS = {"b16": 2, "u16": 2, "s16": 2, "f16": 2, "b8": 1, "u8": 1, "s8": 1} | {
    kind: int(kind[1:]) // 8 for kind in ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
}
_PATIENCE = 5_000  # instructions after which a group lets others go on, for one may wait for another in a loop


class Registers(dict[str, Array]):
    """Arrays by key; a register that was not written holds anything. Arrays are never changed in place."""

    def __init__(self, kinds: dict[str, str], lanes: int) -> None:
        super().__init__()
        self.kinds, self.lanes = kinds, lanes

    def __missing__(self, key: str) -> Array:
        if self.kinds[key] == "pred":
            self[key] = garbage((self.lanes,), np.uint8) > 127
        else:
            self[key] = garbage((self.lanes,), STORED[WIDTHS[self.kinds[key]]])
        return self[key]


class LaneParams(dict[str, Array]):
    """Parameters and results of functions: bytes [lane, offset] by key."""

    def __init__(self, sizes: dict[str, int], lanes: int) -> None:
        super().__init__()
        self.sizes, self.lanes = sizes, lanes

    def __missing__(self, key: str) -> Array:
        self[key] = garbage((self.lanes, self.sizes[key]), np.uint8)
        return self[key]


class Block:
    """The threads of one block. ``active`` are the lanes that execute now, at ``pc``."""

    def __init__(self, launch: Launch, index: tuple[int, int, int]) -> None:
        self.launch, self.index = launch, index
        self.threads = launch.block[0] * launch.block[1] * launch.block[2]
        self.size = -(-self.threads // WARP) * WARP
        self.lane = np.arange(self.size, dtype=np.uint32)
        self.alive = self.lane < self.threads
        self.living = self.threads
        self.registers = Registers(launch.program.module.registers, self.size)
        self.params = LaneParams(launch.program.lane_params, self.size)
        self.carry = np.zeros(self.size, bool)
        self.shared = garbage((launch.shared_size,), np.uint8)
        self.watch = Watch(launch.shared_size)
        self.local = garbage((self.size, launch.local_size), np.uint8)
        self.allocated = np.full(self.size, launch.program.local_size, np.uint64)  # where alloca goes on
        self.returns = np.zeros((8, self.size), np.int32)
        self.depth = np.zeros(self.size, np.int8)
        self.running: dict[str, Array] = {}  # by function: the lanes that are in it
        self.callee = np.zeros(self.size, np.int32)  # the function that a lane called last
        self.others: dict[int, Array] = {}  # the other groups: lanes by pc
        self.parked: dict[int, Array] = {}  # those that wait for others of their warp
        self.barriers: dict[int, Barrier] = {}
        self.memory_barriers: dict[int, Any] = {}  # by their place in shared memory
        self.coming: list[tuple[Any, Callable[[], None]]] = []  # copies that a barrier in memory waits for
        self.failed_waits = 0
        self.copies: list[Any] = []  # of cp.async
        self.copy_groups = np.zeros(self.size, np.int64)  # how many each lane has made
        self.patience = _PATIENCE
        self.completed = 0  # what warps did together
        self.stuck: Any = None
        self.executed = 0
        self.pc = launch.kernel.entry
        self.go(self.alive)

    # Lanes

    def go(self, lanes: Array) -> None:
        """Lanes that execute from here on."""
        self.active = lanes
        self.count = int(np.count_nonzero(lanes))
        self.full = self.count == self.living

    @property
    def indices(self) -> Array:
        """The numbers of the active lanes."""
        return np.flatnonzero(self.active)

    def put(self, key: str, value: Array) -> None:
        """A register's new value in the active lanes."""
        self.registers[key] = value if self.full else np.where(self.active, value, self.registers[key])

    def leave(self, lanes: Array) -> None:
        """These lanes of the group go elsewhere; the rest go on."""
        self.go(self.active & ~lanes)

    def send(self, lanes: Array, pc: int) -> None:
        """Lanes that go on at another place."""
        if lanes.any():
            self.others[pc] = self.others[pc] | lanes if pc in self.others else lanes

    def end(self) -> None:
        """The active lanes have come to their end."""
        self.alive = self.alive & ~self.active
        self.living -= self.count
        self.go(np.zeros(self.size, bool))
        for barrier in self.barriers.values():
            barrier.release(self)

    def together(self, members: Array) -> bool:
        """Are all lanes here that ``members`` (a mask for each lane) asks for? Those of incomplete warps wait.

        Returns False where no lane is left to go on.
        """
        asked = (members >> (self.lane % WARP)) & 1
        if not asked[self.active].all():
            raise EmulationError("a lane that its own mask of members does not have")
        wanted = _masks(members, self.active) & _warps(self.alive)
        incomplete = (wanted & ~_warps(self.active)) != 0
        if incomplete.any():
            waiting = np.repeat(incomplete, WARP) & self.active
            self.parked[self.pc - 1] = waiting | self.parked.get(self.pc - 1, False)
            self.leave(waiting)
        self.completed += self.count > 0
        return self.count > 0

    # Asynchronous copies

    def begin_copy(self, barrier: Any, finish: Callable[[], None]) -> None:
        """A copy whose bytes come when its barrier is waited for."""
        self.coming.append((barrier, finish))

    def finish_copies(self, barrier: Any) -> None:
        """The bytes that a barrier waits for have come."""
        mine = [finish for other, finish in self.coming if other is barrier]
        self.coming = [pair for pair in self.coming if pair[0] is not barrier]
        for finish in mine:
            finish()

    # Execution

    def run(self, limit: int) -> bool:
        """Executes at most ``limit`` instructions; True when all threads have ended."""
        steps = self.launch.program.steps
        self.stuck = None
        with np.errstate(all="ignore"):
            for _ in range(limit):
                if self.others or not self.count:
                    impatient = self.patience <= 0
                    self.patience = _PATIENCE if impatient else self.patience - 1
                    if not self.choose(impatient):
                        return self.living == 0
                here = self.pc
                if self.parked and here in self.parked:
                    self.go(self.active | self.parked.pop(here))
                self.pc = here + 1
                self.executed += 1
                try:
                    steps[here](self)
                except EmulationError as error:
                    raise type(error)(f"{error}\n  {self.launch.program.describe(here)}") from error
                except Exception as error:
                    where = self.launch.program.describe(here)
                    raise EmulationError(f"{type(error).__name__}: {error}\n  {where}") from error
        return False

    def choose(self, other: bool) -> bool:
        """The next group: that which is furthest behind, or the one furthest ahead. False where all wait."""
        if self.count:
            self.send(self.active, self.pc)
        if not self.others and not self.retry():
            return False
        self.pc = (max if other else min)(self.others)
        self.go(self.others.pop(self.pc))
        return True

    def retry(self) -> bool:
        """Lanes that waited for others of their warp try again: those may have ended since."""
        state = (self.living, self.completed, sorted(self.parked))
        if not self.parked or state == self.stuck:
            return False
        self.stuck = state
        self.others, self.parked = self.parked, {}
        return True

    def waits(self) -> str:
        """Where lanes wait, for an error."""
        places = [self.launch.program.describe(pc) for pc in self.parked]
        places += [self.launch.program.describe(pc - 1) for barrier in self.barriers.values() for pc in barrier.waiting]
        return "".join(f"\n  {place}" for place in places)


class Barrier:
    """``bar.sync``: lanes that have arrived, by where they go on."""

    def __init__(self) -> None:
        self.waiting: dict[int, Array] = {}
        self.arrived: Array | None = None
        self.wanted = 0

    def arrive(self, block: Block, wanted: int, *, wait: bool = True) -> None:
        """``wanted`` threads complete it; 0: all of the block."""
        if self.arrived is None:
            self.arrived = np.zeros(block.size, bool)
        if (self.arrived & block.active).any():
            raise EmulationError("a thread arrives twice at one barrier")
        self.arrived = self.arrived | block.active
        self.wanted = wanted
        block.watch.on &= wait
        if wait:
            self.waiting[block.pc] = block.active | self.waiting.get(block.pc, False)
            block.go(np.zeros(block.size, bool))
        self.release(block)

    def release(self, block: Block) -> None:
        """Lets the lanes go on when enough have arrived."""
        if self.arrived is None:
            return
        missing = block.alive & ~self.arrived
        complete = np.count_nonzero(self.arrived) >= self.wanted if self.wanted else not missing.any()
        if complete:
            block.watch.on &= not self.wanted or self.wanted >= block.living
            block.watch.barrier()
            waiting, self.waiting, self.arrived = self.waiting, {}, None
            for pc, lanes in waiting.items():
                block.send(lanes, pc)


def _warps(lanes: Array) -> Array:
    """A mask of 32 bits for each warp."""
    return np.packbits(lanes, bitorder="little").view(np.uint32)


def _masks(members: Array, active: Array) -> Array:
    """For each warp the lanes that its active lanes ask for."""
    return np.bitwise_or.reduce(np.where(active, members, np.uint32(0)).reshape(-1, WARP), axis=1)
