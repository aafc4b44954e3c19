"""Builds in workers: LLVM may crash there, hang or run out of memory, and it is an error of that build alone."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from offload import config
from offload.compiler import places, processes, steps, worker
from offload.compiler.processes import Worker
from offload.compiler.request import BuildRequest
from offload.compiler.scratch import remove_abandoned, scratch
from offload.compiler.warned import say
from offload.compiler.wire import Closed
from offload.errors import CacheWarning, CompilerCrash, OffloadError
from offload.paths import import_path

Progress = Callable[[str], None]

MOST_MEMORY = 1 << 30
"""Bytes that a worker may keep between jobs: a large program leaves what its process does not give back."""


class Job(NamedTuple):
    """A function of a module, which takes the request, these arguments and where progress goes, and yields results.

    ``words`` are the arguments of ``offload build`` that do the same beyond the request."""

    function: Callable[..., Iterator[Any]]
    request: BuildRequest
    arguments: tuple[Any, ...] = ()
    words: tuple[str, ...] = ()

    def here(self, progress: Progress) -> Iterator[Any]:
        """Does it in this process."""
        return self.function(self.request, *self.arguments, progress)


_called_back: ContextVar[bool] = ContextVar("called_back", default=False)
"""Whether this is inside of a caller's function for progress: what it builds would wait for the place of the build that
called it."""

given_up: ContextVar[Callable[[], bool]] = ContextVar("given_up", default=lambda: False)
"""Whether nobody waits any more for the builds that this one is of."""


class _Pool:
    """Workers that wait for a job; they stay, because the first build of a worker is the slowest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._leaving: list[Worker] = []
        self._places = threading.Semaphore(max(len(os.sched_getaffinity(0)), 1))

    @contextlib.contextmanager
    def worker(self, short_lived: bool, once: bool, code: Mapping[Path, str]) -> Iterator[Worker]:
        """A worker of the caller's own; there are as many at a time as processors. Without a crash it comes back.

        ``short_lived`` and ``once`` are as in `places`; ``code`` are the files of targets that it will load, with
        their stamps."""
        with contextlib.nullcontext() if _called_back.get() else self._places:
            with self._lock:
                left, self._leaving = self._leaving, []
                found = self._idle.pop() if self._idle else None
            for each in left:  # of a command that this process ran and outlives
                each.end()
            if found is not None and not (
                found.path == tuple(import_path())
                and not found.cancelled  # by Ctrl-C when it was idle: it is there for a moment yet
                and found.is_there()
                and found.is_current(code)
            ):
                found.end()  # with another path, its modules may be other ones
                found = None
            if found is None:
                # A fork has what its parent had then: it is for a process that asks for one thing and ends.
                fork = short_lived and processes.has_one_thread()
                try:
                    found = processes.forked() if fork else processes.spawned()
                except OSError as error:  # the limits of processes or open files are reached
                    advice = f"; {what}" if (what := processes.OF_LIMITS.get(error.errno or 0)) else ""
                    raise OffloadError(f"cannot start a worker: {error.strerror or error}{advice}") from error
            found.code.update(code)
            try:
                yield found
            except BaseException:  # Ctrl-C among them: what it was at may go on for minutes
                found.kill()
                raise
            if once:
                # It frees its memory while this process goes on, and is waited for at the end.
                self._leaving.append(found)
                return
            if found.memory() > MOST_MEMORY:
                found.end()
                return
            with self._lock:
                self._idle.append(found)

    def end(self) -> None:
        """Lets all idle workers go."""
        with self._lock:
            ours, self._idle, self._leaving = [*self._idle, *self._leaving], [], []
        for each in ours:
            each.end()


class _State:
    pool = _Pool()
    tidied = False


_state = _State()


def _after_fork() -> None:
    _state.pool = _Pool()  # processes.py has forgotten the workers, which are the parent's


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end() -> None:
    for each in processes.alive():
        each.cancelled = True  # of a daemon's thread that is not waited for: no crash of the compiler
        each.kill()


def cancelled() -> BaseException:
    """What a build raises that nobody waits for any more."""
    from concurrent.futures import CancelledError  # which imports much

    return CancelledError()


