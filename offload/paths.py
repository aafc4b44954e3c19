"""Files that this installation carries besides Python code, and names of files as text."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from offload.errors import LinkError, OffloadError


def package_file(relative: str) -> Path:
    """A file of this installation (an editable one has two roots). Raises LinkError where it is missing."""
    import offload

    for root in offload.__path__:
        candidate = Path(root) / relative
        if candidate.exists():
            return candidate
    raise LinkError(f"this installation of offload lacks {relative}; reinstall it")


def import_path() -> list[str]:
    """Where modules come from, as Python reads sys.path: it passes over what is no text there, as a Path."""
    return [place for place in sys.path if isinstance(place, str)]


def named(path: str | os.PathLike[str]) -> Path:
    """A path that somebody gave. Raises OffloadError for a text that can be no file's name, TypeError for what is no
    path."""
    made = Path(path)
    if path == "":  # which a Path takes for the current folder
        raise OffloadError("the name of a file is empty: name one")
    try:
        if b"\0" not in os.fsencode(made):
            return made
    except UnicodeEncodeError:
        pass
    raise OffloadError(f"{str(made)!r} is no name of a file: it has a character that file names cannot have")


def output_named(path: str | os.PathLike[str]) -> Path:
    """The path of a library that is to be written. Raises as `named` does, and for the name of a folder."""
    if str(path).endswith(os.sep):  # which a Path forgets
        raise OffloadError(f"cannot write {path}: this is the name of a folder; name the library in it")
    return named(path)


def readable(name: str) -> str:
    """A name as MLIR and LLVM take it, who write UTF-8: other bytes, which a file's name may have, are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def for_system(text: str) -> str:
    """A text of ours as a name that the system takes: in UTF-8, also where the locale has no such letters."""
    return os.fsdecode(text.encode("utf-8", "surrogateescape"))


def folder_of_build() -> str:
    """The current folder, as line information names it. Raises OffloadError where it is gone."""
    try:
        return readable(str(Path.cwd()))
    except OSError as error:
        raise OffloadError(
            f"line information names the folder of the build, and the current one cannot be had: {error.strerror}"
        ) from error
