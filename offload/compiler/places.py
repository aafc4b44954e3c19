"""Where builds go to at the moment: an executor, or this machine's workers. Imports no compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor

_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextlib.contextmanager
def through(executor: Executor | None) -> Iterator[None]:
    """What is built inside goes to this executor, a build each; None: to this machine's workers."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


_short_lived = False


def short_lived() -> None:
    """Says that this process is a command that builds and ends: forking it costs less than another Python."""
    global _short_lived
    _short_lived = True


def is_short_lived() -> bool:
    """Whether `short_lived` was called."""
    return _short_lived


def in_use() -> Executor | None:
    """The executor of the innermost `through`."""
    return _executor.get()
