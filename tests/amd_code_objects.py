"""What HIP's loader and the hardware read of an AMD code object, and the rules that its parts keep with each other.

The layouts and rules are those of LLVM's AMDGPUUsage: the ELF header's flags, the kernel descriptor, the metadata of
code object versions 4 to 6 with its hidden arguments. ``problems`` compares all of them, and the registers that the
disassembled code names.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

MACHINES = {
    "gfx900": 0x02C, "gfx90a": 0x03F, "gfx942": 0x04C, "gfx950": 0x04F, "gfx1030": 0x036, "gfx1100": 0x041,
    "gfx1101": 0x046, "gfx1200": 0x048, "gfx1201": 0x04E, "gfx9-generic": 0x051, "gfx10-1-generic": 0x052,
    "gfx10-3-generic": 0x053, "gfx11-generic": 0x054, "gfx12-generic": 0x059, "gfx9-4-generic": 0x05F,
}  # fmt: skip
"""EF_AMDGPU_MACH of the chips that are checked."""

ABI = {4: 2, 5: 3, 6: 4}
"""ELF's ABI version of each version of code objects."""

HIDDEN = {
    "hidden_block_count_x": (0, 4), "hidden_block_count_y": (4, 4), "hidden_block_count_z": (8, 4),
    "hidden_group_size_x": (12, 2), "hidden_group_size_y": (14, 2), "hidden_group_size_z": (16, 2),
    "hidden_remainder_x": (18, 2), "hidden_remainder_y": (20, 2), "hidden_remainder_z": (22, 2),
    "hidden_global_offset_x": (40, 8), "hidden_global_offset_y": (48, 8), "hidden_global_offset_z": (56, 8),
    "hidden_grid_dims": (64, 2), "hidden_printf_buffer": (72, 8), "hidden_hostcall_buffer": (80, 8),
    "hidden_multigrid_sync_arg": (88, 8), "hidden_heap_v1": (96, 8), "hidden_default_queue": (104, 8),
    "hidden_completion_action": (112, 8), "hidden_dynamic_lds_size": (120, 4), "hidden_private_base": (192, 4),
    "hidden_shared_base": (196, 4), "hidden_queue_ptr": (200, 8),
}  # fmt: skip
"""Hidden arguments of versions 5 and 6: places after the explicit ones, and sizes."""

USER_REGISTERS = (4, 2, 2, 2, 2, 2, 1)
"""Scalar registers that each of a descriptor's first properties asks for, from the lowest bit on."""

_CDNA = ("gfx90a", "gfx942", "gfx950", "gfx9-4-generic")
TOGGLES = {"xnack": (8, {*_CDNA, "gfx900", "gfx9-generic"}), "sramecc": (10, {*_CDNA})}
"""What may be on or off: its place in the ELF header's flags, and the chips here that have it."""

HIDDEN_BYTES = 256
LDS_BYTES = 160 << 10
"""The largest local data share that a chip here has (gfx950)."""


@dataclass(frozen=True)
class Descriptor:
    """The 64 bytes that the command processor reads at a launch."""

    data: bytes

    def word(self, offset: int, form: str = "<I") -> int:
        return int(struct.unpack_from(form, self.data, offset)[0])

    def bits(self, offset: int, low: int, high: int) -> int:
        """Of the word at an offset, the bits from ``low`` to ``high``."""
        return self.word(offset) >> low & ((1 << (high - low + 1)) - 1)


