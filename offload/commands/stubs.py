"""``offload stubs``: the types of an artifact's functions and kernels, printed or written beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from offload import artifact
from offload.errors import OffloadError
from offload.runtime.stubs import library_stub


def stubs(options: argparse.Namespace) -> int:
    """Writes the file, or prints it; returns the exit code. Raises ArtifactError, OffloadError."""
    found = artifact.read(options.file)
    text = library_stub(found.path.name, found.metadata)
    if options.output in (None, "-"):
        print(text, end="")
        return 0
    path = Path(options.output)
    try:
        if path.exists() and path.samefile(found.path):
            raise OffloadError(f"cannot write {path}: it is the library; name another output")
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OffloadError(f"cannot write {path}: {error.strerror or error}") from error
    return 0
