"""Where builds go to at the moment: an executor, or this machine's workers. Imports no compiler."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from offload.config import isolated

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from types import FrameType

_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextlib.contextmanager
def through(executor: Executor | None) -> Iterator[None]:
    """What is built inside goes to this executor, a build each; None: to this machine's workers."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


# Of the thread: a command may be run in one thread of a program, which builds in others.
_short_lived: ContextVar[bool] = ContextVar("short_lived", default=False)
_once: ContextVar[bool] = ContextVar("once", default=False)


@contextlib.contextmanager
def short_lived(once: bool = False) -> Iterator[None]:
    """What is built inside is built by a command, which then ends: forking it costs less than another Python, and
    where it is told to end, as make and CI systems do, it leaves no files behind. ``once``: it is one build, after
    which its worker has nothing to wait for. Raises OffloadError."""
    # A compiler in this process would not listen; and only the main thread may say what signals do.
    ours = isolated() and threading.current_thread() is threading.main_thread()
    taken = [number for number in _ENDING if ours and signal.getsignal(number) == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)
    tokens = _short_lived.set(True), _once.set(once)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        _short_lived.reset(tokens[0])
        _once.reset(tokens[1])


_ENDING = (signal.SIGTERM, signal.SIGHUP)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def is_short_lived() -> bool:
    """Whether this is inside of `short_lived`."""
    return _short_lived.get()


def is_for_one_build() -> bool:
    """Whether that is for one build."""
    return _once.get()


def in_use() -> Executor | None:
    """The executor of the innermost `through`."""
    return _executor.get()
