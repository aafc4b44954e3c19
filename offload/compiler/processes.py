"""Workers as processes: how they are started, spoken to, ended, and never outlive or follow their parent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from offload.compiler.wire import Line, lines
from offload.errors import OffloadError
from offload.paths import import_path

if TYPE_CHECKING:
    import subprocess

OF_LIMITS = {
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "close files of other programs",
    errno.EAGAIN: "allow more processes (ulimit -u, a container's limit)",
    errno.ENOMEM: "allow more memory (ulimit -v, a container's limit)",
}
"""Errors that say nothing of what was asked for, and what to do about them."""
_ENDING = (signal.SIGINT, signal.SIGTERM)
_ENTRY = "from offload.compiler.worker import main"
_alive: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """A process that builds; one thread at a time may use it. What it prints is kept in memory, per job."""

    def __init__(self, start: Callable[[Worker, Line, int], int]) -> None:
        self.path = tuple(import_path())
        """The modules that it has loaded come from there; with another path it is of no use."""
        self.code: dict[Path, str] = {}
        """The files of other packages' targets that it has built for, each with its stamp when it first did."""
        self.process: subprocess.Popen[bytes] | None = None
        self.cancelled = False
        self._status: int | None = None
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            with _standard_ones_taken():
                self.line, line = lines()
                ours.callback(self.line.close)
                theirs.callback(line.close)
                lifeline, self.lifeline = os.pipe()
                ours.callback(os.close, self.lifeline)
                theirs.callback(os.close, lifeline)
                self.output = os.memfd_create("offload-worker")
                ours.callback(os.close, self.output)
            fcntl.fcntl(self.output, fcntl.F_SETFL, os.O_APPEND)  # to be emptied while the worker has it open
            self.pid = start(self, line, lifeline)
            ours.pop_all()
        _alive.add(self)

    def printed(self) -> str:
        """What it wrote to its standard output and error since the last call."""
        size = os.fstat(self.output).st_size
        text = os.pread(self.output, size, 0).decode(errors="replace")
        os.ftruncate(self.output, 0)
        return text

    def is_there(self) -> bool:
        """Whether a worker without a job is still there: the system may have ended it for its memory."""
        return not self.line.has_news()  # it says nothing unasked: what is there is its end

    def is_current(self, code: Mapping[Path, str]) -> bool:
        """Whether none of these files has changed since it loaded it: modules are not loaded twice."""
        return all(self.code.get(path, stamp) == stamp for path, stamp in code.items())

    def memory(self) -> int:
        """The bytes that it has in memory; 0 where the system does not tell."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:  # noqa: PTH123 -- pathlib is no shorter
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def status(self) -> int:
        """Waits for its end. The exit code, or the number of the signal that ended it, negative."""
        if self._status is None:
            if self.process is not None:
                self._status = self.process.wait()
            else:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status

    def stop(self) -> None:
        """Ends it at once, with the tools that it runs; what it printed can still be read."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):  # it may not lead its group yet, and has no tools then
                os.killpg(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGKILL)  # it is there, if only to be waited for
            self.status()

    def cancel(self) -> None:
        """From another thread than the one that uses it: ends it, and leaves the rest to that one."""
        self.cancelled = True
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Ends it at once and lets it go."""
        self.stop()
        self.end()

    def end(self) -> None:
        """Lets it go, and waits: it ends as soon as it has nothing to do."""
        self.line.close()
        self.status()
        self._close()

    def abandon(self) -> None:
        """In a fork of this process: forgets the worker, which belongs to the parent."""
        self._status = 0
        if self.process is not None:
            self.process.returncode = 0  # it would be waited for, and is no child of this process
        self._close()

    def _close(self) -> None:
        self.line.close()
        for descriptor in (self.lifeline, self.output):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.lifeline = self.output = -1
        _alive.discard(self)


@contextlib.contextmanager
def _standard_ones_taken() -> Iterator[None]:
    """Descriptors that are opened inside are none of the standard ones, which a worker has for its own; a program that
    has closed these would get them."""
    with contextlib.ExitStack() as taken:
        descriptor = -1
        while descriptor <= 2:
            descriptor = os.open(os.devnull, os.O_RDWR)
            taken.callback(os.close, descriptor)
        yield


def alive() -> list[Worker]:
    """The workers of this process."""
    while True:
        try:
            return list(_alive)
        except RuntimeError:  # another thread has just started one; a lock might be held in a fork
            continue


def spawned() -> Worker:
    """A worker with a Python of its own: it has nothing of this process but its environment and its modules' path.

    Raises OffloadError where that Python cannot be run, and OSError at a limit."""
    return Worker(_spawn)


def forked() -> Worker:
    """A worker that is a fork of this process, which must have one thread only: it starts in a millisecond."""
    return Worker(_fork)


def has_one_thread() -> bool:
    """Whether this process may be forked: threads of C libraries count too."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208
    except OSError:
        return False


def _spawn(worker: Worker, line: Line, lifeline: int) -> int:
    import subprocess
    from multiprocessing import spawn

    executable = os.fsdecode(spawn.get_executable() or "")  # programs that embed Python set it
    if not executable:
        raise OffloadError(
            "cannot start a worker: sys.executable is not set; name the Python interpreter with "
            "multiprocessing.set_executable(), or build in this process with OFFLOAD_ISOLATE=0"
        )
    # A Python takes the code from its arguments. A program that is none is run again by them, and would start another.
    if any(_ENTRY in word for word in getattr(sys, "argv", ())):
        raise OffloadError(
            f"cannot start a worker: {executable} is no Python interpreter, it runs this program again; "
            "name one with multiprocessing.set_executable(), or build in this process with OFFLOAD_ISOLATE=0"
        )
    # The path is set before anything is imported: -c puts the current folder in front.
    code = f"import sys; sys.path[:] = {import_path()!r}; {_ENTRY}; main({line.reading}, {line.writing}, {lifeline})"
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    try:
        worker.process = subprocess.Popen(
            [executable, *flags, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=worker.output,
            stderr=worker.output,
            pass_fds=(line.reading, line.writing, lifeline),
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
    except OSError as error:
        if error.errno in OF_LIMITS:
            raise
        raise OffloadError(f"cannot start a worker: {executable} cannot be run: {error.strerror or error}") from error

    return worker.process.pid


def _fork(worker: Worker, line: Line, lifeline: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    from offload.compiler.worker import serve

    # Until the child has handlers of its own, Ctrl-C would raise in what Python and others do after a fork.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise
    if pid == 0:
        try:
            for number in _ENDING:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.setsid()
            worker.line.close()
            os.close(worker.lifeline)  # or it would keep itself alive
            nothing = os.open(os.devnull, os.O_RDONLY)
            for ours, standard in ((nothing, 0), (worker.output, 1), (worker.output, 2)):
                os.dup2(ours, standard)
            serve(line, lifeline)
        finally:
            os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _after_fork() -> None:
    for worker in alive():
        worker.abandon()


os.register_at_fork(after_in_child=_after_fork)
