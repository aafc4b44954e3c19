"""What files hold, as hashes that are remembered: a file whose stamp is the same is not read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from offload.cache.locks import opened
from offload.errors import OffloadError
from offload.files import check_end, replace

_YOUNG = 2.0
"""Seconds. A file that changed later than that before it was read may change once more with the same stamp."""
_MOST = 4096
_LARGE = 1 << 24


class Contents:
    """The hashes of files, and facts that follow from files, kept in a file of their own; where it cannot be read or
    written, everything is found out anew."""

    def __init__(self, kept: Path) -> None:
        self._kept, self._changed = kept, False
        self._known: dict[str, list[object]] = {}
        with contextlib.suppress(OSError, ValueError, RecursionError), opened(kept, os.O_RDONLY) as handle:
            read = json.loads(os.read(handle, os.fstat(handle).st_size))
            if isinstance(read, dict):
                self._known = read

    def digest(self, path: Path) -> str:
        """The hash of a file. Raises OffloadError for one that cannot be read."""
        try:
            young, stamp = _stamp(path)
            return str(self._remembered(f"file {path}", stamp, lambda: _digest(path), keep=not young))
        except OSError as error:
            raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error

    def fact(self, name: str, follows_from: object, find: Callable[[], object]) -> object:
        """What ``find`` returned (something that JSON has) when it was last called with the same ``follows_from``."""
        return self._remembered(f"fact {name}", json.dumps(follows_from), find)

    def _remembered(self, name: str, stamp: str, find: Callable[[], object], keep: bool = True) -> object:
        known = self._known.get(name)
        if isinstance(known, list) and len(known) == 2 and known[0] == stamp:
            return known[1]
        found = find()
        if keep:
            self._known[name] = [stamp, found]
            self._changed = True
        return found

    def save(self) -> None:
        """Keeps what was found out, if anything was."""
        if not self._changed:
            return
        if len(self._known) > _MOST:  # of files that are gone; the others are found again
            self._known.clear()
        with contextlib.suppress(OSError):
            replace(self._kept, (json.dumps(dict(self._known)).encode(),), 0o600)
        self._changed = False


def stamp(path: Path) -> str:
    """What changes when a file is replaced or written. Raises OSError."""
    return _stamp(path)[1]


def _stamp(path: Path) -> tuple[bool, str]:
    status = path.stat()
    words = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    young = time.time() - max(status.st_mtime, status.st_ctime) < _YOUNG
    return young, ":".join(map(str, words))


def _digest(path: Path) -> str:
    """SHA-256; for a large ELF file its size and the hash that the linker made of it: LLVM has 150 megabytes."""
    with path.open("rb") as file:
        check_end(file.fileno())
        size = os.fstat(file.fileno()).st_size
        if size >= _LARGE and (build_id := _build_id(file.read(1 << 16))):
            return f"{size}:{build_id}"
        file.seek(0)
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()


_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3


def _build_id(head: bytes) -> str:
    """The GNU build id from the first bytes of a 64-bit little-endian ELF file; empty where there is none."""
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
        return ""
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for at in range(table, table + size * count, size or 1):
        if at + 56 > len(head):
            return ""
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", head, at)
        if kind == _PT_NOTE and start + length <= len(head) and (found := _note(head[start : start + length])):
            return found
    return ""


def _note(notes: bytes) -> str:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        at += 12
        name = notes[at : at + name_size]
        at += (name_size + 3) & ~3
        if kind == _NT_GNU_BUILD_ID and name == b"GNU\0":
            return notes[at : at + size].hex()
        at += (size + 3) & ~3
    return ""
