"""Accesses of two warps to one byte of shared memory, with no barrier between them: on hardware any may be first.

Here lanes go on together, so that results may be right all the same. Blocks whose warps meet otherwise than at a
barrier of all are not watched; neither are atomic and volatile accesses, and stores of what is there already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from emulator.errors import EmulationError

Array = Any

_NOBODY, _SEVERAL = -1, -2


class Watch:
    """For each byte the warp that wrote it, and that which read it, since the last barrier."""

    def __init__(self, size: int) -> None:
        self.on = True
        self.epoch = 0
        self.writer, self.reader = (np.full(size, _NOBODY, np.int16) for _ in range(2))
        self.written, self.seen = (np.full(size, -1, np.int64) for _ in range(2))  # the epochs of these

    def barrier(self) -> None:
        """All threads have met."""
        self.epoch += 1

    def read(self, warps: Array, places: Array) -> None:
        """Bytes [access, byte] that warps read."""
        mine = np.broadcast_to(warps[:, None], places.shape)
        self._check((self.written[places] == self.epoch) & (self.writer[places] != mine), places, "reads")
        before = np.where(self.seen[places] == self.epoch, self.reader[places], _NOBODY)
        self.reader[places] = np.where((before == _NOBODY) | (before == mine), mine, _SEVERAL)
        self.reader[places] = np.where(self.reader[places] == mine, mine, _SEVERAL)
        self.seen[places] = self.epoch

    def write(self, warps: Array, places: Array, data: Array, held: Array) -> None:
        """Bytes that warps write, and what is there before."""
        mine = np.broadcast_to(warps[:, None], places.shape)
        changes = data != held
        wrote = (self.written[places] == self.epoch) & (self.writer[places] != mine)
        read = (self.seen[places] == self.epoch) & (self.reader[places] != mine)
        self._check(wrote & changes, places, "writes")
        self._check(read & changes, places, "writes", "read")
        self.writer[places] = mine
        self.written[places] = self.epoch
        others = self.writer[places] != mine  # which write the same byte in this very step
        if others.any():
            self.writer[places[others]] = _SEVERAL
            self._check_alike(places, data)

    def _check_alike(self, places: Array, data: Array) -> None:
        """All that is written to a byte in one step is the same."""
        order = np.argsort(places, axis=None, kind="stable")
        where, what, whose = (
            each.reshape(-1)[order] for each in (places, data, np.broadcast_to(self.writer[places], places.shape))
        )
        differs = (where[1:] == where[:-1]) & (what[1:] != what[:-1]) & (whose[1:] == _SEVERAL)
        self._check(differs, where[1:], "writes", "wrote otherwise")

    def _check(self, wrong: Array, places: Array, what: str, before: str = "wrote") -> None:
        if wrong.any():
            place = int(places[wrong][0])
            raise EmulationError(
                f"a warp {what} shared memory at {place:#x} that another warp {before} since the last barrier"
            )
