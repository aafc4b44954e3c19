"""What no other thread may come in between of, in what several threads change: streams, and what uses an array."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offload.runtime.pending import Mark
    from offload.runtime.streams import Stream

# Of what uses an array. A stream has a lock of its own, which finalizers take, and who has that may be about to change
# the stream: the same lock for both would be waited for in a circle.
_lock = threading.RLock()  # a finalizer may come in between
_serials = itertools.count(1)
_threads = itertools.count(1)


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)  # a thread of the parent's may have it


class _Thread(threading.local):
    def __init__(self) -> None:
        self.number = next(_threads)


_thread = _Thread()


def _thread_of_python() -> int:
    return _thread.number


def _opened_by_lock(stream: Stream, mark: Mark) -> Mark:
    with stream.lock:
        if stream.open is None:
            mark.serial = next(_serials)
            stream.open = mark
            return mark
        return stream.open


def _replace_by_lock(holder: object, name: str, before: object, after: object) -> bool:
    with getattr(holder, "lock", _lock):
        if getattr(holder, name) is not before:
            return False
        setattr(holder, name, after)  # the caller has the old one
        return True


_opened: Callable[[Stream, Mark], Mark] = _opened_by_lock
_replace: Callable[[object, str, object, object], bool] = _replace_by_lock
_next_serial: Callable[[], int] = _serials.__next__
_thread_number: Callable[[], int] = _thread_of_python


def take_with(
    opened: Callable[[Stream, Mark], Mark],
    replace: Callable[[object, str, object, object], bool],
    next_serial: Callable[[], int],
    thread_number: Callable[[], int],
) -> None:
    """Lets the extension do it, which changes the same things, and takes no lock: it keeps Python's own."""
    global _opened, _replace, _next_serial, _thread_number
    _opened, _replace, _next_serial, _thread_number = opened, replace, next_serial, thread_number


def opened(stream: Stream, mark: Mark) -> Mark:
    """The stream's open mark: this new one where there is none, with the serial of now."""
    return _opened(stream, mark)


def replace(holder: object, name: str, before: object, after: object) -> bool:
    """Puts ``after`` into the slot of that name if it has ``before``; whether it had."""
    return _replace(holder, name, before, after)


def next_serial() -> int:
    """More than all before."""
    return _next_serial()


def thread() -> int:
    """The calling thread's number, which no later thread has."""
    return _thread_number()
