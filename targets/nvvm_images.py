"""NVIDIA's compiled code as a program may carry it: cubins, fat binaries and PTX, and what their bytes tell."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from offload.targets.images import Image, ReadyImage, damaged

from offload.errors import CompileError

if TYPE_CHECKING:
    from offload.targets.native import ElfFile, Native

_MACHINE = 190  # EM_CUDA
_EXECUTABLE = 2
_ENTRY = 0x10  # st_other of kernels: STO_CUDA_ENTRY
_FAT_MAGIC = 0xBA55ED50
_FAT_HEADER = struct.Struct("<IHHQ")  # magic, version, size of the header, size of what follows
_FAT_ENTRY = struct.Struct("<HHIQ12xIQQ")  # kind, version, size of the header, size, …, chip, name, flags
_FAT_SPECIFIC, _FAT_FAMILY = 0x100000, 0x200000
# PTX has no lines, as C has none: only spaces, comments, and strings, in which anything may stand.
_PTX_SILENT = r'(?s)"[^"\n]*"|//[^\n]*|/\*.*?\*/'
_PTX_TARGET = r"(?<!\S)\.target\s+(sm_\d+[af]?)\b"
_PTX_KERNEL = r"(?<![^\s};])\.entry\s+([\w$.%]+)"
_PTX_ENTRY = _PTX_KERNEL + r"\s*\(([^)]*)\)"
_PTX_PARAMETER = r"\.param\b[^,]*?\.[busf](\d+)\b[^,\[]*(?:\[(\d+)\])?"
_PTX_VERSION = r"(?<!\S)\.version\s"


def read(native: Native, data: bytes) -> ReadyImage | None:
    """What the bytes are; None where they are nothing of NVIDIA's. Raises CompileError for damaged ones."""
    if data.startswith(b"\x7fELF"):
        return _cubin(native, data)
    if data.startswith(struct.pack("<I", _FAT_MAGIC)):
        return ReadyImage(Image(data), "fatbin", tuple(_fat_chips(data)))
    try:
        text = re.sub(_PTX_SILENT, " ", data.decode())
    except UnicodeDecodeError:
        return None
    if not re.search(_PTX_VERSION, text):
        return None
    target = re.search(_PTX_TARGET, text)
    if target is None:
        raise CompileError("PTX without a .target")
    if text.count("{") != text.count("}"):
        raise CompileError("PTX that ends inside a function, or has lost a part: make it anew")
    parameters = {kernel: _ptx_parameters(said) for kernel, said in re.findall(_PTX_ENTRY, text)}
    kernels = tuple(re.findall(_PTX_KERNEL, text))
    return ReadyImage(Image(data), "isa", (target.group(1),), kernels, parameters=parameters)


