"""How many bytes a cache holds and how often it was of use: one small file, so that nobody has to look at all entries.

Its numbers are approximate where processes are killed; a sweep over the entries sets the bytes right.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from offload.cache import locks

_WIDTH = 512
_PATIENCE = 0.2
"""Seconds."""


class Ledger:
    """The numbers of one cache: ``bytes``, and ``hits`` and ``misses`` per stage."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.json"

    def read(self) -> dict[str, int]:
        """The numbers; none where there are none yet."""
        try:
            with locks.opened(self._path, os.O_RDONLY) as handle:
                return _numbers(handle)
        except OSError:
            return {}

    def count(self, event: str, stage: str) -> None:
        """One more ``hit`` or ``miss``."""
        self._change(lambda numbers: _add(numbers, f"{stage} {event}", 1))

    def add_bytes(self, number: int) -> int | None:
        """The bytes with these added; None where it was not known how many there were."""
        before = self.read().get("bytes")
        self._change(lambda numbers: _add(numbers, "bytes", number))
        return None if before is None else before + number

    def set_bytes(self, number: int) -> None:
        """What a sweep found."""
        self._change(lambda numbers: numbers.update(bytes=number))

    def _change(self, change: Callable[[dict[str, int]], None]) -> None:
        # A number that cannot be written, in a read-only folder or on a full disk, is no reason to fail.
        with contextlib.suppress(OSError), locks.opened(self._path, os.O_RDWR | os.O_CREAT) as handle:
            if not _locked(handle):  # whoever has it was stopped in the middle; a number is not worth waiting for
                return
            numbers = _numbers(handle)
            change(numbers)
            os.pwrite(handle, json.dumps(numbers).ljust(_WIDTH).encode(), 0)
            os.ftruncate(handle, _WIDTH)  # what is behind would make all of it unreadable


def _locked(handle: int) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while not locks.try_lock(handle):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def _add(numbers: dict[str, int], name: str, number: int) -> None:
    numbers[name] = numbers.get(name, 0) + number


def _numbers(handle: int) -> dict[str, int]:
    try:
        read = json.loads(os.pread(handle, 2 * _WIDTH, 0))
    except (ValueError, RecursionError):  # what a disk made of it
        return {}
    read = read if isinstance(read, dict) else {}
    return {str(name): value for name, value in read.items() if type(value) is int and value >= 0}
