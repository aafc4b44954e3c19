"""What earlier builds left among a project's files, of tables that were renamed or are gone since."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from offload.hooks.build import outputs_of
from offload.hooks.generate import is_in_place, is_ours

_LIBRARY = ".offload.so"


def made_in_place(files: Iterable[Path]) -> Iterator[Path]:
    """The files of each module that has its loader or its library among ``files`` and was compiled among the sources:
    for their machine alone, so that no package may have them. What was made otherwise, an author may ship."""
    loaders = dict.fromkeys(
        file.with_name(f"{file.name.removesuffix(_LIBRARY)}.py") if file.name.endswith(_LIBRARY) else file
        for file in files
    )
    for loader in loaders:
        if is_in_place(_text(loader)):
            yield from module_of(loader)


def is_made(loader: Path) -> bool:
    """Whether a file is the loader of a compiled module, and of none in place."""
    text = _text(loader)
    return is_ours(text) and not is_in_place(text)


def module_of(loader: Path) -> list[Path]:
    """The files of a module that are there."""
    return [path for path in outputs_of(loader.stem, loader.parent) if path.exists()]


def modules_below(root: Path) -> Iterator[Path]:
    """What may be a module's loader or library, in a folder and below it, but for hidden folders and virtual
    environments."""
    for folder, folders, files in os.walk(root):
        if "pyvenv.cfg" in files and folder != str(root):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(files) if name.endswith((".py", _LIBRARY)))


def _text(path: Path) -> str:
    """A loader's text; empty where a file is none."""
    # Editors mark a file that they have open by a link to nowhere, which ends as the file does. With another dot it is
    # no module, but a copy that somebody keeps.
    if path.suffix != ".py" or "." in path.stem:
        return ""
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline() + file.readline()
            return head + file.read() if is_ours(head) else ""
    except OSError:  # nor can who builds a package put it there
        return ""