def stop() -> None:
    """Ends all builds that are under way in other threads: these raise CancelledError. Those that are about to begin do
    where `given_up` says so, which it must before."""
    for each in processes.alive():
        each.cancel()


def warn(category: type[Warning], text: str) -> None:
    """A warning of a worker's, given here."""
    if category is CacheWarning:
        from offload.cache.cache import warn_once

        warn_once(text)
    else:
        say(text)


def log(record: Mapping[str, Any]) -> None:
    """What a worker logged, logged here."""
    from offload.compiler.worker_logs import handle

    handle(record)


def write(text: str) -> None:
    """What a worker printed, as if it had been printed here."""
    if sys.stderr is not None:
        sys.stderr.write(text)


def log_levels() -> dict[str, int]:
    """The levels that somebody set here; none where nothing has imported logging, which takes its time."""
    if "logging" not in sys.modules:
        return {}
    from offload.compiler import worker_logs

    return worker_logs.levels()


class Ears(NamedTuple):
    """What becomes of a worker's words, and of what level the logged ones are to be."""

    warned: Callable[[type[Warning], str], None] = warn
    logged: Callable[[Mapping[str, Any]], None] = log
    printed: Callable[[str], None] = write
    levels: Callable[[], dict[str, int]] = log_levels


HERE = Ears()


def run(job: Job, progress: Progress, ears: Ears = HERE) -> Iterator[Any]:
    """The results of a job, done in a worker. Raises what the job raises, and CompilerCrash where it came to no end."""
    limit = config.time_limit()
    _check_classes(job.request)
    message = pickled(job, "the worker", "; OFFLOAD_ISOLATE=0 builds in this process")
    failure: BaseException | None = None
    once = places.is_for_one_build()
    pool = _state.pool
    # The folder goes after the worker, which might write there to the last.
    with scratch() as folder, pool.worker(places.is_short_lived(), once, _code(job.request)) as used:
        if given_up.get()():  # `stop` may have come before this worker was there to be ended
            raise cancelled()
        talk = _Talk(job, used, progress, ears, limit)
        talk.send(_surroundings(folder, once, ears.levels()), message)
        _tidy()
        yield from talk.items()
        failure = talk.failure
    if failure is not None:
        raise failure


def _code(request: BuildRequest) -> dict[Path, str]:
    """The files of the targets that other packages bring, with their stamps."""
    others = [type(target) for target in request.targets if not type(target).__module__.startswith("offload.")]
    if not others:
        return {}
    from offload.compiler.code import stamps  # it has much to import, and few packages have targets

    return stamps(others)


def _tidy() -> None:
    """Removes what killed builds left among the temporary files: once, and while there is nothing to do but wait."""
    if not _state.tidied:
        _state.tidied = True
        remove_abandoned()


def _check_classes(request: BuildRequest) -> None:
    for target in request.targets:
        if type(target).__module__ == "__main__":
            raise OffloadError(
                f"{target} cannot be sent to the worker: it is of the class {type(target).__qualname__} of the "
                "program's main module, which the worker does not run; put the class into a module of its own, or "
                "build in this process with OFFLOAD_ISOLATE=0"
            )


