"""The inside of a worker: a process that builds what its parent sends it, one job after the other.

LLVM may end this process at any moment. Results, errors, progress and steps go through a pipe of their own, so that
what LLVM prints does no harm; `processes.py` starts and ends it.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import sys
import tempfile
import threading
import warnings
from typing import Any, NamedTuple, TextIO

from offload import config
from offload.compiler import steps
from offload.compiler.wire import Closed, Line, readable
from offload.errors import BuildWarning, CacheWarning, OffloadError
from offload.paths import readable as readable_name

# The kinds of messages to the parent, each (kind, value).
PROGRESS, EVENT, LOGGED, WARNED, GIVEN_UP, ITEM, DONE, FAILED, OUT_OF_MEMORY = range(9)


class Surroundings(NamedTuple):
    """What a job may ask the process for, as it is in the parent when the job is sent."""

    folder: str | None
    environment: dict[str, str]
    scratch: str
    """The folder for temporary files; the parent removes it."""
    is_last: bool
    """Whether no other job comes after this one."""
    log_levels: dict[str, int]
    """Of the loggers of this package that somebody set, by name; empty where the parent logs nothing."""


def main(reading: int, writing: int, lifeline: int) -> None:
    """Where a worker that was spawned begins; its pipes and lifeline are inherited descriptors."""
    serve(Line(reading, writing), lifeline)


def serve(line: Line, lifeline: int) -> None:
    """Does the jobs that come, until the parent closes its side. Never returns: a fork must not run on."""
    code = 1
    try:
        _settle(lifeline)
        sender = _Sender(line)
        is_last = False
        while not is_last:
            surroundings = line.receive()
            job = line.receive()
            sender.do(job, surroundings)
            is_last = surroundings.is_last
        code = 0
    except (Closed, BrokenPipeError):
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)  # no destructors of LLVM, no exit handlers of a forked parent


def _settle(lifeline: int) -> None:
    """The kernel ends this process, and the tools it runs, when the parent's end of the lifeline closes.

    Not prctl(PR_SET_PDEATHSIG): that is about the parent's thread that started the worker, and threads end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGIO, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if readable(lifeline, 0):  # before the kernel was asked to tell
        raise Closed
    # Where memory runs out, the kernel takes the worker before anything else of the user's.
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 -- pathlib is no shorter
            file.write("1000")
    except OSError:
        pass  # a sandbox without /proc: the kernel then chooses by size


def _adopt(surroundings: Surroundings, sender: _Sender) -> None:
    config.set_environment(surroundings.environment)
    _enter(surroundings.folder)
    tempfile.tempdir = surroundings.scratch
    if surroundings.log_levels:
        from offload.compiler import worker_logs

        worker_logs.adopt(surroundings.log_levels, lambda record: sender.send(LOGGED, record))


def _enter(folder: str | None) -> None:
    """Raises OffloadError for a folder that cannot be entered: one that this process is in may not be by its name."""
    if folder is None:
        return
    try:
        if os.getcwd() == folder:  # noqa: PTH109
            return
    except OSError:
        pass  # it was removed
    try:
        os.chdir(folder)
    except OSError as error:
        raise OffloadError(f"the worker cannot enter the current folder, {folder}: {error.strerror}") from error


class _Sender:
    """Does jobs and tells the parent; any thread may send."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._notes: dict[int, Any] = {}

    def send(self, kind: int, value: Any = None) -> None:
        with self._lock:
            self._line.send((kind, value))

    def do(self, job: bytes, surroundings: Surroundings) -> None:
        """One job, from its pickle to its last message."""
        try:
            _adopt(surroundings, self)
            from offload.compiler.native import native

            native().watch_crashes()
            function, arguments = pickle.loads(job)
            with steps.told_to(self._step), warnings.catch_warnings():
                for ours in (BuildWarning, CacheWarning):
                    warnings.simplefilter("always", ours)
                warnings.showwarning = self._warned
                for item in function(*arguments, lambda text: self.send(PROGRESS, text)):
                    self.send(ITEM, item)
            message: tuple[int, Any] = (DONE, None)
        except MemoryError:
            message = (OUT_OF_MEMORY, None)
        except BaseException as error:
            message = (FAILED, _portable(error))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if url := _given_up():
            self.send(GIVEN_UP, url)
        self.send(*message)

    def _warned(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """Our own warnings are the parent's, whose filters decide what becomes of them; others are printed."""
        if category in (BuildWarning, CacheWarning):
            self.send(WARNED, (category, str(message)))
        else:
            sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))

    def _step(self, event: steps.Event) -> None:
        """The parent knows what is going on, and so does LLVM's crash handler, in the very thread that crashes."""
        from offload.compiler.native import native

        if isinstance(event, steps.Begun):
            self._notes[event.key] = native().CrashNote(readable_name(str(event)))
        elif isinstance(event, steps.Ended):
            self._notes.pop(event.key, None)
        self.send(EVENT, event)


def _given_up() -> str | None:
    """The shared cache, where this process found it to be of no use: its parent would wait as long to find the same."""
    cache = sys.modules.get("offload.cache.cache")
    url = config.environment("OFFLOAD_SHARED_CACHE")
    return url if url and cache is not None and cache.is_given_up(url) else None


def _portable(error: BaseException) -> tuple[bytes, str]:
    """The error, pickled, and where in the worker it was raised."""
    import traceback

    where = "".join(traceback.format_exception(error))
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return data, where
