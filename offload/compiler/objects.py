"""What object files and archives that go into a library define, as far as that can be told before they are linked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload.compiler.native import native

_ELF = b"\x7fELF"


def defined_names(paths: Sequence[Path]) -> list[str] | None:
    """The names that the files define for others; None where one of them does not say, as a linker script or an
    archive without an index. What cannot be read or linked is the linker's to refuse."""
    names: list[str] = []
    for path in paths:
        try:
            data = path.read_bytes()
            names += _of_object(data) if data.startswith(_ELF) else native().archive_symbols(data)
        except (OSError, native().Failure):
            return None
    return names


def _of_object(data: bytes) -> list[str]:
    symbols = native().read_elf(data).symbols
    # Of a shared library's, a version may be part of the name: name@@VERSION.
    return [symbol.name.partition("@")[0] for symbol in symbols if symbol.is_global and symbol.is_defined]
