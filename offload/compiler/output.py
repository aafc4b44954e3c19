"""Writing results: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from offload.errors import OffloadError


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
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o777 & ~umask)
        Path(temporary).replace(place)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
