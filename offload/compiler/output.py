"""Writing results: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path

from offload.compiler.request import BuildRequest
from offload.errors import OffloadError
from offload.files import replace
from offload.paths import for_system, readable

_umask_lock = threading.Lock()


def check_output(path: Path, request: BuildRequest, makes_folder: bool = False) -> None:
    """Raises OffloadError where the output would replace what it is made of or cannot be written, as far as that can
    be told before there is something to write. ``makes_folder``: the folder need not be there."""
    check_no_source(path, request)
    place = _resolved(path)
    _check_kind(path)
    try:
        with contextlib.suppress(FileNotFoundError):
            place.lstat()  # its name may be too long
        _check_folder(place.parent, makes_folder)
    except OSError as error:
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error


def check_output_folder(folder: Path) -> None:
    """Raises OffloadError where the folder is not there and cannot be made, or nothing may be added to it."""
    try:
        _check_folder(_resolved(folder), True)
    except OSError as error:
        raise OffloadError(f"cannot write into {folder}: {error.strerror or error}") from error


def check_no_source(path: Path, request: BuildRequest) -> None:
    """Raises OffloadError where the output would replace a file that the build reads."""
    own = readable(str(_resolved(path)))
    # Sources have readable names, which are UTF-8 whatever the locale has for names of files.
    sources = [Path(for_system(source.name)) for source in request.sources]
    linked = [*request.link, *request.objects, *(Path(name) for target in request.targets for name in target.link)]
    for what, names in (("sources", sources), ("files that are linked", linked)):
        if any(readable(str(_resolved(name))) == own for name in names):
            raise OffloadError(f"cannot write {path}: it is one of the {what}; name another output")


def _resolved(path: Path) -> Path:
    """Where a path leads to; the path itself where that cannot be told."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle are a RuntimeError
        return path


def _check_kind(path: Path) -> None:
    with contextlib.suppress(OSError):  # what cannot be looked at cannot be written either, which says why
        # Not where the path leads to: /dev/stdout and a shell's >(…) lead to pipes, whose names lead nowhere.
        if not stat.S_ISREG(path.stat().st_mode):
            raise OffloadError(f"cannot write {path}: it is there and no regular file; name another output")


def _check_folder(folder: Path, made: bool) -> None:
    while made and not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not stat.S_ISDIR(folder.stat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        number = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(number, os.strerror(number))


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file in one step; on failure the old one stays. Raises OffloadError that names the file."""
    place = _resolved(path)  # a link stays a link: the file behind it is replaced
    _check_kind(path)
    try:
        replace(place, (data,), 0o777 & ~_umask())
    except OSError as error:
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error


def _umask() -> int:
    """The bits that new files do not get. To ask the system for them is to set them: what other threads make at that
    moment would be everybody's to write."""
    with contextlib.suppress(OSError), open("/proc/self/status") as file:  # noqa: PTH123 -- pathlib is no shorter
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    with _umask_lock:  # or a thread would read the 0 of another, and leave it
        umask = os.umask(0)
        os.umask(umask)
    return umask
