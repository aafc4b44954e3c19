"""Instructions of gfx90a that later chips lack: the tables, which are of these, call the numbers free."""

from __future__ import annotations

from typing import Any, NamedTuple

CHIPS = ("gfx90a",)

# buffer_wbinvl1_vol: what waves wrote and read goes to memory and comes from it, as here it always does.
_INVALIDATE = (0xFFFC0000, 0xE0FC0000)
INVALIDATE_SIZE = 8


class Operation(NamedTuple):
    """An operation that the tables lack."""

    name: str


DESCRIPTIONS = {
    Operation("V_MAD_F32"): "D0.f32 = S0.f32 * S1.f32 + S2.f32",
    Operation("V_MAC_F32"): "D0.f32 = S0.f32 * S1.f32 + D0.f32",
    Operation("V_MADMK_F32"): "D0.f32 = S0.f32 * SIMM32.f32 + S1.f32",
    Operation("V_MADAK_F32"): "D0.f32 = S0.f32 * S1.f32 + SIMM32.f32",
}
# By its number in an encoding: the one of the fused operation with the same operands, which the tables have.
_MAD, _MAC, _MADMK, _MADAK = DESCRIPTIONS
_VOP2 = {22: (59, _MAC), 23: (23, _MADMK), 24: (24, _MADAK)}
_VOP3 = {449: (459, _MAD), 278: (315, _MAC)}


def is_invalidate(data: bytes) -> bool:
    """Is it the instruction that has no effect here?"""
    mask, wanted = _INVALIDATE
    return int.from_bytes(data[:4], "little") & mask == wanted


def known(data: bytes) -> tuple[bytes, Any]:
    """The instruction as one that the tables have, and the operation that it stands for; None where it is itself."""
    word = int.from_bytes(data[:4], "little")
    if word >> 31 == 0:
        numbers, lowest, mask = _VOP2, 25, 0x3F
    elif word >> 26 == 0x34:
        numbers, lowest, mask = _VOP3, 16, 0x3FF
    else:
        return data, None
    number, operation = numbers.get(word >> lowest & mask, (None, None))
    if number is None:
        return data, None
    return (word & ~(mask << lowest) | number << lowest).to_bytes(4, "little") + data[4:], operation
