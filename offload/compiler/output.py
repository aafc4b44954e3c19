"""Writing results: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from offload.compiler.request import Source
from offload.errors import OffloadError

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
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        with _umask_lock:  # or a thread would read the 0 of another, and leave it
            umask = os.umask(0)
            os.umask(umask)
        Path(temporary).chmod(0o777 & ~umask)
        Path(temporary).replace(place)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
