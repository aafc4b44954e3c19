"""A store that several machines use, behind a URL: of a Redis server, or one that fsspec understands.

docs/caching.md says what it promises."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from offload.cache.entry import BadEntry, seal, unseal

_SCHEMA = "1"
_PATIENCE = 30.0
"""Seconds for one entry: a store that takes longer is slower than the compiler. Also for all the slow answers, one
after the other, that an entry is not there, since one was: builds whose time is limited would end in waiting."""
_SLOW = 1.0
"""Seconds. An answer that takes longer is a slow one."""

Result = TypeVar("Result")


class Unreachable(Exception):
    """Why the store is of no use to this process."""


class SharedStore:
    """Entries in the store of a URL. ``secret`` signs them and is asked of those that are read.

    The first failure is to be the last: a process that could not reach the store does not try again (cache.py)."""

    def __init__(self, url: str, *, writes: bool, secret: bytes | None = None) -> None:
        self.url, self.writes, self._secret = url, writes, secret
        self._opened: tuple[int, Any, str] | None = None
        self._in_vain, self._counted_to = 0.0, 0.0
        self._lock = threading.RLock()  # a signal's handler may build, too

    @property
    def shown(self) -> str:
        """The URL for messages."""
        return without_password(self.url)

    def read(self, stage: str, key: str) -> tuple[bytes | None, str]:
        """The payload, and why it was refused if one is there that must not be used. Raises Unreachable."""

        def get(store: Any, root: str) -> bytes | None:
            try:
                return bytes(store.cat_file(f"{root}/{_SCHEMA}/{stage}/{key}"))
            except FileNotFoundError:
                if _is_local(store) and not self.writes and not Path(root).is_dir():
                    raise NotADirectoryError(f"there is no folder {root}") from None  # of a disk that is not mounted
                return None

        begun = time.monotonic()
        data = self._try(get)
        if data is None:
            self._note_miss(begun)
            return None, ""
        try:
            payload = unseal(data, key, self._secret)
        except BadEntry as error:
            return None, str(error)
        with self._lock:
            self._in_vain = 0.0
        return payload, ""

    def write(self, stage: str, key: str, payload: bytes) -> None:
        """Adds an entry, or replaces it; one that is cut is found by its hash when it is read. Raises Unreachable."""
        data = payload + seal(key, payload, self._secret)

        def put(store: Any, root: str) -> None:
            folder = f"{root}/{_SCHEMA}/{stage}"
            store.makedirs(folder, exist_ok=True)
            if not _is_local(store):
                store.pipe_file(f"{folder}/{key}", data)
                return
            # Other stores have an object whole or not at all; of a file, others would read the part that is there.
            part = f"{folder}/.{key}.{os.urandom(6).hex()}"
            try:
                store.pipe_file(part, data)
                os.replace(part, f"{folder}/{key}")  # noqa: PTH105
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(part)  # noqa: PTH108
                raise

        self._try(put)

    def _note_miss(self, begun: float) -> None:
        now = time.monotonic()
        if now - begun <= _SLOW:
            return
        with self._lock:
            # Threads ask at the same time; what others have counted already is no further wait.
            self._in_vain += max(now - max(begun, self._counted_to), 0)
            self._counted_to = max(now, self._counted_to)
            in_vain = self._in_vain
        if in_vain > _PATIENCE:
            raise Unreachable(f"it has taken {in_vain:.1f} seconds to say that it lacks what was asked for")

    def _try(self, work: Callable[[Any, str], Result]) -> Result:
        try:
            return within(_PATIENCE, lambda: work(*self._open()))
        except ImportError as error:
            self._fail(f"{error}; pip install 'offload[shared-cache]' and what the store needs", error)
        except Exception as error:  # whatever the many file systems of fsspec raise
            said = without_password(str(error))  # some quote the URL
            self._fail(f"{type(error).__name__}: {said}" if said else type(error).__name__, error)

    def _fail(self, reason: str, error: Exception) -> NoReturn:
        raise Unreachable(reason) from error

    def _open(self) -> tuple[Any, str]:
        # A file system's threads and connections are not for a process that was forked from its own.
        if self._opened is None or self._opened[0] != os.getpid():
            self._lock = threading.RLock()  # another thread of the parent's may have had it
            self._opened = (os.getpid(), *_file_system(self.url))
        return self._opened[1:]


def _is_local(store: Any) -> bool:
    """Whether the store is a folder."""
    from fsspec.implementations.local import LocalFileSystem

    return isinstance(store, LocalFileSystem)


def _file_system(url: str) -> tuple[Any, str]:
    """What has a store's entries, as fsspec's file systems have files, and the folder that they are in."""
    if url.startswith(("redis://", "rediss://")):
        from offload.cache.redis_store import RedisStore

        return RedisStore(url), "offload"
    from fsspec.core import url_to_fs

    store, root = url_to_fs(url)
    return store, root.rstrip("/")


def without_password(url: str) -> str:
    """The URL of a store, or a text with one, as it may be shown: logs of builds are read by many. What stands behind
    a question mark may be a key, too, with a name or without."""
    # What is no port may have any letters: a slash belongs into no URL as it is, and is in many passwords.
    shown = re.sub(r"(?<=://)([^/?#@\s:]*):(?!\d+[/?#])[^\s'\"<>]*@", r"\1:…@", url)
    return re.sub(r"([?&](?:[^=&#\s'\"]*=)?)[^&#\s'\"]+", r"\1…", shown)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """The result of ``work``, which may raise. Raises TimeoutError where it takes longer; it then goes on, unheeded."""
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    # A daemon, so that a process can end while a store does not answer.
    thread = threading.Thread(target=run, daemon=True, name="offload-shared-cache")
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not outcome:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    with contextlib.suppress(RuntimeError):
        thread.join()
    return outcome[0]
