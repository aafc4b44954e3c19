"""What goes between a process and its worker: pickled objects through two pipes, each with its length before it."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import struct
import time
from typing import Any

_LENGTH = struct.Struct("<Q")
_LONGEST_WAIT = 2**31 - 1
"""Milliseconds; poll() takes no more."""


class Closed(Exception):
    """The other side is gone."""


def readable(descriptor: int, milliseconds: int) -> bool:
    """Whether there is something to read, or the other side is gone, now or within that time."""
    # Looked up at each call: eventlet takes poll() away, and gevent puts in one that lets others run. select.select()
    # refuses descriptors from 1024 on, but eventlet's takes any.
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(milliseconds))
    return bool(select.select([descriptor], [], [], milliseconds / 1000)[0])


class Line:
    """One side's ends of the two pipes: descriptors that are this object's to close."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    def send(self, value: Any) -> None:
        """Raises what pickle raises, before a byte is sent, and OSError where the other side is gone."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        left = memoryview(_LENGTH.pack(len(data)) + data)
        while left:
            left = left[os.write(self.writing, left) :]

    def receive(self, deadline: float | None = None) -> Any:
        """The next object. Raises Closed, and TimeoutError once time.monotonic() is past the deadline."""
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, deadline))
        return pickle.loads(self._receive(length, deadline))

    def has_news(self) -> bool:
        """Whether there is something to read, or the other side is gone."""
        return readable(self.reading, 0)

    def close(self) -> None:
        """The other side then finds it closed. May be called again."""
        for descriptor in (self.reading, self.writing):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self.reading = self.writing = -1

    def _receive(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if not readable(self.reading, min(math.ceil(left * 1000), _LONGEST_WAIT)):
                    continue
            got = os.readv(self.reading, [view[done:]])
            if got == 0:
                raise Closed
            done += got
        return data


def lines() -> tuple[Line, Line]:
    """The two sides. Raises OSError where there are no descriptors left."""
    first = os.pipe()
    try:
        second = os.pipe()
    except OSError:
        for descriptor in first:
            os.close(descriptor)
        raise
    return Line(first[0], second[1]), Line(second[0], first[1])
