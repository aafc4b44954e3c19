"""AMD machine code as text by libLLVM in this process: a process of llvm-objdump per code object takes longer than what
it does, and given several it takes the first one's chip for all."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from amd_code_objects import CodeObject
from compiling import tool

TEXT = 256
"""Bytes for one instruction's text."""


@functools.cache
def _llvm() -> ctypes.CDLL:
    """LLVM's C interface. Raises OSError where the library of LLVM's tools is not there."""
    folder = Path(tool("llvm-config", "--libdir").strip())
    library = ctypes.CDLL(str(folder / tool("llvm-config", "--libnames", "--link-shared").split()[0]))
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    create = library.LLVMCreateDisasmCPUFeatures
    create.restype = ctypes.c_void_p
    create.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    library.LLVMDisasmInstruction.restype = ctypes.c_size_t
    library.LLVMDisasmInstruction.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    return library


@functools.cache
def _disassembler(chip: str, wave: int) -> int:
    """Kept: there are few chips. Raises ValueError for a chip that LLVM does not know."""
    size = "" if chip.startswith("gfx9") else f"+wavefrontsize{wave},-wavefrontsize{96 - wave}"
    made = _llvm().LLVMCreateDisasmCPUFeatures(
        b"amdgcn-amd-amdhsa", chip.encode(), size.encode(), None, 0, None, None,
    )  # fmt: skip
    if not made:
        raise ValueError(f"LLVM has no disassembler for {chip}")
    return int(made)


def instructions(code: CodeObject, chip: str, wave: int) -> dict[str, list[tuple[int, tuple[str, int]]]]:
    """Of each exported function, in the order of their addresses: its instructions' addresses, texts and sizes.

    Raises ValueError for what is no instruction."""
    found = {}
    text = ctypes.create_string_buffer(TEXT)
    for name, (address, size, kind) in sorted(code.symbols().items(), key=lambda item: item[1]):
        if kind != 2:  # STT_FUNC
            continue
        data = ctypes.create_string_buffer(code.bytes_at(address, size), size)
        listed = found[name] = []
        place = 0
        while place < size:
            taken = _llvm().LLVMDisasmInstruction(
                _disassembler(chip, wave), ctypes.addressof(data) + place, size - place, address + place, text, TEXT
            )
            if not taken:
                raise ValueError(f"{name}: no instruction of {chip} at {address + place:#x}")
            listed.append((address + place, (text.value.decode().rstrip(), taken)))
            place += taken
    return found


def disassembled(code: CodeObject, chip: str, wave: int) -> str:
    """The exported functions, as llvm-objdump -d prints them. Raises ValueError for what is no instruction."""
    lines = []
    for name, listed in instructions(code, chip, wave).items():
        lines += ["", f"{listed[0][0] if listed else 0:016x} <{name}>:"]
        lines += [text for _, (text, _) in listed]
    return "\n".join(lines) + "\n"
