"""Writing results: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from offload.compiler.request import Source
from offload.errors import OffloadError
from offload.files import replace
from offload.paths import readable

_umask_lock = threading.Lock()


def check_output(path: Path, sources: Sequence[Source]) -> None:
    """Raises OffloadError where the output would replace one of the sources."""
    own = _resolved(Path(readable(str(path))))
    if any(_resolved(Path(source.name)) == own for source in sources):
        raise OffloadError(f"cannot write {path}: it is one of the sources; name another output")


def _resolved(path: Path) -> Path:
    """Where a path leads to; the path itself where that cannot be told."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle are a RuntimeError
        return path


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file in one step; on failure the old one stays. Raises OffloadError that names the file."""
    place = _resolved(path)  # a link stays a link: the file behind it is replaced
    with contextlib.suppress(OSError):  # what cannot be looked at cannot be written either, which says why
        if not stat.S_ISREG(place.stat().st_mode):
            raise OffloadError(f"cannot write {path}: it is there and no regular file; name another output")
    with _umask_lock:  # or a thread would read the 0 of another, and leave it
        umask = os.umask(0)
        os.umask(umask)
    try:
        replace(place, (data,), 0o777 & ~umask)
    except OSError as error:
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
