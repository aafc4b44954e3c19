"""AMD's compiled code as a program may carry it: code objects, bundles and assembly, and what their bytes tell."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from offload.targets.images import Image, ReadyImage, damaged

from offload.errors import CompileError

if TYPE_CHECKING:
    from offload.targets.native import ElfFile, Native

_MACHINE = 224  # EM_AMDGPU
_SHARED_OBJECT = 3
_BUNDLE, _PACKED_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_ISA_TARGET = r'(?m)^\s*\.amdgcn_target\s+"?[\w-]+--([\w:+-]+)"?'
_ISA_KERNEL = r"(?m)^\s*\.amdhsa_kernel\s+([\w$.]+)"

# e_flags & 0xff (EF_AMDGPU_MACH) to the processor; LLVM's documentation of the AMDGPU backend lists them.
_FIRST_CHIP = 0x20
_CHIPS = (
    *("600", "601", "700", "701", "702", "703", "704", "", "801", "802", "803", "810", "900", "902", "904", "906"),
    *("908", "909", "90c", "1010", "1011", "1012", "1030", "1031", "1032", "1033", "602", "705", "805", "1035"),
    *("1034", "90a", "", "1100", "1013", "1150", "1103", "1036", "1101", "1102", "1200", "1250", "1151", "", "942"),
    *("", "1201", "950", "", "9-generic", "10-1-generic", "10-3-generic", "11-generic", "1152", "", "", "1153"),
    *("12-generic", "1251", "", "", "", "", "9-4-generic"),
)


def read(native: Native, data: bytes) -> ReadyImage | None:
    """What the bytes are; None where they are nothing of AMD's. Raises CompileError for damaged ones."""
    if data.startswith(b"\x7fELF"):
        return _code_object(native, data)
    if data.startswith(_PACKED_BUNDLE):
        raise CompileError("a compressed offload bundle: unpack it with clang-offload-bundler first")
    if data.startswith(_BUNDLE):
        parts = _parts(native, data)
        kernels = dict.fromkeys(kernel for part in parts for kernel in part.kernels or ())
        return ReadyImage(Image(data), "fatbin", tuple(part.chips[0] for part in parts), tuple(kernels), parts)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    target = re.search(_ISA_TARGET, text)
    return ReadyImage(Image(data), "isa", (target.group(1),), tuple(re.findall(_ISA_KERNEL, text))) if target else None


def _code_object(native: Native, data: bytes) -> ReadyImage | None:
    if len(data) < 20:
        raise CompileError("an ELF file that ends inside its header: it was cut, or not written to its end")
    if data[18:20] != struct.pack("<H", _MACHINE):
        return None
    try:
        elf = native.read_elf(data)
        metadata = native.amdgpu_resources(data)
        parameters = {kernel: tuple(sizes) for kernel, sizes in native.amdgpu_parameters(data)}
    except native.Failure as error:
        raise damaged("code object", data, error) from error
    if elf.type != _SHARED_OBJECT:
        raise CompileError("a code object that is not linked: link it with ld.lld -shared")
    resources = {kernel: dict(values) for kernel, values in metadata}
    descriptors = [symbol.name.removesuffix(".kd") for symbol in elf.symbols if symbol.name.endswith(".kd")]
    kernels = tuple(resources) or tuple(descriptors)
    return ReadyImage(Image(data, resources), "bin", (_chip(elf),), kernels, parameters=parameters)


def _chip(elf: ElfFile) -> str:
    """``gfx942``, with ``:sramecc+:xnack-`` as far as the code needs one or the other setting."""
    index = (elf.flags & 0xFF) - _FIRST_CHIP
    if not 0 <= index < len(_CHIPS) or not _CHIPS[index]:
        raise CompileError(f"a code object for an unknown processor ({elf.flags & 0xFF:#x})")
    words = [f"gfx{_CHIPS[index]}"]
    for name, shift in (("sramecc", 10), ("xnack", 8)):
        # Since code object version 4 (ABI 2) each has two bits: 0 no such setting, 1 any, 2 off, 3 on.
        setting = elf.flags >> shift & 3 if elf.abi_version > 1 else 0
        if setting > 1:
            words.append(f"{name}{'+' if setting == 3 else '-'}")
    return ":".join(words)


def _parts(native: Native, data: bytes) -> tuple[ReadyImage, ...]:
    found: list[ReadyImage] = []
    for name, code in entries(data):
        part = _code_object(native, code)
        if part is None:
            raise CompileError(f"an offload bundle whose entry {name} is no code object")
        found.append(part)
    if not found:
        raise CompileError("an offload bundle without code for AMD's GPUs")
    return tuple(found)


def entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The code for AMD's GPUs in clang's offload bundle, each with its name: after the magic and a count there are
    (offset, size, length of the name) and the name for each. Raises CompileError for a damaged one."""
    damaged = CompileError("a damaged offload bundle: an entry lies outside of it")
    position = len(_BUNDLE) + 8
    if position > len(data):
        raise damaged
    for _ in range(min(int.from_bytes(data[position - 8 : position], "little"), len(data))):
        if position + 24 > len(data):
            raise damaged
        start, size, length = struct.unpack_from("<QQQ", data, position)
        name = data[position + 24 : position + 24 + length]
        position += 24 + length
        if position > len(data) or start + size > len(data):
            raise damaged
        if b"amdgcn" in name:
            yield name.decode(errors="replace"), data[start : start + size]
