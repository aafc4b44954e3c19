"""Loads, stores and atomic operations, the same for every address space."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.errors import EmulationError
from emulator.spaces import check_aligned

if TYPE_CHECKING:
    from emulator.wave import Wave

Array = Any

_SIZES = {"U8": 1, "I8": 1, "B8": 1, "U16": 2, "I16": 2, "B16": 2, "B32": 4, "B64": 8, "B96": 12, "B128": 16}
_OLD_NAMES = (
    ("UBYTE_D16_HI", "D16_HI_U8"), ("UBYTE_D16", "D16_U8"), ("SBYTE_D16_HI", "D16_HI_I8"), ("SBYTE_D16", "D16_I8"),
    ("SHORT_D16_HI", "D16_HI_B16"), ("SHORT_D16", "D16_B16"), ("BYTE_D16_HI", "D16_HI_B8"), ("UBYTE", "U8"),
    ("SBYTE", "I8"), ("USHORT", "U16"), ("SSHORT", "I16"), ("DWORDX2", "B64"), ("DWORDX3", "B96"),
    ("DWORDX4", "B128"), ("DWORD", "B32"), ("BYTE", "B8"), ("SHORT", "B16"),
    ("U8_D16_HI", "D16_HI_U8"), ("U8_D16", "D16_U8"), ("I8_D16_HI", "D16_HI_I8"), ("I8_D16", "D16_I8"),
    ("U16_D16_HI", "D16_HI_B16"), ("U16_D16", "D16_B16"), ("B8_D16_HI", "D16_HI_B8"), ("B16_D16_HI", "D16_HI_B16"),
)  # fmt: skip


def data_of(name: str) -> tuple[str, str]:
    """The data of ``…LOAD_SBYTE_D16_HI``: "D16_HI" or "D16" or "", and "I8"."""
    text = re.split(r"(?:LOAD|STORE|READ|WRITE)_", name, maxsplit=1)[1]
    text = dict(_OLD_NAMES).get(text, text)
    found = re.fullmatch(r"(?:(D16_HI|D16)_)?([UIB]\d+)", text)
    if not found or found.group(2) not in _SIZES:
        raise EmulationError(f"an unknown kind of access: {name}")
    return found.group(1) or "", found.group(2)


def loaded(data: Array, kind: str) -> Array:
    """Bytes [lane, byte] as words [word, lane], extended where the kind is narrow."""
    if kind in ("U8", "B8"):
        return data[:, 0].astype(np.uint32)[None]
    if kind == "I8":
        return data[:, 0].view(np.int8).astype(np.int32).view(np.uint32)[None]
    if kind in ("U16", "B16"):
        return np.ascontiguousarray(data).view(np.uint16)[:, 0].astype(np.uint32)[None]
    if kind == "I16":
        return np.ascontiguousarray(data).view(np.int16)[:, 0].astype(np.int32).view(np.uint32)[None]
    return np.ascontiguousarray(data).view(np.uint32).T


def load(space: Any, name: str, register: int) -> Callable[[Wave, Array, Array], None]:
    """A load into vector registers: a function of the wave, its active lanes and their addresses."""
    half, kind = data_of(name)
    size = _SIZES[kind]

    def run(wave: Wave, lanes: Array, addresses: Array) -> None:
        words = loaded(space.read(wave, lanes, addresses, size), kind)
        if half:
            shift = np.uint32(16 if half == "D16_HI" else 0)
            kept = wave.v[register, lanes] & (np.uint32(0xFFFF) << (np.uint32(16) - shift))
            words = (kept | (words & np.uint32(0xFFFF)) << shift).reshape(1, -1)
        for index, word in enumerate(words):
            wave.v[register + index, lanes] = word

    return run


def store(space: Any, name: str, register: int) -> Callable[[Wave, Array, Array], None]:
    """A store from vector registers."""
    half, kind = data_of(name)
    size = _SIZES[kind]

    def run(wave: Wave, lanes: Array, addresses: Array) -> None:
        words = wave.v[register : register + max(1, size // 4)][:, lanes]
        if half == "D16_HI":
            words = words >> np.uint32(16)
        data = np.ascontiguousarray(words.T).view(np.uint8).reshape(len(lanes), -1)
        space.write(wave, lanes, addresses, data[:, :size])

    return run


_TYPES = {
    "U32": np.uint32, "I32": np.int32, "B32": np.uint32, "F32": np.float32, "U64": np.uint64, "I64": np.int64,
    "B64": np.uint64, "F64": np.float64, "F16": np.float16, "BF16": np.uint32,
}  # fmt: skip


def atomic_of(name: str) -> tuple[str, str]:
    """``GLOBAL_ATOMIC_SMIN_X2`` as ("MIN", "I64"); ``DS_ADD_RTN_U32`` as ("ADD", "U32")."""
    text = re.sub(r"^(GLOBAL|FLAT|BUFFER|SCRATCH)_ATOMIC_|^DS_", "", name).replace("RTN_", "")
    text = re.sub(r"^(WRXCHG|STOREXCHG)", "SWAP", text)
    text = re.sub(r"^(CMPST|CMPSTORE)(?=_)", "CMPSWAP", text)
    found = re.fullmatch(r"(PK_ADD|COND_SUB|[A-Z]+(?:_NUM)?(?:_CLAMP)?)_(BF16|[UIBF]\d+)", text)
    if found:
        return found.group(1).removesuffix("_NUM"), found.group(2)
    wide = "64" if text.endswith("_X2") else "32"
    text = text.removesuffix("_X2")
    if text in ("SMIN", "SMAX"):
        return text[1:], "I" + wide
    if text in ("UMIN", "UMAX"):
        return text[1:], "U" + wide
    if text in ("ADD", "SUB", "INC", "DEC", "AND", "OR", "XOR", "SWAP", "CMPSWAP"):
        return text, "U" + wide
    raise EmulationError(f"an unknown atomic operation: {name}")


def _combined(operation: str, old: Any, value: Any, compared: Any) -> Any:
    if operation == "ADD":
        return old + value
    if operation == "SUB":
        return old - value
    if operation in ("SUB_CLAMP", "CSUB"):
        return old - min(old, value)
    if operation == "COND_SUB":
        return old - value if old >= value else old
    if operation == "MIN":
        return np.fmin(old, value)
    if operation == "MAX":
        return np.fmax(old, value)
    if operation == "AND":
        return old & value
    if operation == "OR":
        return old | value
    if operation == "XOR":
        return old ^ value
    if operation == "SWAP":
        return value
    if operation == "CMPSWAP":
        return value if old == compared else old
    if operation == "INC":
        return old.dtype.type(0) if old >= value else old + old.dtype.type(1)
    if operation == "DEC":
        return value if old == 0 or old > value else old - old.dtype.type(1)
    raise EmulationError(f"an unknown atomic operation: {operation}")


def _packed(kind: str, old: Array, value: Array) -> Array:
    """Both halves of a word."""
    if kind == "F16":
        return (old.view(np.float16) + value.view(np.float16)).view(np.uint32)
    from emulator.manual_math import bf16_to_f32, f32_to_bf16

    total = bf16_to_f32(old.view(np.uint16)) + bf16_to_f32(value.view(np.uint16))
    return f32_to_bf16(total).view(np.uint32)


def atomic(
    space: Any, name: str, result: int | None, value: int, compared: int
) -> Callable[[Wave, Array, Array], None]:
    """An atomic operation; ``value`` and ``compared`` are registers, and ``result`` one or None."""
    operation, kind = atomic_of(name)
    dtype = np.dtype(np.uint32 if operation == "PK_ADD" else _TYPES[kind])
    words = dtype.itemsize // 4

    def operand(wave: Wave, register: int, lanes: Array) -> Array:
        return np.ascontiguousarray(wave.v[register : register + words][:, lanes].T).view(dtype)[:, 0]

    def run(wave: Wave, lanes: Array, addresses: Array) -> None:
        check_aligned(addresses, dtype.itemsize, "an atomic operation")
        values = operand(wave, value, lanes)
        others = operand(wave, compared, lanes)
        places, first, which = np.unique(addresses, return_index=True, return_inverse=True)
        data = space.read(wave, lanes[first], places, dtype.itemsize)
        now = np.ascontiguousarray(data).view(dtype)[:, 0].copy()
        olds = np.empty(len(lanes), dtype)
        for index, place in enumerate(which):  # in the order of lanes, since several may have the same address
            olds[index] = old = now[place]
            if operation == "PK_ADD":
                now[place] = _packed(kind, now[place : place + 1], values[index : index + 1])[0]
            else:
                now[place] = _combined(operation, old, values[index], others[index])
        space.write(wave, lanes[first], places, now.view(np.uint8).reshape(len(places), -1))
        if result is not None:
            for index, word in enumerate(olds.view(np.uint32).reshape(len(lanes), words).T):
                wave.v[result + index, lanes] = word

    return run
