"""What a build is doing: named steps with their times, for ``--timing`` and for what is said after a crash."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple


class Begun(NamedTuple):
    """A step begins: ``name`` is a stage, ``part`` what of the program it works on. ``key`` is this step's alone."""

    key: int
    name: str
    part: str

    def __str__(self) -> str:
        return f"{self.name} of {self.part}" if self.part else self.name


class Ended(NamedTuple):
    """The step with this ``key`` is over; ``seconds`` are its own, without those of the steps inside it.

    ``failed``: by an error."""

    key: int
    seconds: float
    failed: bool


class Passes(NamedTuple):
    """The passes of MLIR that ran, in order, and how many seconds each took. They are parts of steps."""

    times: tuple[tuple[str, float], ...]


Event = Begun | Ended | Passes
Listener = Callable[[Event], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_inside: ContextVar[list[float] | None] = ContextVar("inside", default=None)
_keys = itertools.count()


def listener() -> Listener | None:
    """Who is told of the steps of this thread, if anyone."""
    return _listener.get()


@contextlib.contextmanager
def told_to(listener: Listener | None) -> Iterator[None]:
    """Steps are told to this listener, which is called in the thread that takes them: maybe in several at a time."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextlib.contextmanager
def step(name: str, part: str = "") -> Iterator[None]:
    """What is done inside is a step."""
    tell = _listener.get()
    if tell is None:
        yield
        return
    key = next(_keys)
    tell(Begun(key, name, part))
    inner = [0.0]
    token = _inside.set(inner)
    started = time.perf_counter()
    failed = True
    try:
        yield
        failed = False
    finally:
        taken = time.perf_counter() - started
        _inside.reset(token)
        outer = _inside.get()
        if outer is not None:
            outer[0] += taken
        tell(Ended(key, taken - inner[0], failed))


def passes(times: list[tuple[str, float]]) -> None:
    """Tells of the passes that ran."""
    tell = _listener.get()
    if tell is not None and times:
        tell(Passes(tuple(times)))
