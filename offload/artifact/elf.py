"""ELF64 little-endian files: a reader that checks every bound, and a writer of small relocatable objects.

Layouts: the System V gABI, chapters 4 and 5 (https://gabi.xinuos.com).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from offload.errors import ArtifactError

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 0, 1, 2, 3, 6, 8, 11
SHF_ALLOC, SHF_GNU_RETAIN = 2, 0x200000
PT_LOAD = 1
DT_NULL, DT_NEEDED = 0, 1
ET_REL, ET_DYN = 1, 3
STB_LOCAL, STB_GLOBAL = 0, 1
STT_FUNC = 2
STV_DEFAULT, STV_HIDDEN = 0, 2
ELFOSABI_NONE, ELFOSABI_GNU = 0, 3

_ZIP, _ARCHIVE = b"PK\x03\x04", "; it is a zip file, as wheels are: unpack it, and name a library that was in it"
_BYTECODE = b"ML\xefR"
_PROGRAM = "; it is a program of MLIR: offload build makes a library of it, offload.compile in Python"

# e_machine by the name that platform.machine() gives.
MACHINES = {"x86_64": 62, "AMD64": 62, "aarch64": 183, "arm64": 183, "riscv64": 243, "ppc64le": 21}

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")


def machine_name(machine: int) -> str:
    """The name of an e_machine number: "x86_64", or "machine 77" where this module has none."""
    return next((name for name, number in MACHINES.items() if number == machine), f"machine {machine}")


class Section(NamedTuple):
    """One section header; ``offset`` and ``size`` are bytes in the file (no bytes for SHT_NOBITS)."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    alignment: int


