"""Launches: blocks one after the other, those of a cluster together."""

from __future__ import annotations

import ctypes
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
from emulator.errors import EmulationError

from ptx.block import Block

if TYPE_CHECKING:
    from ptx.program import Kernel, Program

Size = tuple[int, ...]
_SLICE = 20_000  # instructions after which a block lets others go on, for one may wait for another in a loop
_LIMIT = 20_000_000  # instructions of a launch
_STATIC, _MOST = 48 * 1024, 227 * 1024  # bytes of shared memory


class Launch:
    """A kernel on a grid, its parameters in memory."""

    def __init__(
        self, program: Program, kernel: Kernel, grid: Size, block: Size, dynamic: int, cluster: Size, params: bytes
    ) -> None:
        self.program, self.kernel = program, kernel
        # What a kernel is built for is the cluster of every launch (PTX ISA, .reqnctapercluster).
        built = tuple([*kernel.function.limits.get(".reqnctapercluster", cluster), 1, 1][:3])
        if cluster not in ((1, 1, 1), built):
            raise EmulationError(f"{kernel.name}: clusters of {cluster}, but it is for {built}")
        self.grid, self.block, self.cluster, self.dynamic = grid, block, built, dynamic
        self.memory, self.print = program.memory, program.print
        self.local_size = program.stack
        size = max([kernel.shared_size, *(kernel.shared[key] for key in kernel.dynamic)]) + dynamic
        self.shared_size = -(-size // 4) * 4  # of whole words, which atomic operations on parts of one read
        self._params = ctypes.create_string_buffer(params, max(len(params), 1) + 64)
        self.params = -(-ctypes.addressof(self._params) // 64) * 64
        ctypes.memmove(self.params, params, len(params))
        self.clusters: dict[Size, dict[int, Block]] = {}
        self.cluster_barriers: dict[Size, ClusterBarrier] = {}
        self._check()

    def _check(self) -> None:
        name, limits = self.kernel.name, self.kernel.function.limits
        threads = int(np.prod(self.block))
        if not 0 < threads <= 1024 or (".maxntid" in limits and threads > int(np.prod(limits[".maxntid"]))):
            raise EmulationError(f"{name}: blocks of {threads} threads")
        if ".reqntid" in limits and tuple([*limits[".reqntid"], 1, 1][:3]) != self.block:
            raise EmulationError(f"{name}: blocks of {self.block}, but it is for {limits['.reqntid']}")
        if self.kernel.shared_size > _STATIC or self.shared_size > _MOST:
            raise EmulationError(f"{name}: {self.shared_size} bytes of shared memory")
        if any(count % part for count, part in zip(self.grid, self.cluster, strict=True)):
            raise EmulationError(f"{name}: a grid of {self.grid} in clusters of {self.cluster}")

    def address(self, key: str) -> int:
        """The address of a variable in its space."""
        if key in self.kernel.shared:
            return self.kernel.shared[key]
        if key in self.kernel.offsets:
            return self.params + self.kernel.offsets[key]
        return self.program.fixed(key)

    # Clusters

    def rank(self, index: Size) -> int:
        """A block's number in its cluster."""
        x, y, z = (place % size for place, size in zip(index, self.cluster, strict=True))
        return x + self.cluster[0] * (y + self.cluster[1] * z)

    def _cluster_of(self, block: Block) -> Size:
        return tuple(place // size for place, size in zip(block.index, self.cluster, strict=True))

    def in_cluster(self, block: Block, rank: int) -> Block:
        """Another block of the block's cluster."""
        found = self.clusters[self._cluster_of(block)]
        if rank not in found:
            raise EmulationError(f"no block {rank} in a cluster of {len(found)}")
        return found[rank]

    def cluster_barrier(self, block: Block) -> ClusterBarrier:
        """The barrier of the block's cluster."""
        place = self._cluster_of(block)
        return self.cluster_barriers.setdefault(place, ClusterBarrier(list(self.clusters[place].values())))

    # Execution

    def run(self) -> int:
        """Runs the grid and returns how many instructions that took."""
        self.memory.add(self.params, max(self.kernel.size, 1), "the kernel's parameters")
        try:
            return self._run()
        finally:
            self.memory.remove(self.params)

    def _run(self) -> int:
        total = idle = 0
        places = iter(
            np.ndindex(*(count // part for count, part in zip(self.grid[::-1], self.cluster[::-1], strict=True)))
        )
        waiting: deque[Block] = deque()
        while True:
            place = next(places, None)
            if place is not None:
                waiting.extend(self._blocks(place[::-1]))
            elif not waiting:
                return total
            for _ in range(len(waiting)):
                block = waiting.popleft()
                before = block.executed
                ended = block.run(_SLICE)
                total += block.executed - before
                idle = 0 if ended or block.executed - before > 64 else idle + 1
                if not ended:
                    waiting.append(block)
                elif all(other.living == 0 for other in self.clusters[self._cluster_of(block)].values()):
                    del self.clusters[self._cluster_of(block)]
                if total > _LIMIT:
                    raise EmulationError(f"{self.kernel.name}: more than {_LIMIT} instructions")
                if idle > 50 * len(waiting) + 50:
                    raise EmulationError(
                        f"{self.kernel.name}: threads wait for others, which do not come{block.waits()}"
                    )

    def _blocks(self, place: Size) -> list[Block]:
        """The blocks of a cluster."""
        first = [number * size for number, size in zip(place, self.cluster, strict=True)]
        made: dict[int, Block] = {}
        for inside in np.ndindex(*self.cluster[::-1]):
            x, y, z = (begin + offset for begin, offset in zip(first, inside[::-1], strict=True))
            block = Block(self, (x, y, z))
            made[self.rank(block.index)] = block
        self.clusters[place] = made
        return list(made.values())


class ClusterBarrier:
    """``barrier.cluster``: all threads of all blocks arrive before any goes on."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.arrived: dict[int, Any] = {id(block): np.zeros(block.size, bool) for block in blocks}
        self.phase = 0
        self.phases: dict[int, Any] = {id(block): np.zeros(block.size, np.int64) for block in blocks}

    def step(self, block: Block, what: str) -> None:
        """arrive or wait, of the active lanes."""
        key = id(block)
        if what == "arrive":
            if (self.arrived[key] & block.active).any():
                raise EmulationError("a thread arrives twice at the barrier of its cluster")
            self.arrived[key] = self.arrived[key] | block.active
            self.phases[key] = np.where(block.active, self.phase, self.phases[key])
        self._complete()
        if what == "wait" and (self.phases[key][block.active] == self.phase).any():
            block.parked[block.pc - 1] = block.active | block.parked.get(block.pc - 1, False)
            block.go(np.zeros(block.size, bool))

    def _complete(self) -> None:
        if all((self.arrived[id(block)] | ~block.alive).all() for block in self.blocks):
            self.phase += 1
            for key in self.arrived:
                self.arrived[key] = np.zeros_like(self.arrived[key])
