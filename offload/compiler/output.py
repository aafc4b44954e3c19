"""Writing results: whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from offload.compiler.request import Source
from offload.errors import OffloadError
from offload.files import replace

_umask_lock = threading.Lock()


def check_output(path: Path, sources: Sequence[Source]) -> None:
    """Raises OffloadError where the output would replace one of the sources."""
    if any(Path(source.name).resolve() == path.resolve() for source in sources):
        raise OffloadError(f"cannot write {path}: it is one of the sources; name another output")


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file in one step; on failure the old one stays. Raises OffloadError that names the file."""
    if path.exists() and not path.is_file():
        raise OffloadError(f"cannot write {path}: it is there and no regular file; name another output")
    place = path.resolve()  # a link stays a link: the file behind it is replaced
    with _umask_lock:  # or a thread would read the 0 of another, and leave it
        umask = os.umask(0)
        os.umask(umask)
    try:
        replace(place, (data,), 0o777 & ~umask)
    except OSError as error:
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
