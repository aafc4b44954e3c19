"""Builds side by side: on this machine's processors, or in the processes of an executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from offload.compiler import builds, isolation
from offload.compiler.isolation import Progress
from offload.compiler.places import in_use
from offload.compiler.request import BuildRequest
from offload.errors import OffloadError

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_WAITING = 256
"""Threads that do nothing but wait for an executor."""


def build(request: BuildRequest, progress: Progress) -> bytes:
    """The shared library, from wherever builds go to at the moment. Raises what a build raises."""
    executor = in_use()
    if executor is None:
        return builds.build(request, progress)
    future = executor.submit(_elsewhere, request, isolation.HERE.levels())
    try:
        outcome = future.result()
    except BaseException:
        future.cancel()
        raise
    hear = {"progress": progress, **isolation.HERE._asdict()}
    for kind, words in outcome.said:
        hear[kind](*words)
    if outcome.error is not None:
        raise outcome.error
    return bytes(outcome.data)


class _Outcome(NamedTuple):
    """What became of a build elsewhere, and its words, which are for the process that asked: where each is to go, and
    what it goes there with."""

    data: bytes
    error: OffloadError | None
    said: list[tuple[str, tuple[Any, ...]]]


def _elsewhere(request: BuildRequest, levels: dict[str, int]) -> _Outcome:
    """What an executor's process does. It has a worker of its own: LLVM's crash must not cost a process of a pool."""
    said: list[tuple[str, tuple[Any, ...]]] = []

    def note(kind: str) -> Callable[..., None]:
        return lambda *words: said.append((kind, words))

    ears = isolation.Ears(note("warned"), note("logged"), note("printed"), lambda: levels)
    try:
        return _Outcome(builds.build(request, note("progress"), ears), None, said)
    except OffloadError as error:
        return _Outcome(b"", error, said)


def each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function`` of every item, side by side. Raises the first error in the order of the items; the rest is left.

    There are as many threads as processors, each with a worker, or many that wait where builds go to an executor."""
    threads = len(os.sched_getaffinity(0)) if in_use() is None else _MOST_WAITING
    if len(items) == 1 or threads == 1:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # which imports much

    with ThreadPoolExecutor(min(threads, max(len(items), 1))) as pool:
        futures: list[Future[Any]] = [pool.submit(copy_context().run, function, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            for future in futures:
                future.cancel()
            if not isinstance(error, Exception):  # Ctrl-C: the threads are not to finish what they are at
                isolation.stop()
            raise
