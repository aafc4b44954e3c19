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
# Products of matrices: the number of one with operands as wide.
_VOP3P = {
    number: (like, Operation(f"V_MFMA_{name}"))
    for number, like, name in (
        (0x54, 0x4C, "I32_32X32X8_I8"), (0x55, 0x4D, "I32_16X16X16_I8"), (0x63, 0x5D, "F32_32X32X4_2B_BF16"),
        (0x64, 0x5E, "F32_16X16X4_4B_BF16"), (0x65, 0x5F, "F32_4X4X4_16B_BF16"), (0x66, 0x60, "F32_32X32X8_BF16"),
        (0x67, 0x61, "F32_16X16X16_BF16"), (0x68, 0x40, "F32_32X32X2_2B_BF16"), (0x69, 0x41, "F32_16X16X2_4B_BF16"),
        (0x6B, 0x42, "F32_4X4X2_16B_BF16"), (0x6C, 0x44, "F32_32X32X4_BF16"), (0x6D, 0x45, "F32_16X16X8_BF16"),
    )
}  # fmt: skip
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
        if word >> 23 == 0x1A7:
            numbers, mask = _VOP3P, 0x7F
    else:
        return data, None
    number, operation = numbers.get(word >> lowest & mask, (None, None))
    if number is None:
        return data, None
    return (word & ~(mask << lowest) | number << lowest).to_bytes(4, "little") + data[4:], operation
