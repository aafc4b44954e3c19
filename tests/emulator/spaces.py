"""Address spaces of a wave: memory of the process, local data share, scratch, and the flat space over all of them.

A space reads ``size`` bytes at an address per lane, as bytes [lane, byte], and writes them the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.memory import PRIVATE_BASE, SHARED_BASE, WINDOW

if TYPE_CHECKING:
    from emulator.wave import Wave

Array = Any


def check_aligned(addresses: Array, size: int, what: str) -> None:
    """For atomic operations; plain accesses may have any address, since HSA sets the hardware's mode for that."""
    wrong = addresses[addresses % addresses.dtype.type(size) != 0]
    if len(wrong):
        raise EmulationError(f"{what} of {size} bytes at {int(wrong[0]):#x}, which is not a multiple of {size}")


class Global:
    """The process's memory."""

    def read(self, wave: Wave, lanes: Array, addresses: Array, size: int) -> Array:
        return wave.program.code.memory.gather(addresses, size)

    def write(self, wave: Wave, lanes: Array, addresses: Array, data: Array) -> None:
        wave.program.code.memory.scatter(addresses, data)


class Local:
    """The block's local data share; addresses are offsets."""

    def _offsets(self, wave: Wave, addresses: Array, size: int, what: str) -> Array:
        offsets = (addresses & addresses.dtype.type(0xFFFFFFFF)).astype(np.int64)
        limit = len(wave.block.lds)
        if len(offsets) and int(offsets.max()) + size > limit:
            raise EmulationError(
                f"{what} of {size} bytes at {int(offsets.max()):#x} of {limit} bytes of local data share"
            )
        return offsets[:, None] + np.arange(size)

    def read(self, wave: Wave, lanes: Array, addresses: Array, size: int) -> Array:
        places = self._offsets(wave, addresses, size, "a read")
        return wave.block.lds[places]

    def write(self, wave: Wave, lanes: Array, addresses: Array, data: Array) -> None:
        places = self._offsets(wave, addresses, data.shape[1], "a write")
        wave.block.lds[places] = data


class Private:
    """Each lane's scratch; addresses are offsets."""

    def _offsets(self, wave: Wave, addresses: Array, size: int, what: str) -> Array:
        offsets = (addresses & addresses.dtype.type(0xFFFFFFFF)).astype(np.int64)
        limit = wave.scratch.shape[1]
        if len(offsets) and int(offsets.max()) + size > limit:
            raise EmulationError(f"{what} of {size} bytes at {int(offsets.max()):#x} of {limit} bytes of scratch")
        return offsets[:, None] + np.arange(size)

    def read(self, wave: Wave, lanes: Array, addresses: Array, size: int) -> Array:
        places = self._offsets(wave, addresses, size, "a read")
        return wave.scratch[lanes[:, None], places]

    def write(self, wave: Wave, lanes: Array, addresses: Array, data: Array) -> None:
        places = self._offsets(wave, addresses, data.shape[1], "a write")
        wave.scratch[lanes[:, None], places] = data


class Flat:
    """Whichever of the three an address is in."""

    def _parts(self, addresses: Array) -> list[tuple[Any, Array]]:
        window = np.uint64(WINDOW - 1)
        base = addresses & ~window
        shared, private = base == SHARED_BASE, base == PRIVATE_BASE
        parts = ((LOCAL, shared), (PRIVATE, private), (GLOBAL, ~(shared | private)))
        return [(space, np.flatnonzero(chosen)) for space, chosen in parts if chosen.any()]

    def read(self, wave: Wave, lanes: Array, addresses: Array, size: int) -> Array:
        result = np.empty((len(addresses), size), np.uint8)
        for space, chosen in self._parts(addresses):
            result[chosen] = space.read(wave, lanes[chosen], addresses[chosen], size)
        return result

    def write(self, wave: Wave, lanes: Array, addresses: Array, data: Array) -> None:
        for space, chosen in self._parts(addresses):
            space.write(wave, lanes[chosen], addresses[chosen], data[chosen])


GLOBAL, LOCAL, PRIVATE, FLAT = Global(), Local(), Private(), Flat()
