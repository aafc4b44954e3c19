"""The entries in a folder: read with a check, written whole, removed only where nobody is loading them."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from offload.cache import locks
from offload.cache.entry import BadEntry, seal, unseal
from offload.cache.folder import LOCKS, STAGES, TEMPORARIES, owned
from offload.files import remove_stale, replace

_KEY = "[0-9a-f]{64}"
_ENTRIES = {stage: re.compile(_KEY + (r"\.so" if stage == "library" else "")) for stage in STAGES}
_LOCK = re.compile(f"(?:{'|'.join(STAGES)})-{_KEY}")


class Store:
    """The entries of a folder that `folder.prepare` made. Any number of processes and threads may use it at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, stage: str, key: str) -> Path:
        """Where an entry lies, if it is there."""
        return self.folder / stage / (f"{key}.so" if stage == "library" else key)

    def lock(self, stage: str, key: str) -> Path:
        """The file to lock for whoever makes an entry."""
        return self.folder / LOCKS / f"{stage}-{key}"

    def read(self, stage: str, key: str) -> bytes | None:
        """The payload; None where there is none, or a damaged one, which is removed."""
        with self.held(stage, key) as payload:
            return payload

    @contextlib.contextmanager
    def held(self, stage: str, key: str) -> Iterator[bytes | None]:
        """The payload of an entry that keeps its name inside of the ``with``; None as with :meth:`read`."""
        path = self.path(stage, key)
        with contextlib.ExitStack() as stack:
            try:
                handle = stack.enter_context(locks.opened(path, os.O_RDONLY | os.O_NOFOLLOW))
                locked = locks.try_lock(handle, shared=True)
                found = _payload(handle, key)
                # Somebody may be removing it, or have done so.
                payload = found if locked and locks.is_at(handle, path) else None
            except OSError:  # not there; where it cannot be read, it is not there either
                payload = None
            except BadEntry:
                payload = None
                stack.close()  # or our own lock would protect it
                with contextlib.suppress(OSError):
                    remove_unused(path)
            yield payload

    def write(self, stage: str, key: str, payload: bytes) -> int:
        """Adds an entry, or replaces it, and returns its size in bytes. Raises OSError; what was there stays then."""
        trailer = seal(key, payload)
        self._remove_locks()
        # Nothing is flushed to the disk: what a crash of the machine cuts or empties is found by its hash.
        replace(self.path(stage, key), (payload, trailer), 0o600, self.folder / TEMPORARIES)
        return len(payload) + len(trailer)

    def entries(self) -> list[Entry]:
        """What there is, in no order.

        Files of other names are not ours to count and remove: OFFLOAD_CACHE_DIR may name any folder."""
        found = []
        for stage in STAGES:
            with contextlib.suppress(OSError), os.scandir(self.folder / stage) as listing:
                for item in filter(lambda item: _ENTRIES[stage].fullmatch(item.name), listing):
                    with contextlib.suppress(OSError):  # another process may just have removed it
                        status = item.stat(follow_symlinks=False)
                        found.append(Entry(stage, Path(item.path), status.st_size, status.st_mtime))
        return found

    def remove_leftovers(self) -> int:
        """Removes what killed processes left besides entries, and returns how many files that were."""
        return remove_stale(self.folder / TEMPORARIES) + self._remove_locks()

    def _remove_locks(self) -> int:
        """Removes the locks of processes that are gone, and returns how many."""
        removed = 0
        with contextlib.suppress(OSError):
            for name in filter(_LOCK.fullmatch, os.listdir(self.folder / LOCKS)):  # noqa: PTH208 - names alone
                with contextlib.suppress(OSError):
                    path = self.folder / LOCKS / name
                    handle = locks.acquire(path, patience=0)
                    if handle is not None:
                        locks.release(path, handle)
                        removed += 1
        return removed


class Entry:
    """A file of a store: stage, path, size in bytes, and when it was last used, in seconds since 1970."""

    __slots__ = ("path", "size", "stage", "used")

    def __init__(self, stage: str, path: Path, size: int, used: float) -> None:
        self.stage, self.path, self.size, self.used = stage, path, size, used


def remove_unused(path: Path) -> bool:
    """Removes an entry that nobody holds. Code that is loaded already stays mapped without its name.

    Raises OSError where it may not be removed."""
    try:
        with locks.opened(path, os.O_RDWR | os.O_NOFOLLOW) as handle:
            if not locks.try_lock(handle) or not locks.is_at(handle, path):
                return False
            path.unlink()
    except FileNotFoundError:  # another process has removed it
        return False
    return True


def _payload(handle: int, key: str) -> bytes:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        raise BadEntry("it is no regular file")
    if not owned(status) or status.st_mode & 0o022:
        raise BadEntry("others could have written it")
    with open(handle, "rb", closefd=False) as file:
        data = file.read()
    payload = unseal(data, key)
    with contextlib.suppress(OSError):  # in a read-only folder nobody looks for what was not used for long
        os.utime(handle)
    return payload
