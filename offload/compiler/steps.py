"""What a build is doing: named steps with their times, for ``--timing`` and for what is said after a crash."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import NamedTuple


class Begun(NamedTuple):
    """A step begins: ``name`` is a stage, ``part`` what of the program it works on. ``key`` is this step's alone.

    ``inside`` is the key of the step that this one is a part of; None for one by itself."""

    key: int
    name: str
    part: str
    inside: int | None = None

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


WAITING = "waiting for another process"
"""The name of a step in which this build does nothing: no part of the time that it may take."""


class _Open:
    """A step under way, and how many seconds the steps inside it have taken."""

    def __init__(self, key: int) -> None:
        self.key, self.inner = key, 0.0


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_open: ContextVar[_Open | None] = ContextVar("open", default=None)
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
    outer, this = _open.get(), _Open(next(_keys))
    tell(Begun(this.key, name, part, outer.key if outer else None))
    token = _open.set(this)
    started = time.perf_counter()
    failed = True
    try:
        yield
        failed = False
    finally:
        taken = time.perf_counter() - started
        _open.reset(token)
        if outer is not None:
            outer.inner += taken
        tell(Ended(this.key, taken - this.inner, failed))


def spoken(begun: Iterable[Begun]) -> str:
    """Steps in words, each inside of its own, those side by side one after the other; empty for none."""
    steps: dict[int | None, Begun] = {step.key: step for step in begun}
    outer = {step.inside for step in steps.values()}
    chains = []
    for key, step in steps.items():
        if key not in outer:
            chain = [step]
            while (above := steps.get(chain[-1].inside)) is not None:
                chain.append(above)
            chains.append(" in ".join(map(str, chain)))
    return " and ".join(chains)


def passes(times: list[tuple[str, float]]) -> None:
    """Tells of the passes that ran."""
    tell = _listener.get()
    if tell is not None and times:
        tell(Passes(tuple(times)))
