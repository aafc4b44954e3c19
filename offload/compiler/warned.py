"""What builds warn of: said here, and kept with what was built, as the cache gives that again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from offload.errors import BuildWarning, warn

NOTHING_TO_CALL = "there is nothing to call in what this builds"

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def say(text: str) -> None:
    """Gives a BuildWarning."""
    heard = _heard.get()
    if heard is not None:
        heard.append(text)
    warn(text, BuildWarning)


@contextlib.contextmanager
def heard() -> Iterator[list[str]]:
    """A list that gets the warnings that are given inside of the ``with``."""
    texts: list[str] = []
    token = _heard.set(texts)
    try:
        yield texts
    finally:
        _heard.reset(token)
