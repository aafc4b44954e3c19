"""Memory as kernels see it: this process's own, but only where something was allocated."""

from __future__ import annotations

import bisect
import ctypes
from typing import Any

import numpy as np

from emulator.errors import AccessError

Array = Any

# Where a wave sees local data share and scratch in the flat address space: outside of what a process can have.
SHARED_BASE = 1 << 48
PRIVATE_BASE = 2 << 48
WINDOW = 1 << 32


class Memory:
    """Ranges of this process's memory, by address; every access must lie within one."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ranges: list[tuple[int, Array, str]] = []  # end, bytes, what it is

    def add(self, start: int, size: int, what: str) -> None:
        """Makes memory known. Its owner keeps it alive until :meth:`remove`."""
        # Before the search: making objects may collect garbage, of which arrays on the device remove themselves.
        held = np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8) if size else np.empty(0, np.uint8)
        place = bisect.bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == start:
            self._ranges[place] = (start + size, held, what)
            return
        self._starts.insert(place, start)
        self._ranges.insert(place, (start + size, held, what))

    def remove(self, start: int) -> None:
        """Forgets memory."""
        place = bisect.bisect_left(self._starts, start)
        if place < len(self._starts) and self._starts[place] == start:
            del self._starts[place], self._ranges[place]

    def at(self, address: int, size: int, access: str = "an access") -> tuple[Array, int]:
        """The range's bytes and the offset in them."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0 or address + size > self._ranges[place][0]:
            raise AccessError(
                f"{access} of {size} bytes at {address:#x}, outside of all allocations{self._near(address)}"
            )
        return self._ranges[place][1], address - self._starts[place]

    def _near(self, address: int) -> str:
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return ""
        end, held, what = self._ranges[place]
        return f"; {address - end} bytes after the end of {what} of {len(held)} bytes"

    def read(self, address: int, size: int) -> bytes:
        """Bytes of one range."""
        held, offset = self.at(address, size, "a read")
        return bytes(held[offset : offset + size])

    def write(self, address: int, data: bytes) -> None:
        """The counterpart of :meth:`read`."""
        held, offset = self.at(address, len(data), "a write")
        held[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def gather(self, addresses: Array, size: int) -> Array:
        """``size`` bytes at each address: an array of bytes [address, byte]."""
        result = np.empty((len(addresses), size), np.uint8)
        for held, offsets, chosen in self._by_range(addresses, size, "a read"):
            result[chosen] = held[offsets[:, None] + np.arange(size)]
        return result

    def scatter(self, addresses: Array, data: Array) -> None:
        """Writes bytes [address, byte]; of several writes to one place the last stays."""
        size = data.shape[1]
        for held, offsets, chosen in self._by_range(addresses, size, "a write"):
            held[offsets[:, None] + np.arange(size)] = data[chosen]

    def _by_range(self, addresses: Array, size: int, access: str) -> list[tuple[Array, Array, Array]]:
        parts = []
        remaining = np.arange(len(addresses))
        while len(remaining):
            first = int(addresses[remaining[0]])
            held, offset = self.at(first, size, access)
            start = first - offset
            inside = (addresses[remaining] >= start) & (addresses[remaining] + np.uint64(size) <= start + len(held))
            chosen = remaining[inside]
            parts.append((held, (addresses[chosen] - np.uint64(start)).astype(np.int64), chosen))
            remaining = remaining[~inside]
        return parts
