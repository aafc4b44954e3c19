"""What object files and archives that go into a library define, as far as that can be told before they are linked."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from offload.compiler.native import native

_ELF, _ARCHIVES = b"\x7fELF", (b"!<arch>\n", b"!<thin>\n")
_MEMBER = struct.Struct("16s12s6s6s8s10s2s")
"""The header of an archive's member: its name first, its size in digits before the end (ar(5))."""
_INDICES = {b"/": ">I", b"/SYM64/": ">Q"}
"""The member with an archive's symbols, which comes first, and what its numbers are."""


def defined_names(paths: Sequence[Path]) -> list[str] | None:
    """The names that the files define for others; None where one of them does not say, as a linker script or an
    archive without an index. What cannot be read or linked is the linker's to refuse."""
    names: list[str] = []
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        found = _of_object(data) if data.startswith(_ELF) else _of_archive(data)
        if found is None:
            return None
        names += found
    return names


def _of_object(data: bytes) -> list[str] | None:
    try:
        elf = native().read_elf(data)
    except native().Failure:
        return None
    # Of a shared library's, a version may be part of the name: name@@VERSION.
    return [symbol.name.partition("@")[0] for symbol in elf.symbols if symbol.is_global and symbol.is_defined]


def _of_archive(data: bytes) -> list[str] | None:
    start = len(_ARCHIVES[0])
    if not data.startswith(_ARCHIVES) or len(data) < start + _MEMBER.size:
        return None
    name, *_, digits, _ = _MEMBER.unpack_from(data, start)
    if name.rstrip() not in _INDICES or not digits.strip().isdigit():
        return None
    index, word = data[start + _MEMBER.size :][: int(digits)], _INDICES[name.rstrip()]
    size = struct.calcsize(word)
    if len(index) < size:
        return None
    (count,) = struct.unpack_from(word, index)
    return [each.decode(errors="replace") for each in index[size * (count + 1) :].split(b"\0")[:count]]
