"""What earlier builds left among a project's files, of tables that were renamed or are gone since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from offload.errors import OffloadError
from offload.hooks.build import outputs_of
from offload.hooks.generate import is_editable, is_ours


def installed_in_place(files: Iterable[Path]) -> Iterator[Path]:
    """The files of each module that has its loader among ``files`` and was made by an editable installation. They name
    a folder of its machine, so that no package may have them; what offload made otherwise, an author may ship.

    Raises OffloadError."""
    for loader in files:
        if is_editable(text_of_loader(loader)):
            yield from module_of(loader)


def is_made(loader: Path) -> bool:
    """Whether a file is a compiled module, and no editable one. Raises OffloadError."""
    text = text_of_loader(loader)
    return is_ours(text) and not is_editable(text)


def module_of(loader: Path) -> list[Path]:
    """The files of a module that are there."""
    return [path for path in outputs_of(loader.stem, loader.parent) if path.exists()]


def text_of_loader(path: Path) -> str:
    """A loader's text; empty where a file is none. Raises OffloadError."""
    # Editors mark a file that they have open by a link to nowhere, which ends as the file does. With another dot it is
    # no module, but a copy that somebody keeps.
    if path.suffix != ".py" or "." in path.stem or not path.is_file():
        return ""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline() + file.readline()
            return head + file.read() if is_ours(head) else ""
    except OSError as error:
        raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error
