"""Functions that NVIDIA's driver has: printf, failed assertions, memory from the device's heap."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from emulator.errors import AbortedError, EmulationError

from ptx.block import Block
from ptx.spaces import read

Array = Any

_CONVERSION = re.compile(r"%%|%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(hh|h|ll|l|z|j|t)?([diouxXcfFeEgGaAps])")
_libc = ctypes.CDLL(None)


def _numbers(block: Block, key: str) -> Array:
    held = block.params[key]
    return np.ascontiguousarray(held[:, :8] if held.shape[1] >= 8 else held[:, :4]).view(f"u{min(held.shape[1], 8)}")[
        :, 0
    ]


def _text(block: Block, lane: int, address: int) -> str:
    found = bytearray()
    one = np.array([lane])
    while True:
        (byte,) = read(block, "", one, np.array([address + len(found)], np.uint64), 1)[0]
        if not byte:
            return found.decode()
        found.append(int(byte))


def _printf(block: Block, given: list[str], results: list[str]) -> None:
    formats, buffers = (_numbers(block, key) for key in given)
    for lane in block.indices.tolist():
        block.launch.print(formatted(block, lane, _text(block, lane, int(formats[lane])), int(buffers[lane])))
    for key in results:
        block.params[key][block.active] = 0


def formatted(block: Block, lane: int, text: str, buffer: int) -> str:
    """Arguments are in the buffer one behind the other, each aligned to its size; ints have 4 bytes, doubles 8."""
    at = buffer
    one = np.array([lane])

    def take(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        data = read(block, "", one, np.array([at], np.uint64), size)[0].tobytes()
        at += size
        return data

    def convert(found: re.Match[str]) -> str:
        conversion = found.group()
        if conversion == "%%":
            return "%"
        length, letter = found.group(1) or "", found.group(2)
        if "*" in conversion:
            raise EmulationError(f"{conversion} in a format: CUDA's printf takes widths from the format alone")
        if letter == "s":
            return _text(block, lane, struct.unpack("<Q", take(8))[0])
        value: Any
        if letter in "fFeEgGaA":
            value = ctypes.c_double(*struct.unpack("<d", take(8)))
        elif length in ("ll", "l", "z", "j", "t") or letter == "p":
            value = ctypes.c_longlong(*struct.unpack("<q", take(8)))
        else:
            value = ctypes.c_int(*struct.unpack("<i", take(4)))
        result = ctypes.create_string_buffer(512)
        _libc.snprintf(result, 512, conversion.encode(), value)
        return result.value.decode()

    return _CONVERSION.sub(convert, text)


def _assert_fail(block: Block, given: list[str], results: list[str]) -> None:
    message, file, line, function = (_numbers(block, key) for key in given[:4])
    for lane in block.indices.tolist():
        x, y, _ = block.launch.block
        thread = [lane % x, lane // x % y, lane // (x * y)]
        where = f"{_text(block, lane, int(file[lane]))}:{int(line[lane])}: {_text(block, lane, int(function[lane]))}"
        block.launch.print(
            f"{where}: block: {list(block.index)}, thread: {thread} Assertion "
            f"`{_text(block, lane, int(message[lane]))}` failed.\n"
        )
    raise AbortedError("the program aborted")


def _malloc(block: Block, given: list[str], results: list[str]) -> None:
    sizes = _numbers(block, given[0])
    for lane in block.indices.tolist():
        address = block.launch.program.heap_take(int(sizes[lane]))
        block.params[results[0]][lane] = np.frombuffer(struct.pack("<Q", address), np.uint8)


def _free(block: Block, given: list[str], results: list[str]) -> None:
    addresses = _numbers(block, given[0])
    for lane in block.indices.tolist():
        if address := int(addresses[lane]):
            block.launch.program.heap_give(address)


BUILTINS: dict[str, Callable[[Block, list[str], list[str]], None]] = {
    "vprintf": _printf,
    "__assertfail": _assert_fail,
    "malloc": _malloc,
    "free": _free,
}
