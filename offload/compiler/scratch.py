"""Folders for temporary files, of workers and of libraries that no cache keeps: removed by whoever made them, and by
`offload cache prune` after a kill -9."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from offload.cache.locks import is_at, opened
from offload.errors import OffloadError

_WORKER, _UNCACHED = "offload-worker-", "offload-uncached-"

_kept: tuple[int, str, contextlib.ExitStack] | None = None
"""The process that has a folder of `kept_folder`, the folder, and what holds its lock."""


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A worker's folder, which the parent removes, since the worker may not live to do it. Raises OffloadError."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_writable(_WORKER))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def kept_folder() -> str:
    """A new folder that goes when the process ends. Raises OffloadError.

    All of them are in one, whose lock takes one descriptor, however many they are."""
    global _kept
    if _kept is None or _kept[0] != os.getpid():  # a fork's are its own: its parent's go with the parent
        stack = contextlib.ExitStack()
        _kept = os.getpid(), stack.enter_context(_writable(_UNCACHED)), stack
        atexit.register(_remove_kept, *_kept[:2])
        if (processes := sys.modules.get("multiprocessing.util")) is not None:  # whose forks end without atexit
            processes.Finalize(None, _remove_kept, args=_kept[:2], exitpriority=0)
    with _told_where():
        return tempfile.mkdtemp(dir=_kept[1])


def remove_kept() -> None:
    """Removes what `kept_folder` gave this process, before its end."""
    global _kept
    if _kept is not None and _kept[0] == os.getpid():
        (_, folder, stack), _kept = _kept, None
        shutil.rmtree(folder, ignore_errors=True)
        stack.close()


def _remove_kept(owner: int, folder: str) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _writable(prefix: str) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        with _told_where():
            folder = stack.enter_context(_locked(prefix))
        yield folder


@contextlib.contextmanager
def _told_where() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = f" in {os.path.dirname(error.filename)}" if error.filename else ""  # noqa: PTH120
        raise OffloadError(
            f"cannot write temporary files{place}: {error.strerror}; make room there, or set TMPDIR to another folder"
        ) from error


@contextlib.contextmanager
def _locked(prefix: str) -> Iterator[str]:
    """A new folder, locked as long as its owner lives: `remove_abandoned`, and systemd-tmpfiles, leave it alone."""
    while True:
        folder = tempfile.mkdtemp(prefix=prefix)
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(opened(Path(folder), os.O_RDONLY))
            except FileNotFoundError:
                continue
            except OSError:  # no descriptor is left
                shutil.rmtree(folder, ignore_errors=True)
                raise
            with contextlib.suppress(OSError):  # a file system without locks: nobody takes it for abandoned there
                fcntl.flock(handle, fcntl.LOCK_EX)
            if is_at(handle, Path(folder)):
                yield folder
                return
        # Someone found it before it was locked, and took it for a dead process's.


def remove_abandoned() -> int:
    """Removes this user's folders whose owners were killed, and returns how many. Raises no error."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as listing:
        for item in listing:
            if item.name.startswith((_WORKER, _UNCACHED)):
                with contextlib.suppress(OSError):  # it is in use, or just removed by its owner
                    removed += _remove(Path(item.path))
    return removed


def _remove(folder: Path) -> bool:
    # Others write among the temporary files, too: a link that they put there is not followed.
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as handle:
        if os.fstat(handle).st_uid != os.geteuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    return True
