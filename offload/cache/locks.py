"""Locks between processes that the system takes back when their holder dies, however it dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_LONGEST_PAUSE = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


def acquire(path: Path, patience: float) -> int | None:
    """Locks a file, which is made for it, and returns its descriptor; None where another has it for that many seconds.

    Threads of one process exclude each other as processes do. Raises OSError where there can be no such file."""
    deadline, pause = time.monotonic() + patience, 0.001
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if try_lock(handle):
            if is_at(handle, path):
                return handle
            os.close(handle)  # its last holder has removed it: others would lock the new one
            continue
        os.close(handle)
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def release(path: Path, handle: int) -> None:
    """Unlocks what `acquire` locked, and removes the file."""
    with contextlib.suppress(OSError):
        path.unlink()
    os.close(handle)


def try_lock(handle: int, shared: bool = False) -> bool:
    """Locks an open file, at once or not at all; on a file system without locks everybody has them all."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A descriptor that is closed in the end, and with it unlocked; a pipe of that name is not waited for.

    Raises OSError."""
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
