"""Whether a compiled module was built from what is there now. Imports no compiler: editable modules ask at import."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from offload._version import __version__
from offload.errors import OffloadError
from offload.hooks.project import KernelTable, linked_by

_SCHEMA = 1


def _linked(table: KernelTable, targets: Sequence[str]) -> list[tuple[str, str]]:
    """The files that targets link kernels with, and their hashes; none for one that is not there."""
    found = []
    for name in dict.fromkeys(name for spec in targets for name in linked_by(spec)):
        path = table.root / name
        found.append((name, _hash(path) if path.is_file() else ""))
    return found


def _hash(path: Path) -> str:
    """Of a file's contents. Raises OffloadError."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error


def digest_of_table(table: KernelTable, instead: Sequence[str] | None, editable: bool) -> str:
    """A hash over a table, the contents of its files and the targets that replace the declared ones.

    Changed tools do not count, as with any compiled code. Raises OffloadError for a file that cannot be read, but not
    for one that those targets name, which the build then misses."""
    material = [
        _SCHEMA,
        # What is installed as editable is not made again because offload is another one.
        "" if editable else __version__,
        table.module,
        [(name, _hash(table.root / name)) for name in table.files],
        *_linked(table, instead or ()),
        table.targets if instead is None else instead,
        table.optional_targets if instead is None else [],
        sorted(table.options.items()),
        str(table.root) if editable else "",
    ]
    return hashlib.sha256(json.dumps(material).encode()).hexdigest()
