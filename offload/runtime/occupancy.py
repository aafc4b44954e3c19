"""How many blocks of a kernel a device runs at a time."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from offload.runtime import abi
from offload.runtime.device import device_info
from offload.runtime.native import Native


@dataclass(frozen=True)
class Occupancy:
    """What a device does with blocks of ``threads`` threads: each of its ``multiprocessors`` runs ``blocks`` of them at
    a time, none where such a block cannot run. On the CPU a multiprocessor is a thread of the pool."""

    threads: int
    blocks: int
    multiprocessors: int

    @property
    def grid(self) -> int:
        """The blocks that run at the same time on the whole device."""
        return self.blocks * self.multiprocessors


def ask(native: Native, slot: abi.KernelSlot, threads: int, shared: int) -> Occupancy:
    """What the driver says of the calling thread's device; ``threads`` 0 lets it choose. Raises `DeviceError`."""
    size, blocks = ctypes.c_int32(threads), ctypes.c_int32()
    native.api.mgpuKernelOccupancy(slot, shared, ctypes.byref(size), ctypes.byref(blocks))
    native.check()
    info = device_info(native, native.backend(), native.device_of_thread())
    return Occupancy(size.value, blocks.value, info.multiprocessors)


def threads_of(sizes: tuple[int, ...]) -> int:
    """The threads of a block, at most what a C int holds; no device runs so many."""
    x, y, z = sizes
    return min(x * y * z, 2**31 - 1)
