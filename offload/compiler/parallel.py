"""Builds side by side: on this machine's processors, or in the processes of an executor."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from offload.compiler import builds, isolation
from offload.compiler.isolation import Progress
from offload.compiler.places import in_use
from offload.compiler.request import BuildRequest, distinct
from offload.errors import OffloadError
from offload.executors import result, room, submitted

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_WAITING = 256
"""Threads that do nothing but wait for an executor."""


_jobs_each: ContextVar[int | None] = ContextVar("jobs_each", default=None)
"""The jobs of an executor that are for each of several builds; None for one that has all of it."""
_LISTENS = 0.2
"""Seconds after which a wait for threads looks for Ctrl-C."""


def build(request: BuildRequest, progress: Progress) -> bytes:
    """The shared library, from wherever builds go to at the moment. Raises what a build raises."""
    executor = in_use()
    if executor is None:
        return builds.build(request, progress)
    from offload.compiler.made import shares  # for executors alone

    request = _for_anywhere(request)
    # Where there is room for more jobs than there are builds, parts of builds are jobs. Each of them parses the program
    # anew, which would be work lost where others wait for their turn.
    most = _jobs_each.get()
    parts = shares(request, room(executor) if most is None else most)
    jobs = _Jobs(executor, progress)
    if len(parts) == 1:
        return bytes(jobs.done([(builds.build, request)])[0])
    made = jobs.done([(builds.part, request, share) for share in parts])
    return bytes(jobs.done([(builds.assemble, request, made)])[0])


def _for_anywhere(request: BuildRequest) -> BuildRequest:
    """The request as it means the same on another machine: this one's processor by its name."""
    if not any(target.chip == "native" for target in request.targets):
        return request
    from offload.compiler.native import native

    request = distinct(request, native())
    targets, optional = (tuple(each.named(native()) for each in of) for of in (request.targets, request.optional))
    return replace(request, targets=targets, optional=optional)


class _Jobs:
    """What an executor does for one build, whose words are said here, each once."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self._executor = executor
        self._hear = {"progress": progress, **isolation.HERE._asdict()}
        self._said: set[str] = set()
        self._given_up = isolation.given_up.get()

    def done(self, jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results of functions of `builds` with their arguments, done side by side. Raises the first error."""
        levels = isolation.HERE.levels()
        futures: list[Future[Any]] = []
        try:
            futures += (submitted(self._executor, _elsewhere, levels, *job) for job in jobs)
            return [self._result(result(self._executor, future, self._given_up)) for future in futures]
        except BaseException as error:
            for future in futures:
                future.cancel()
            if isinstance(error, Exception) and not isinstance(error, OffloadError):
                function, request, *arguments = jobs[0]  # which pools, too, send as pickle has it
                isolation.pickled(isolation.Job(function, request, tuple(arguments)), "the executor")
            raise

    def _result(self, outcome: _Outcome) -> Any:
        elsewhere = "" if outcome.machine == _machine() else f"on {outcome.machine}"
        for kind, words in outcome.said:
            # Every part of a build parses the program, and warns of it.
            if kind in ("progress", "warned"):
                if repr(words) in self._said:
                    continue
                self._said.add(repr(words))
            self._hear[kind](*((f"{words[0]} {elsewhere}".rstrip(),) if kind == "progress" else words))
        error = outcome.error
        if error is not None:
            # What is wrong with a program is so everywhere; tools, files and folders of crashes are a machine's own.
            if elsewhere and not getattr(error, "diagnostics", None):
                error.args = (f"{error}\n  this was {elsewhere}", *error.args[1:])
            raise error
        return outcome.result


def _machine() -> str:
    return os.uname().nodename


class _Outcome(NamedTuple):
    """What became of a job, on which machine, and its words, which are for the process that asked: where each is to go,
    and what it goes there with."""

    machine: str
    result: Any
    error: OffloadError | None
    said: list[tuple[str, tuple[Any, ...]]]


def _elsewhere(levels: dict[str, int], function: Callable[..., Any], *arguments: Any) -> _Outcome:
    """What an executor's process does. It has a worker of its own: LLVM's crash must not cost a process of a pool."""
    said: list[tuple[str, tuple[Any, ...]]] = []

    def note(kind: str) -> Callable[..., None]:
        return lambda *words: said.append((kind, words))

    ears = isolation.Ears(note("warned"), note("logged"), note("printed"), lambda: levels)
    try:
        return _Outcome(_machine(), function(*arguments, note("progress"), ears), None, said)
    except OffloadError as error:
        return _Outcome(_machine(), None, error, said)


def each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function`` of every item, side by side. Raises the first error in the order of the items; the rest is left.

    There are as many threads as processors, each with a worker, or many that wait where builds go to an executor."""
    executor = in_use()
    threads = len(os.sched_getaffinity(0)) if executor is None else _MOST_WAITING
    if len(items) == 1 or threads == 1:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # which imports much

    context, given_up, outer = copy_context(), threading.Event(), isolation.given_up.get()
    # A function for progress may build, too: all of it ends with the build that called it.
    context.run(isolation.given_up.set, lambda: given_up.is_set() or outer())
    if executor is not None:
        context.run(_jobs_each.set, room(executor) // max(len(items), 1))
    futures: list[Future[Any]] = []
    with ThreadPoolExecutor(min(threads, max(len(items), 1))) as pool:
        try:
            try:
                futures += (pool.submit(context.copy().run, function, item) for item in items)
                return [_awaited(future).result() for future in futures]
            except Exception:  # what is under way is done to its end
                for future in futures:
                    future.cancel()
                for future in futures:
                    _awaited(future)
                raise
        except BaseException as error:
            for future in futures:
                future.cancel()
            if not isinstance(error, Exception):  # Ctrl-C: the threads are not to finish what they are at
                given_up.set()
                isolation.stop()
            raise


def _awaited(future: Future[Any]) -> Future[Any]:
    """The future, done. The system may give Ctrl-C to a thread that starts a worker just then: Python handles it in
    this one, and a wait without an end would not notice."""
    from concurrent.futures import wait

    while not future.done():
        wait((future,), timeout=_LISTENS)
    return future