def _ptx_parameters(text: str) -> tuple[int, ...]:
    """Their sizes: ``.param .u64 .ptr .align 1 k_param_0, .param .align 8 .b8 k_param_1[40]``."""
    return tuple(int(bits) // 8 * int(count or 1) for bits, count in re.findall(_PTX_PARAMETER, text))


def _cubin(native: Native, data: bytes) -> ReadyImage | None:
    if len(data) < 20:
        raise CompileError("an ELF file that ends inside its header: it was cut, or not written to its end")
    if data[18:20] != struct.pack("<H", _MACHINE):
        return None
    try:
        elf = native.read_elf(data)
    except native.Failure as error:
        raise damaged("cubin", data, error) from error
    if elf.type != _EXECUTABLE:
        raise CompileError("a cubin that is not linked: no driver loads it")
    kernels = tuple(symbol.name for symbol in elf.symbols if symbol.is_defined and symbol.other & _ENTRY)
    image = Image(data, _resources(elf, kernels))
    return ReadyImage(image, "bin", (_chip(elf),), kernels, parameters=_parameters(elf, kernels))


_OLD_ABI = 7  # up to CUDA 12 for chips before sm_100


def _chip(elf: ElfFile) -> str:
    """e_flags have the chip's number in their first byte, or in their second one since CUDA 13 and sm_100.

    Code for one chip alone (sm_90a) has a flag; CUDA 13 says it in .nv.compat instead.
    """
    if elf.abi_version <= _OLD_ABI:
        number, specific = elf.flags & 0xFF, bool(elf.flags & 0x800)
    else:
        compat = next((section.data for section in elf.sections if section.name == ".nv.compat"), b"")
        isa_class = next((value for tag, value in _records(compat) if tag == 9), b"\0")
        number, specific = elf.flags >> 8 & 0xFF, bool(elf.flags & 0x8) or isa_class[:1] == b"\1"
    return f"sm_{number}{'a' if specific else ''}"


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of .nv.info and .nv.compat: a format, a tag, and a value whose size the format says."""
    position = 0
    while position + 4 <= len(data):
        form, tag = data[position], data[position + 1]
        if form == 4:
            size = int.from_bytes(data[position + 2 : position + 4], "little")
            yield tag, data[position + 4 : position + 4 + size]
            position += 4 + size
        else:
            yield tag, data[position + 2 : position + 4]
            position += 4


def _resources(elf: ElfFile, kernels: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """Registers, stack and workgroup memory per kernel, from .nv.info and the sizes of .nv.shared.*."""
    known = {0x2F: "registers", 0x11: "stack_bytes"}
    found: dict[str, dict[str, int]] = {kernel: {} for kernel in kernels}
    for section in elf.sections:
        if section.name == ".nv.info":
            for tag, value in _records(section.data):
                if tag in known and len(value) == 8:
                    symbol, number = struct.unpack("<II", value)
                    name = elf.symbols[symbol].name if symbol < len(elf.symbols) else ""
                    if name in found:
                        found[name][known[tag]] = number
    sizes = {section.name: section.size for section in elf.sections}
    for kernel, values in found.items():
        values["shared_bytes"] = sizes.get(f".nv.shared.{kernel}", 0)
    return found


def _parameters(elf: ElfFile, kernels: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The sizes of parameters: EIATTR_KPARAM_INFO has an index, the number, the offset, and the size above 18 bits."""
    found: dict[str, tuple[int, ...]] = {}
    for section in elf.sections:
        kernel = section.name.removeprefix(".nv.info.")
        if section.name == f".nv.info.{kernel}" and kernel in kernels:
            records = list(_records(section.data))
            values = [struct.unpack("<IHHI", value) for tag, value in records if tag == 0x17 and len(value) == 12]
            sizes = [bits >> 18 for _, _, _, bits in sorted(values, key=lambda value: value[1])]
            if sizes or not any(tag == 0x19 and any(value) for tag, value in records):  # EIATTR_CBANK_PARAM_SIZE
                found[kernel] = tuple(sizes)
    return found


def _fat_chips(data: bytes) -> list[str]:
    """The chips of a fat binary, the oldest first."""
    if len(data) < _FAT_HEADER.size:
        raise CompileError("a fat binary that ends inside its header")
    _, _, position, size = _FAT_HEADER.unpack_from(data)
    end = position + size
    if end > len(data):
        raise CompileError(f"a fat binary that should have {end} bytes and has {len(data)}")
    found: set[tuple[int, str]] = set()
    while position < end:
        if position + _FAT_ENTRY.size > end:
            raise CompileError("a fat binary that ends inside an entry's header")
        _, _, header, length, chip, _, flags = _FAT_ENTRY.unpack_from(data, position)
        found.add((chip, "a" if flags & _FAT_SPECIFIC else "f" if flags & _FAT_FAMILY else ""))
        if header < _FAT_ENTRY.size:
            raise CompileError("a fat binary with a damaged entry")
        position += header + length
    if position > end or not found:
        raise CompileError("a fat binary whose entries do not fill it")
    return [f"sm_{number}{variant}" for number, variant in sorted(found)]