@dataclass(frozen=True)
class CodeObject:
    """A linked code object, read and not loaded."""

    data: bytes

    def _at(self, form: str, offset: int) -> tuple[Any, ...]:
        return struct.unpack_from(form, self.data, offset)

    @property
    def flags(self) -> int:
        return int(self._at("<I", 48)[0])

    @property
    def abi(self) -> int:
        return self.data[8]

    def segments(self) -> Iterator[tuple[int, int, int, int]]:
        """Type, offset in the file, address and size in the file."""
        start, count = self._at("<Q", 32)[0], self._at("<H", 56)[0]
        for index in range(count):
            kind, _, offset, address, _, size, _, _ = self._at("<IIQQQQQQ", start + 56 * index)
            yield kind, offset, address, size

    def bytes_at(self, address: int, size: int) -> bytes:
        """Of a loaded segment. Raises ValueError for an address in none."""
        for kind, offset, start, length in self.segments():
            if kind == 1 and start <= address and address + size <= start + length:
                return self.data[offset + address - start :][:size]
        raise ValueError(f"no segment holds {address:#x}")

    def undefined(self) -> set[str]:
        """Dynamic symbols without a section."""
        return {name for name, (_, _, _, section) in self._dynamic().items() if section == 0}

    def symbols(self) -> dict[str, tuple[int, int, int]]:
        """Dynamic symbols: address, size and type."""
        return {name: (address, size, kind) for name, (address, size, kind, _) in self._dynamic().items()}

    def _dynamic(self) -> dict[str, tuple[int, int, int, int]]:
        start, count = self._at("<Q", 40)[0], self._at("<H", 60)[0]
        headers = [self._at("<IIQQQQIIQQ", start + 64 * index) for index in range(count)]
        found = {}
        for header in headers:
            if header[1] != 11:  # SHT_DYNSYM
                continue
            names = self.data[headers[header[6]][4] :]
            for offset in range(header[4] + 24, header[4] + header[5], 24):  # the first is none
                name, info, _, section, value, size = self._at("<IBBHQQ", offset)
                text = names[name : names.index(b"\0", name)].decode()
                found[text] = (value, size, info & 15, section)
        return found

    def metadata(self) -> dict[str, Any]:
        """The note NT_AMDGPU_METADATA. Raises ValueError where there is none."""
        for kind, offset, _, size in self.segments():
            note = self.data[offset : offset + size]
            while kind == 4 and note:
                name, length, number = struct.unpack_from("<III", note)
                start = 12 + -(-name // 4) * 4
                if number == 32:
                    return dict(msgpack.unpackb(note[start : start + length]))
                note = note[start + -(-length // 4) * 4 :]
        raise ValueError("a code object without metadata")

    def descriptor(self, kernel: Mapping[str, Any]) -> Descriptor:
        """Raises KeyError where the kernel's symbol is not there."""
        return Descriptor(self.bytes_at(self.symbols()[kernel[".symbol"]][0], 64))


def vgpr_granule(chip: str, wave: int) -> int:
    """Vector registers are counted in units of these."""
    if chip in ("gfx90a", "gfx942", "gfx950", "gfx9-4-generic"):
        return 8
    return 4 if chip.startswith("gfx9") or wave == 64 else 8


def named_registers(text: str) -> dict[str, dict[str, int]]:
    """From a disassembly: by function, one more than the highest register of each kind (v, a, s) that is named."""
    found: dict[str, dict[str, int]] = {}
    most: dict[str, int] = {}
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <([^>]+)>:$", line):
            most = found.setdefault(match[1], {"v": 0, "a": 0, "s": 0})
        elif most and line.startswith("\t"):
            code = line.split("//")[0]
            for kind, first, last in re.findall(r"\b([vas])(?:(\d+)\b|\[\d+:(\d+)\])", code):
                most[kind] = max(most[kind], int(first or last) + 1)
    return found


def problems(code: CodeObject, chip: str, version: int, wave: int, text: str = "") -> Iterator[str]:
    """What does not fit in a code object for a chip, in words; ``text`` is its disassembly."""
    if code.flags & 0xFF != MACHINES[chip]:
        yield f"the ELF header is for the machine {code.flags & 0xFF:#x}, not {MACHINES[chip]:#x}"
    if code.abi != ABI[version]:
        yield f"the ELF header has the ABI version {code.abi}, not {ABI[version]}"
    if ("generic" in chip) != bool(code.flags >> 24):
        yield f"the version of the generic chip is {code.flags >> 24}"
    metadata = code.metadata()
    if metadata["amdhsa.version"] != [1, 1 if version == 4 else 2]:
        yield f"the metadata has the version {metadata['amdhsa.version']}"
    if metadata["amdhsa.target"].split(":")[0] != f"amdgcn-amd-amdhsa--{chip}":
        yield f"the metadata is for {metadata['amdhsa.target']}"
    yield from _features(code, chip, metadata["amdhsa.target"])
    for name in sorted(code.undefined()):
        yield f"it needs {name}, which is for nobody to define"
    symbols, registers = code.symbols(), named_registers(text)
    described = {name for name in symbols if name.endswith(".kd")}
    if described != {kernel[".symbol"] for kernel in metadata["amdhsa.kernels"]}:
        yield f"descriptors of {sorted(described)}, metadata of others"
    for kernel in metadata["amdhsa.kernels"]:
        found = [*_descriptor(code, kernel, chip, wave), *_arguments(kernel, version)]
        found += _start(code.descriptor(kernel), kernel, chip, wave)
        found += _registers(code.descriptor(kernel), kernel, chip, wave, registers.get(kernel[".name"]))
        yield from (f"{kernel['.name']}: {problem}" for problem in found)


def _descriptor(code: CodeObject, kernel: Mapping[str, Any], chip: str, wave: int) -> Iterator[str]:
    """The descriptor against the metadata, and its place in the file."""
    descriptor, symbols = code.descriptor(kernel), code.symbols()
    address, size, kind = symbols[kernel[".symbol"]]
    if (size, kind, address % 64) != (64, 1, 0):
        yield f"its descriptor has {size} bytes at {address:#x} and the type {kind}"
    entry, _, kind = symbols.get(kernel[".name"], (0, 0, 0))
    if kind != 2 or entry % 256 or address + descriptor.word(16, "<q") != entry:
        yield "its descriptor does not lead to its code, or that is not at a multiple of 256"
    for name, offset in (
        (".group_segment_fixed_size", 0), (".private_segment_fixed_size", 4), (".kernarg_segment_size", 8),
    ):  # fmt: skip
        if descriptor.word(offset) != kernel[name]:
            yield f"{name} is {kernel[name]} in the metadata, {descriptor.word(offset)} in the descriptor"
    if kernel[".group_segment_fixed_size"] > LDS_BYTES:
        yield f"{kernel['.group_segment_fixed_size']} bytes of workgroup memory"
    if kernel[".wavefront_size"] != wave or descriptor.bits(56, 10, 10) != (wave == 32):
        yield f"waves of {kernel['.wavefront_size']}, in the descriptor {64 - 32 * descriptor.bits(56, 10, 10)}"
    if not 1 <= kernel[".max_flat_workgroup_size"] <= 1024:
        yield f".max_flat_workgroup_size is {kernel['.max_flat_workgroup_size']}"
    if bool(kernel.get(".uses_dynamic_stack")) != bool(descriptor.bits(56, 11, 11)):
        yield "metadata and descriptor differ on a dynamic stack"
    if kernel[".private_segment_fixed_size"] and not descriptor.bits(52, 0, 0):
        yield "it has private memory, and its descriptor asks for none"
    if kernel[".kernarg_segment_size"] and not descriptor.bits(56, 3, 3):
        yield "it has arguments, and its descriptor asks for no pointer to them"
    if descriptor.bits(52, 15, 23):
        yield "the size of the local data share is for the packet of the launch to say"
    reserved = descriptor.data[12:16] + descriptor.data[24:44] + descriptor.data[60:64]
    if any(reserved) or descriptor.bits(56, 7, 9) or descriptor.bits(56, 12, 15):
        yield "reserved bits of its descriptor are set"
    if not descriptor.bits(52, 1, 5) <= 16:
        yield f"{descriptor.bits(52, 1, 5)} scalar registers for the user"


def _features(code: CodeObject, chip: str, target: str) -> Iterator[str]:
    """What the ELF header says of a chip's toggles (0: has none, 1: any, 2: off, 3: on) against the target's name."""
    for name, (bit, chips) in TOGGLES.items():
        sign = re.search(rf":{name}([+-])", target)
        wanted = (2 if sign[1] == "-" else 3) if sign else int(chip in chips)
        if code.flags >> bit & 3 != wanted:
            yield f"{name} is {code.flags >> bit & 3} in the ELF header, {wanted} in {target}"


def _start(descriptor: Descriptor, kernel: Mapping[str, Any], chip: str, wave: int) -> Iterator[str]:
    """With which registers and modes a wave starts."""
    properties, given = descriptor.bits(56, 0, 6), descriptor.bits(52, 1, 5)
    wanted = sum(count for bit, count in enumerate(USER_REGISTERS) if properties >> bit & 1)
    ahead, first = descriptor.bits(58, 0, 6), descriptor.bits(58, 7, 15)  # words of arguments that come in registers
    wanted += ahead
    if ahead and (chip not in _CDNA or 4 * (first + ahead) > kernel[".kernarg_segment_size"]):
        yield f"{ahead} words of arguments from the word {first} on are to come in registers"
    # Waves of 32 on gfx11's first chips get 16 scalar registers with those of the system, or none are right.
    system = descriptor.bits(52, 7, 7) + descriptor.bits(52, 8, 8) + descriptor.bits(52, 9, 9)
    padded = chip in ("gfx1100", "gfx1101", "gfx11-generic") and wave == 32 and given + system == 16
    if given != wanted and not padded:
        yield f"{given} scalar registers for the user, of which its properties ask for {wanted}"
    older = chip.startswith(("gfx900", "gfx90a", "gfx9-generic", "gfx10"))
    if not older and properties & 0b100001:
        yield "it asks for a buffer of private memory, where the chip has an address of it"
    if descriptor.bits(48, 12, 15) or descriptor.bits(48, 18, 19) != 3 or descriptor.bits(48, 16, 17) not in (0, 3):
        yield f"modes of floats {descriptor.bits(48, 12, 19):#x}"
    if descriptor.bits(48, 10, 11) or descriptor.bits(48, 20, 20) or descriptor.bits(48, 22, 22):
        yield "its descriptor asks for a priority, privilege or the debug mode"
    if descriptor.bits(52, 24, 30):
        yield "its descriptor asks for exceptions"
    whole, ordered = descriptor.bits(48, 29, 29), descriptor.bits(48, 30, 30)
    if chip.startswith("gfx9"):
        if whole or ordered:
            yield "its descriptor has modes of gfx10"
    elif not ordered or bool(whole) != bool(kernel.get(".workgroup_processor_mode")):
        yield "metadata and descriptor differ on the mode of workgroup processors, or its loads come in any order"


def _arguments(kernel: Mapping[str, Any], version: int) -> Iterator[str]:
    """Explicit arguments in order and aligned; hidden ones where their names say."""
    end, hidden = 0, []
    for argument in kernel.get(".args", ()):
        offset, size, kind = argument[".offset"], argument[".size"], argument[".value_kind"]
        if offset < end:
            yield f"the argument at {offset} overlaps the one before"
        end = offset + size
        if kind.startswith("hidden_"):
            hidden.append((kind, offset, size))
        elif hidden:
            yield f"an explicit argument at {offset} after hidden ones"
        elif kind == "global_buffer" and (size != 8 or offset % 8):
            yield f"a pointer of {size} bytes at {offset}"
    if end > kernel[".kernarg_segment_size"]:
        yield f"arguments up to {end} in a segment of {kernel['.kernarg_segment_size']}"
    align = kernel[".kernarg_segment_align"]
    if align & (align - 1) or align < 4:
        yield f"a segment aligned to {align}"
    if not hidden or version < 5:
        return
    explicit = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden_")]
    start = -(-max((a[".offset"] + a[".size"] for a in explicit), default=0) // 8) * 8
    for kind, offset, size in hidden:
        if kind not in HIDDEN:
            yield f"an unknown hidden argument {kind}"
        elif (offset - start, size) != HIDDEN[kind]:
            yield f"{kind} has {size} bytes, {offset - start} after the explicit arguments"
    if kernel[".kernarg_segment_size"] != start + HIDDEN_BYTES:
        yield f"a segment of {kernel['.kernarg_segment_size']} bytes, of which {start} are explicit"


def _registers(
    descriptor: Descriptor, kernel: Mapping[str, Any], chip: str, wave: int, named: Mapping[str, int] | None
) -> Iterator[str]:
    """Counts in the descriptor, in the metadata and in the code."""
    vector, scalar, unified = kernel[".vgpr_count"], kernel[".sgpr_count"], vgpr_granule(chip, wave) == 8 and wave == 64
    granule = vgpr_granule(chip, wave)
    # LLVM counts more than the code uses where workgroup memory lets fewer waves run anyway.
    if granule * (descriptor.bits(48, 0, 5) + 1) < vector:
        yield f"{vector} vector registers, of which the descriptor counts {granule * (descriptor.bits(48, 0, 5) + 1)}"
    # In eights, where the hardware gives sixteens; since gfx10 every wave has all of them.
    counted = descriptor.bits(48, 6, 9)
    if 8 * (counted + 1) < scalar if chip.startswith("gfx9") else counted:
        yield f"{scalar} scalar registers, counted as {counted}"
    for spilled in (".sgpr_spill_count", ".vgpr_spill_count"):
        if kernel[spilled] < 0:
            yield f"{spilled} is {kernel[spilled]}"
    # Where accumulation registers begin; both kinds share one file.
    begin = 4 * (descriptor.bits(44, 0, 5) + 1) if unified else 0
    if named is None:
        return
    if unified and (named["v"] > begin or (named["a"] and begin + named["a"] > -(-vector // 8) * 8)):
        yield f"its code names v{named['v'] - 1} and a{named['a'] - 1}, with accumulation registers from {begin} on"
    if not unified and named["v"] > vector:
        yield f"its code names v{named['v'] - 1}, its metadata counts {vector}"
    if named["s"] > scalar:
        yield f"its code names s{named['s'] - 1}, its metadata counts {scalar}"
