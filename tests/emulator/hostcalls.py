"""What kernels ask the host for: printf, as AMD's device libraries call it (hidden_hostcall_buffer).

A wave takes a packet off the free stack, fills 64 bytes per lane, puts the packet on the ready stack, rings the
doorbell and waits until the host has cleared the packet's ready bit. A message of printf may take several packets.
"""

from __future__ import annotations

import ctypes
import re
import struct

from emulator.errors import EmulationError
from emulator.memory import Memory

_PACKETS = 64
_PRINTF = 2
_BEGIN, _END = 1, 2
_CONVERSION = re.compile(r"%%|%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|z|j|t)?[diouxXcfFeEgGaAps]")
_libc = ctypes.CDLL(None)


class Hostcalls:
    """The buffer, and ``output``: what was printed."""

    def __init__(self, memory: Memory) -> None:
        self._headers = (ctypes.c_uint64 * (3 * 2 * _PACKETS))()
        self._payloads = (ctypes.c_uint64 * (512 * 2 * _PACKETS))()
        self._doorbell = (ctypes.c_uint64 * 8)()
        self._mailbox = (ctypes.c_uint64 * 1)()
        self._buffer = (ctypes.c_uint64 * 8)()
        self._messages: dict[int, list[int]] = {}
        self.output = ""
        for block in (self._headers, self._payloads, self._doorbell, self._mailbox, self._buffer):
            memory.add(ctypes.addressof(block), ctypes.sizeof(block), "the buffer of hostcalls")
        self._doorbell[2] = ctypes.addressof(self._mailbox)  # so that the wave sends an interrupt
        for index in range(_PACKETS):  # linked by numbers that are not 0, for 0 ends a list
            self._headers[3 * (index + 1)] = index + 2 if index + 1 < _PACKETS else 0
        self._buffer[:6] = [
            ctypes.addressof(self._headers), ctypes.addressof(self._payloads), ctypes.addressof(self._doorbell),
            1, 0, 2 * _PACKETS - 1,
        ]  # fmt: skip

    @property
    def address(self) -> int:
        """For the kernel's hidden argument."""
        return ctypes.addressof(self._buffer)

    def serve(self) -> None:
        """Answers all packets that are ready."""
        ready, self._buffer[4] = self._buffer[4], 0
        while ready:
            index = ready & (2 * _PACKETS - 1)
            ready, mask, call = self._headers[3 * index : 3 * index + 3]
            service = call & 0xFFFFFFFF
            if service != _PRINTF:
                raise EmulationError(f"a hostcall of the unknown service {service}")
            for lane in range(64):
                if mask >> lane & 1:
                    self._printf(512 * index + 8 * lane)
            self._headers[3 * index + 2] = service  # no longer ready

    def _printf(self, at: int) -> None:
        descriptor = self._payloads[at]
        number = descriptor >> 8
        if descriptor & _BEGIN:
            number = next(n for n in range(1, 1 << 20) if n not in self._messages)
            self._messages[number] = []
            descriptor = descriptor & 0xFF & ~_BEGIN | number << 8
        count = descriptor >> 5 & 7
        self._messages[number] += self._payloads[at + 1 : at + 1 + count]
        self._payloads[at] = descriptor
        if descriptor & _END:
            self.output += formatted(self._messages.pop(number)[1:])


def formatted(words: list[int]) -> str:
    """A message: the format's text, padded to words, then a word per argument."""
    data = struct.pack(f"<{len(words)}Q", *words)
    text, _, _ = data.partition(b"\0")
    arguments = iter(words[len(text) // 8 + 1 :])

    def one(found: re.Match[str]) -> str:
        conversion = found.group()
        if conversion == "%%":
            return "%"
        if conversion.endswith("s"):
            raise EmulationError("a string as an argument of printf")
        widths = [ctypes.c_int(next(arguments) & 0xFFFFFFFF) for _ in range(conversion.count("*"))]
        word = struct.pack("<Q", next(arguments))
        is_float = conversion[-1] in "fFeEgGaA"
        value = (
            ctypes.c_double(*struct.unpack("<d", word)) if is_float else ctypes.c_longlong(*struct.unpack("<q", word))
        )
        result = ctypes.create_string_buffer(512)
        _libc.snprintf(result, 512, conversion.encode(), *widths, value)
        return result.value.decode()

    return _CONVERSION.sub(one, text.decode())
