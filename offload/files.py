"""Files that are written whole or not at all, also where a process is killed or the disk is full; and their names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

from offload.paths import for_system

_SUFFIX = ".offload-tmp"
_LONGEST_NAME = 200
"""Bytes, of the 255 that file systems take: suffixes follow."""


def replace(path: Path, parts: tuple[bytes, ...], mode: int, temporaries: Path | None = None) -> None:
    """Puts a file of these parts, one after the other, in place of ``path`` in one step.

    It is written under another name first, in the folder ``temporaries``, which must be of the same file system
    (default: that of the file). Raises OSError; the old file stays then. Nothing is flushed to the disk: like a
    linker's, the file of a machine that crashes within seconds may be lost.
    """
    folder = path.parent if temporaries is None else temporaries
    prefix = f".{os.fsdecode(os.fsencode(path.name)[:100])}."  # bytes, of which file systems take 255
    remove_stale(folder, prefix if temporaries is None else "")
    handle, temporary = _new_file(folder, prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            with contextlib.suppress(OSError):  # a file system where all files have the same
                os.fchmod(file.fileno(), mode)
            temporary.replace(path)  # while it is locked: what nobody has locked is stale
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def read_whole(path: Path) -> bytes:
    """All of a file. Raises OSError, as `check_end` does, too."""
    with path.open("rb") as file:
        check_end(file.fileno())
        return file.read()


def check_end(handle: int) -> None:
    """Raises OSError for what would be read until memory is full: a device, as /dev/zero. Terminals have an end, pipes
    should, and /dev/null is empty."""
    status = os.fstat(handle)
    if stat.S_ISCHR(status.st_mode) and status.st_rdev != os.makedev(1, 3) and not os.isatty(handle):
        raise OSError(errno.EINVAL, "it is a device, whose bytes have no end")


def remove_stale(folder: Path, prefix: str = "") -> int:
    """Removes what killed processes left of `replace` in a folder; returns how many files. Raises no error."""
    removed = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - names alone, which is what makes it cheap
            if name.startswith(prefix) and name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):
                    removed += _remove_unlocked(folder / name)
    return removed


def _new_file(folder: Path, prefix: str) -> tuple[int, Path]:
    while True:
        path = folder / f"{prefix}{os.urandom(6).hex()}{_SUFFIX}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: nobody can find it stale then
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)  # someone found it before it was locked, and took it for a dead process's


def _remove_unlocked(path: Path) -> bool:
    # The folder may be one where others write: what they put there is not followed, and not waited for.
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)
    return True


def plain_name(text: str) -> str:
    """The name of one file, for any text and in any locale: what would leave its folder becomes ``_``; one that is too
    long loses its middle, for which a hash stands."""
    name = "".join("_" if letter in "/\\" or not letter.isprintable() else letter for letter in text)
    if len(name.encode()) <= _LONGEST_NAME:
        return for_system(name)
    import hashlib  # few names are so long

    data, mark = name.encode(), f"~{hashlib.sha256(text.encode()).hexdigest()[:12]}~"
    begin, end = data[: _LONGEST_NAME // 2], data[-(_LONGEST_NAME // 4) :]
    return for_system(f"{begin.decode(errors='ignore')}{mark}{end.decode(errors='ignore')}")


def free_name(stem: str, suffix: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on: with a number before its suffix where another has it. Symbols may
    differ in what no name of a file has."""
    name, number = f"{stem}{suffix}", 2
    while name in taken:
        name, number = f"{stem}.{number}{suffix}", number + 1
    taken.add(name)
    return name
