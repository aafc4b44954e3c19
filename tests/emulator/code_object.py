"""Code objects of versions 4 to 6 (LLVM's AMDGPUUsage): segments in memory, kernel descriptors, the metadata note."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

import msgpack

from emulator.errors import EmulationError
from emulator.memory import Memory

_LOAD, _NOTE, _DYNAMIC = 1, 4, 2
_RELOCATIONS = {1: "abs32_lo", 2: "abs32_hi", 3: "abs64", 6: "abs32", 13: "relative64"}


@dataclass(frozen=True)
class Kernel:
    """A kernel descriptor and what the metadata says of its arguments."""

    name: str
    entry: int
    descriptor: bytes
    metadata: dict[str, Any]

    def word(self, offset: int, form: str = "<I") -> int:
        """A field of the descriptor."""
        return int(struct.unpack_from(form, self.descriptor, offset)[0])


class CodeObject:
    """An image in memory, with its relocations applied."""

    def __init__(self, image: bytes, memory: Memory) -> None:
        if image[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", image, 18)[0] != 224:
            raise EmulationError("not a code object of AMD's")
        headers, sections, flags = struct.unpack_from("<QQI", image, 32)
        count, section_count = struct.unpack_from("<H", image, 56)[0], struct.unpack_from("<H", image, 60)[0]
        self.machine = flags & 0xFF
        segments = [struct.unpack_from("<IIQQQQQQ", image, headers + 56 * index) for index in range(count)]
        loads = [segment for segment in segments if segment[0] == _LOAD]
        size = max(address + length for _, _, _, address, _, _, length, _ in loads)
        self._buffer = ctypes.create_string_buffer(size + 4096)
        self.base = -(-ctypes.addressof(self._buffer) // 4096) * 4096
        for _, _, offset, address, _, stored, length, _ in loads:
            ctypes.memmove(self.base + address, image[offset : offset + stored], stored)
            memory.add(self.base + address, length, f"a segment of the code object at {address:#x}")
        self.end = self.base + size
        self.memory = memory
        self.segments = [self.base + segment[3] for segment in loads]
        self.symbols = self._symbols(image, sections, section_count)
        for segment in segments:
            if segment[0] == _DYNAMIC:
                self._relocate(segment[3])
        (note,) = [segment for segment in segments if segment[0] == _NOTE]
        metadata = _note(image[note[2] : note[2] + note[5]])
        self.target: str = metadata["amdhsa.target"]
        self.kernels = {kernel[".name"]: self._kernel(kernel) for kernel in metadata["amdhsa.kernels"]}

    def unload(self) -> None:
        """Takes the image out of the memory that kernels may use."""
        for segment in self.segments:
            self.memory.remove(segment)

    def bytes_at(self, address: int, size: int) -> bytes:
        """Code, zeros after its end."""
        return ctypes.string_at(address, max(0, min(size, self.end - address))).ljust(size, b"\0")

    def _symbols(self, image: bytes, sections: int, count: int) -> dict[str, int]:
        found = {}
        headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + 64 * index) for index in range(count)]
        for header in headers:
            if header[1] != 11:  # SHT_DYNSYM
                continue
            names = image[headers[header[6]][4] :]
            for offset in range(header[4], header[4] + header[5], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, offset)
                found[names[name : names.index(b"\0", name)].decode()] = self.base + value
        return found

    def _relocate(self, dynamic: int) -> None:
        entries = {}
        while True:
            tag, value = struct.unpack("<QQ", ctypes.string_at(self.base + dynamic, 16))
            if not tag:
                break
            entries[tag] = value
            dynamic += 16
        table, symbols = entries.get(7, 0), entries.get(6, 0)  # DT_RELA, DT_SYMTAB
        for position in range(table, table + entries.get(8, 0), 24):
            offset, info, addend = struct.unpack("<QQq", ctypes.string_at(self.base + position, 24))
            kind = _RELOCATIONS.get(info & 0xFFFFFFFF)
            symbol = struct.unpack("<IBBHQQ", ctypes.string_at(self.base + symbols + 24 * (info >> 32), 24))
            value = self.base + addend + (symbol[4] if info >> 32 else 0)
            if kind in ("relative64", "abs64"):
                self.memory.write(self.base + offset, struct.pack("<Q", value))
            elif kind == "abs32_hi":
                self.memory.write(self.base + offset, struct.pack("<I", value >> 32))
            elif kind in ("abs32", "abs32_lo"):
                self.memory.write(self.base + offset, struct.pack("<I", value & 0xFFFFFFFF))
            else:
                raise EmulationError(f"a relocation of the kind {info & 0xFFFFFFFF}")

    def _kernel(self, metadata: dict[str, Any]) -> Kernel:
        address = self.symbols[metadata[".symbol"]]
        descriptor = ctypes.string_at(address, 64)
        entry = address + struct.unpack_from("<q", descriptor, 16)[0]
        return Kernel(metadata[".name"], entry, descriptor, metadata)


def _note(data: bytes) -> dict[str, Any]:
    position = 0
    while position < len(data):
        name, size, kind = struct.unpack_from("<III", data, position)
        start = position + 12 + -(-name // 4) * 4
        if kind == 32:  # NT_AMDGPU_METADATA
            return dict(msgpack.unpackb(data[start : start + size]))
        position = start + -(-size // 4) * 4
    raise EmulationError("a code object without metadata")