class ElfFile:
    """An ELF64 little-endian file in memory.

    The constructor checks the header and every section and load segment against the length of ``data``; a
    library that passes cannot make dlopen touch a page past its end (that would be SIGBUS, not an error).
    Raises `ArtifactError` that names ``name``, what was expected and what is there."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        if data[:4] != b"\x7fELF"[: len(data[:4])] or not data:
            program = data[:4] == _BYTECODE or name.endswith(".mlir")
            hint = _ARCHIVE if data[:4] == _ZIP else _PROGRAM if program else ""
            raise ArtifactError(
                f"{name}: not an ELF file: it starts with {data[:4].hex(' ') or 'nothing'}, "
                f"a shared library starts with 7f 45 4c 46{hint}"
            )
        fields = _HEADER.unpack(self._bytes(0, _HEADER.size, "the ELF header"))
        ident: bytes = fields[0]
        if ident[4] != 2 or ident[5] != 1 or ident[6] != 1:
            raise ArtifactError(
                f"{name}: expected a 64-bit little-endian ELF file of version 1, found class "
                f"{ident[4]}, byte order {ident[5]}, version {ident[6]}"
            )
        self.type: int = fields[1]
        self.machine: int = fields[2]
        self._segments(fields[5], fields[9], fields[10])
        self.sections = self._sections(fields[6], fields[11], fields[12], fields[13])

    def section(self, name: str) -> Section | None:
        """The first section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def contents(self, section: Section) -> bytes:
        """The bytes of a section; empty for SHT_NOBITS."""
        if section.type == SHT_NOBITS:
            return b""
        return self._bytes(section.offset, section.size, f"section {section.name}")

    def needed(self) -> list[str]:
        """The DT_NEEDED entries of the dynamic section, in file order; empty where there is no such
        section."""
        entries, strings = self._table(SHT_DYNAMIC, "the dynamic section", _DYNAMIC)
        result: list[str] = []
        for tag, value in entries:
            if tag == DT_NULL:
                break
            if tag == DT_NEEDED:
                result.append(self._string(strings, value, "the dynamic string table"))
        return result

    def exported_functions(self) -> list[str]:
        """The functions that programs and dlsym find, in file order."""
        entries, strings = self._table(SHT_DYNSYM, "the dynamic symbol table", _SYMBOL)
        return [
            self._string(strings, name, "the dynamic string table")
            for name, info, _, section, _, _ in entries
            if info & 0xF == STT_FUNC and info >> 4 != STB_LOCAL and section != 0
        ]

    def _table(self, kind: int, what: str, entry: struct.Struct) -> tuple[list[tuple[Any, ...]], bytes]:
        """The entries of the first section of a type, none where there is no such section, and their strings."""
        section = next((section for section in self.sections if section.type == kind), None)
        if section is None:
            return [], b""
        if not 0 < section.link < len(self.sections):
            raise ArtifactError(
                f"{self.name}: {what} names string table {section.link}, the file has "
                f"sections 1 to {len(self.sections) - 1}"
            )
        data = self.contents(section)
        strings = self.contents(self.sections[section.link])
        return list(entry.iter_unpack(data[: len(data) // entry.size * entry.size])), strings

    def _bytes(self, offset: int, size: int, what: str) -> bytes:
        end = offset + size
        if end > len(self.data):
            raise ArtifactError(
                f"{self.name}: the file is truncated: {what} should end at byte {end}, the file has "
                f"{len(self.data)} bytes; build or copy it again"
            )
        return self.data[offset:end]

    def _string(self, table: bytes, offset: int, what: str) -> str:
        end = table.find(b"\0", offset) if offset < len(table) else -1
        if end < 0:
            raise ArtifactError(
                f"{self.name}: a name at byte {offset} of {what} does not end inside its {len(table)} bytes"
            )
        return table[offset:end].decode("utf-8", "backslashreplace")

    def _segments(self, offset: int, entry_size: int, count: int) -> None:
        if count == 0:
            return
        if entry_size != _SEGMENT.size:
            raise ArtifactError(f"{self.name}: expected program headers of {_SEGMENT.size} bytes, found {entry_size}")
        for fields in _SEGMENT.iter_unpack(self._bytes(offset, entry_size * count, "the program header table")):
            if fields[0] == PT_LOAD:
                self._bytes(fields[2], fields[5], "a load segment")

    def _sections(self, offset: int, entry_size: int, count: int, names_index: int) -> list[Section]:
        if offset == 0:
            raise ArtifactError(
                f"{self.name}: the file has no section headers; a stripping tool may have removed "
                "them, build it again without it"
            )
        if entry_size != _SECTION.size:
            raise ArtifactError(f"{self.name}: expected section headers of {_SECTION.size} bytes, found {entry_size}")
        table = self._bytes(offset, entry_size * max(count, 1), "the section header table")
        if count == 0:  # More than 0xfeff sections: the count stands in the first header's size field.
            count = _SECTION.unpack_from(table)[5]
            table = self._bytes(offset, entry_size * count, "the section header table")
        if names_index == 0xFFFF and count:
            names_index = _SECTION.unpack_from(table)[6]
        headers = list(_SECTION.iter_unpack(table))
        if not names_index < len(headers):
            raise ArtifactError(
                f"{self.name}: expected the section name table among sections 0 to "
                f"{len(headers) - 1}, found {names_index}"
            )
        for index, header in enumerate(headers):
            if header[1] not in (SHT_NULL, SHT_NOBITS):
                self._bytes(header[4], header[5], f"section {index}")
        strings = self._bytes(headers[names_index][4], headers[names_index][5], "the section name table")
        return [
            Section(
                self._string(strings, header[0], "the section name table") if header[1] else "",
                header[1],
                header[2],
                header[3],
                header[4],
                header[5],
                header[6],
                header[8],
            )
            for header in headers
        ]


class NewSection(NamedTuple):
    """A section to write; ``alignment`` is a power of two, in bytes."""

    name: str
    type: int
    flags: int
    alignment: int
    data: bytes


class NewSymbol(NamedTuple):
    """A symbol to write; ``section`` counts from 0 in the sequence of sections, ``offset`` is inside that
    section."""

    name: str
    section: int
    offset: int
    size: int
    binding: int = STB_GLOBAL
    visibility: int = STV_DEFAULT


class _Strings:
    """A string table under construction."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset if text else 0


def relocatable_object(sections: Sequence[NewSection], symbols: Iterable[NewSymbol], machine: int) -> bytes:
    """An ELF64 ET_REL file with these sections and symbols (of type STT_OBJECT), in the order given.

    Adds ``.note.GNU-stack``, so that linkers do not make the stack executable. Equal inputs give equal bytes.
    """
    everything = [*sections, NewSection(".note.GNU-stack", SHT_PROGBITS, 0, 1, b"")]
    strings = _Strings()
    ordered = sorted(symbols, key=lambda symbol: symbol.binding != STB_LOCAL)  # Locals come first: gABI, sh_info.
    symbol_table = bytearray(_SYMBOL.size)
    for symbol in ordered:
        symbol_table += _SYMBOL.pack(
            strings.add(symbol.name),
            symbol.binding << 4 | 1,
            symbol.visibility,
            symbol.section + 1,
            symbol.offset,
            symbol.size,
        )
    locals_count = 1 + sum(symbol.binding == STB_LOCAL for symbol in ordered)

    # SHF_GNU_RETAIN is a GNU extension, which the header's OS ABI has to say.
    abi = ELFOSABI_GNU if any(section.flags & SHF_GNU_RETAIN for section in sections) else ELFOSABI_NONE
    names = _Strings()
    headers = [bytes(_SECTION.size)]
    body = bytearray(_HEADER.size)

    def place(section: NewSection, link: int = 0, info: int = 0, entry_size: int = 0) -> None:
        body.extend(bytes(-len(body) % section.alignment))
        headers.append(
            _SECTION.pack(
                names.add(section.name),
                section.type,
                section.flags,
                0,
                len(body),
                len(section.data),
                link,
                info,
                section.alignment,
                entry_size,
            )
        )
        body.extend(section.data)

    for section in everything:
        place(section)
    place(
        NewSection(".symtab", SHT_SYMTAB, 0, 8, bytes(symbol_table)),
        len(headers) + 1,
        locals_count,
        _SYMBOL.size,
    )
    place(NewSection(".strtab", SHT_STRTAB, 0, 1, bytes(strings.data)))
    names_index = len(headers)
    own_name = names.add(".shstrtab")
    headers.append(_SECTION.pack(own_name, SHT_STRTAB, 0, 0, len(body), len(names.data), 0, 0, 1, 0))
    body += names.data
    body.extend(bytes(-len(body) % 8))
    ident = b"\x7fELF" + bytes([2, 1, 1, abi]) + bytes(8)
    body[: _HEADER.size] = _HEADER.pack(
        ident,
        ET_REL,
        machine,
        1,
        0,
        0,
        len(body),
        0,
        _HEADER.size,
        0,
        0,
        _SECTION.size,
        len(headers),
        names_index,
    )
    return bytes(body) + b"".join(headers)
