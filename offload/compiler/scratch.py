"""Workers' folders for temporary files: removed by whoever made them, and by `offload cache prune` after a kill -9."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from offload.cache.locks import is_at, opened
from offload.errors import OffloadError

_PREFIX = "offload-worker-"


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A worker's folder, which the parent removes, since the worker may not live to do it. Raises OffloadError."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(_locked())
        except OSError as error:
            place = f" in {os.path.dirname(error.filename)}" if error.filename else ""  # noqa: PTH120
            raise OffloadError(
                f"cannot write temporary files{place}: {error.strerror}; make room there, or set TMPDIR to another "
                "folder"
            ) from error
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


@contextlib.contextmanager
def _locked() -> Iterator[str]:
    """A new folder, locked as long as its owner lives: `remove_abandoned`, and systemd-tmpfiles, leave it alone."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
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
            if item.name.startswith(_PREFIX):
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
