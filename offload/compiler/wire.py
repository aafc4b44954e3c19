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
    return _ready(descriptor, milliseconds, reading=True)


def _ready(descriptor: int, milliseconds: int, *, reading: bool) -> bool:
    # Looked up at each call: eventlet takes poll() away, and gevent puts in one that lets others run. select.select()
    # refuses descriptors from 1024 on, but eventlet's takes any.
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN if reading else select.POLLOUT)
        return bool(waiting.poll(milliseconds))
    to_read, to_write = ([descriptor], []) if reading else ([], [descriptor])
    return any(select.select(to_read, to_write, [], milliseconds / 1000))


def _wait(descriptor: int, deadline: float, *, reading: bool) -> None:
    """Until something can be read or written. Raises TimeoutError once time.monotonic() is past the deadline."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if _ready(descriptor, min(math.ceil(left * 1000), _LONGEST_WAIT), reading=reading):
            return


class Line:
    """One side's ends of the two pipes: descriptors that are this object's to close."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    def send(self, value: Any, deadline: float | None = None) -> None:
        """Raises what pickle raises, before a byte is sent, OSError where the other side is gone, and TimeoutError once
        time.monotonic() is past the deadline: a pipe takes no more while nobody reads."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        left = memoryview(_LENGTH.pack(len(data)) + data)
        most = len(left)
        while left:
            if deadline is not None:
                _wait(self.writing, deadline, reading=False)
                most = select.PIPE_BUF  # which a pipe that is ready takes at once
            left = left[os.write(self.writing, left[:most]) :]

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
                _wait(self.reading, deadline, reading=True)
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
