"""The cache as the compiler sees it: the local store, then the shared one, and a warning where either is of no use."""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from offload.cache import locks, upkeep
from offload.cache.folder import Unusable, prepare
from offload.cache.ledger import Ledger
from offload.cache.store import Store
from offload.config import cache_folder, cache_limit, shared_cache
from offload.errors import CacheWarning, warn

if TYPE_CHECKING:
    from offload.cache.shared import SharedStore

PATIENCE = 300.0
"""Seconds to wait for another process that makes the same. Then it is made twice: locks save work, no more."""
_MOMENT = 1.0
"""Seconds after which it is told that there is such a process: it may be one that was stopped with Ctrl-Z."""

_said: set[str] = set()
_given_up: set[str] = set()


class Cache:
    """Payloads by stage and key. What fails in it is said once, as a CacheWarning, and never raised."""

    def __init__(self, local: Store | None, shared: SharedStore | None, limit: int) -> None:
        self.local, self._shared, self._limit = local, shared, limit
        self._ledger = Ledger(local.folder) if local else None

    def claim(self, stage: str, key: str, waiting: Callable[[], None] = lambda: None) -> Claim:
        """The payload, or else the right to make it: one process does while the others wait for it.

        ``waiting`` is called where that takes more than a moment."""
        if (payload := self._read_local(stage, key)) is not None:
            self._count("hit", stage)
            return Claim(self, stage, key, payload)
        handle, waited = self._lock(stage, key, waiting)
        claim = Claim(self, stage, key, None, handle)
        try:
            if waited:
                claim.found = self._read_local(stage, key)
            if claim.found is None:
                claim.found = self._read_shared(stage, key)
        except BaseException:
            claim.release()
            raise
        if claim.found is not None:
            claim.release()
        self._count("miss" if claim.found is None else "hit", stage)
        return claim

    @contextlib.contextmanager
    def file(self, stage: str, key: str) -> Iterator[tuple[Path, bytes] | None]:
        """The file that begins with the payload, there inside of the ``with``, and the payload; None without one."""
        if self.local is None:
            yield None
            return
        with self.local.held(stage, key) as payload:
            if payload is not None:
                self._count("hit", stage)
            yield None if payload is None else (self.local.path(stage, key), payload)

    def write(self, stage: str, key: str, payload: bytes) -> None:
        """Keeps a payload here and, where that is asked for, in the shared store."""
        self._write_local(stage, key, payload)
        shared = self._shared
        if shared is not None and shared.writes and not is_given_up(shared.url):
            from offload.cache.shared import Unreachable

            try:
                shared.write(stage, key, payload)
            except Unreachable as error:
                self._give_up(shared, error)

    def _read_local(self, stage: str, key: str) -> bytes | None:
        return self.local.read(stage, key) if self.local else None

    def _write_local(self, stage: str, key: str, payload: bytes) -> None:
        if self.local is None or self._ledger is None:
            return
        try:
            written = self.local.write(stage, key, payload)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = "make room there ('offload cache prune'), or " if full else ""
            warn_once(
                f"what was compiled is not kept in the cache folder {self.local.folder}: {error.strerror or error}; "
                f"{remedy}set OFFLOAD_CACHE_DIR to another folder"
            )
            return
        upkeep.add_bytes(self.local, self._ledger, written, self._limit)

    def _read_shared(self, stage: str, key: str) -> bytes | None:
        shared = self._shared
        if shared is None or is_given_up(shared.url):
            return None
        from offload.cache.shared import Unreachable

        try:
            payload, refused = shared.read(stage, key)
        except Unreachable as error:
            self._give_up(shared, error)
            return None
        if refused:
            warn_once(f"an entry of the shared cache {shared.shown} is not used ({stage}/{key}): {refused}")
        if payload is not None:
            self._write_local(stage, key, payload)
        return payload

    def _give_up(self, shared: SharedStore, error: Exception) -> None:
        if not is_given_up(shared.url):  # by another thread, whose entry has another name, which some errors tell
            give_up(shared.url)
            warn_once(f"the shared cache {shared.shown} is not used: {error}")

    def _lock(self, stage: str, key: str, waiting: Callable[[], None]) -> tuple[int | None, bool]:
        """The lock, if there can be one, and whether another process had it."""
        if self.local is None:
            return None, False
        path = self.local.lock(stage, key)
        try:
            handle = locks.acquire(path, 0)
            if handle is not None:
                return handle, False
            handle = locks.acquire(path, _MOMENT)
            if handle is None:
                waiting()
                handle = locks.acquire(path, PATIENCE)
            return handle, True
        except OSError:  # a read-only folder; writing the entry will tell
            return None, False

    def _count(self, event: str, stage: str) -> None:
        if self._ledger is not None:
            self._ledger.count(event, stage)


class Claim:
    """A payload that was found, or the right to make it, which must end in `keep` or `release`, in any thread."""

    def __init__(self, cache: Cache, stage: str, key: str, found: bytes | None, handle: int | None = None) -> None:
        self.found = found
        self._cache, self._stage, self._key, self._handle = cache, stage, key, handle

    def keep(self, payload: bytes) -> None:
        """Gives the payload to whoever asks for it next."""
        try:
            self._cache.write(self._stage, self._key, payload)
        finally:
            self.release()

    def refuse(self, what: str) -> None:
        """What was found is not used, and made anew; ``what`` says what it is."""
        warn_once(f"an entry of the cache is not used ({self._stage}/{self._key}): it is {what}")

    def __del__(self) -> None:
        # A build that was interrupted, in a process that lives on, would keep others waiting.
        self.release()

    def release(self) -> None:
        """Lets others make it. Does nothing where that is so already."""
        handle, self._handle = self._handle, None
        if handle is not None and self._cache.local is not None:
            locks.release(self._cache.local.lock(self._stage, self._key), handle)


def open_cache() -> Cache | None:
    """The cache of the settings as they are now; None where it is switched off. Raises UsageError for wrong ones."""
    folder = cache_folder()
    if folder is None:
        return None
    shared = shared_cache()
    store = None
    try:
        prepare(folder)
        store = Store(folder)
    except Unusable as error:
        warn_once(f"the cache folder {folder} is not used: {error}")
    if store is None and shared is None:
        return None
    return Cache(store, _shared_store(*shared) if shared else None, cache_limit())


@functools.cache
def _shared_store(url: str, writes: bool, secret: bytes | None) -> SharedStore:
    """One for a process, with its connections."""
    from offload.cache.shared import SharedStore  # it has much to import, and few caches are shared

    return SharedStore(url, writes=writes, secret=secret)


def give_up(url: str) -> None:
    """Leaves the shared cache of a URL alone: this process, or a worker of its, found it to be of no use."""
    _given_up.add(url)


def is_given_up(url: str) -> bool:
    """Whether this process found the shared cache of a URL to be of no use."""
    return url in _given_up


def warn_once(text: str) -> None:
    """A CacheWarning, unless this process has had the same one."""
    if text not in _said:
        _said.add(text)
        warn(text, CacheWarning)