def pickled(job: Job, whither: str, advice: str = "") -> bytes:
    """A job as it is sent. Raises OffloadError for one that cannot be."""
    try:
        return pickle.dumps((job.function, (job.request, *job.arguments)), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # of a target, which may have its own way to be pickled
        raise OffloadError(
            f"this build cannot be sent to {whither}: {error}\n  targets are classes of modules, and their options "
            f"plain values{advice}"
        ) from error


def _surroundings(temporaries: str, once: bool, levels: dict[str, int]) -> worker.Surroundings:
    try:
        folder = os.getcwd()  # noqa: PTH109
    except OSError:
        folder = None  # it was removed
    return worker.Surroundings(
        folder=folder,
        environment=_environment(),
        scratch=temporaries,
        is_last=once,
        log_levels=levels,
    )


def _environment() -> dict[str, str]:
    """This process's; without the shared cache that it waited for in vain, which the worker would do once more."""
    variables = config.whole_environment()
    if url := config.environment("OFFLOAD_SHARED_CACHE"):
        from offload.cache.cache import is_given_up

        if is_given_up(url):
            variables["OFFLOAD_SHARED_CACHE"] = ""
    return variables


class _Talk:
    """What comes from a worker about one job."""

    def __init__(self, job: Job, used: Worker, progress: Progress, ears: Ears, limit: float | None) -> None:
        self._job, self._used, self._progress, self._ears, self._limit = job, used, progress, ears, limit
        self._deadline = time.monotonic() + limit if limit else None
        self._left, self._waiting = 0.0, 0
        self._listener = steps.listener()
        self._busy: dict[int, steps.Begun] = {}
        self._failed: list[steps.Begun] = []
        self.failure: BaseException | None = None

    def send(self, *messages: Any) -> None:
        """Tells the worker what to do. Raises CompilerCrash where it does not listen in time."""
        try:
            for message in messages:
                self._used.line.send(message, self._deadline)
        except TimeoutError:
            raise self._late() from None
        except OSError:
            pass  # it is gone; the attempt to read says so

    def items(self) -> Iterator[Any]:
        """The results as they come; at the end `failure` is what the job raised. Raises CompilerCrash."""
        while True:
            try:
                kind, value = self._used.line.receive(self._deadline)
            except Closed:
                if self._used.cancelled:
                    raise cancelled() from None
                raise self._crash(None) from None
            except TimeoutError:
                raise self._late() from None
            if kind == worker.ITEM:
                yield value
            elif kind == worker.PROGRESS:
                self._call_back(value)
            elif kind == worker.EVENT:
                self._note(value)
            elif kind == worker.WARNED:
                self._ears.warned(*value)
            elif kind == worker.LOGGED:
                self._ears.logged(value)
            elif kind == worker.GIVEN_UP:
                from offload.cache.cache import give_up

                give_up(value)
            elif kind == worker.OUT_OF_MEMORY:
                raise self._crash("ran out of memory")
            else:
                break
        if printed := self._used.printed():
            self._ears.printed(printed)
        if kind == worker.FAILED:
            self.failure = _revived(*value)

    def _call_back(self, text: str) -> None:
        token = _called_back.set(True)
        try:
            self._progress(text)
        finally:
            _called_back.reset(token)

    def _note(self, event: steps.Event) -> None:
        if isinstance(event, steps.Begun):
            self._busy[event.key] = event
            if event.name == steps.WAITING:
                self._wait(1)
        elif isinstance(event, steps.Ended):
            step = self._busy.pop(event.key, None)
            if step is not None and event.failed:
                self._failed.append(step)
            if step is not None and step.name == steps.WAITING:
                self._wait(-1)
        if self._listener is not None:
            self._listener(event)

    def _wait(self, more: int) -> None:
        """Another thread of the worker's waits for another process, or no longer. What is left of the time is left when
        none does; that process has a limit of its own, and a worker waits no longer than the cache lets it."""
        if self._deadline is None:
            return
        from offload.cache.cache import PATIENCE  # it has much to import, and few builds wait

        now = time.monotonic()
        if self._waiting == 0:
            self._left = self._deadline - now
        self._waiting += more
        self._deadline = now + self._left + (PATIENCE if self._waiting else 0.0)

    def _late(self) -> CompilerCrash:
        self._used.stop()
        return self._crash(f"was stopped after {self._limit:g} seconds, the limit that OFFLOAD_TIME_LIMIT sets")

    def _crash(self, how: str | None) -> CompilerCrash:
        from offload.compiler.crashes import crash, ending

        how = ending(self._used.status()) if how is None else how
        busy = [*self._busy.values(), *self._failed]
        return crash(how, self._job.request, self._job.words, self._used.printed(), busy)


class _RaisedInWorker(Exception):
    """The traceback of an error in the worker; the cause of one that is a bug."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _revived(data: bytes, where: str) -> BaseException:
    error: BaseException = pickle.loads(data)
    if not isinstance(error, OffloadError):
        error.__cause__ = _RaisedInWorker(where)
    return error
