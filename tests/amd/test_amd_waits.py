"""What lets AMD machine code wait too little, instruction by instruction (amd_waits.py)."""

from __future__ import annotations

import pytest
from amd_waits import of_function

GLOBAL = {"gfx9": "global_load_dword v1, v0, s[0:1]", "gfx1": "global_load_b32 v1, v0, s[0:1]"}
STORES = {"gfx9": "global_store_dword v0, v5, s[0:1]", "gfx1": "global_store_b32 v0, v5, s[0:1]"}
USE = "v_add_u32_e32 v2, v1, v1"


def problems(chip: str, *texts: str) -> list[str]:
    """Names of the registers that are not there."""
    listed = {4 * place: (text, 4) for place, text in enumerate([*texts, "s_endpgm"])}
    return [told.partition("does not wait for ")[2] for told in of_function(listed, chip)]


@pytest.mark.parametrize(
    ("chip", "wait", "wanted"),
    [("gfx942", "s_waitcnt vmcnt({})", []), ("gfx1030", "s_waitcnt vmcnt({})", ["v1"]),
     ("gfx1100", "s_waitcnt vmcnt({})", ["v1"]), ("gfx1201", "s_wait_loadcnt 0x{}", ["v1"])],
)  # fmt: skip
@pytest.mark.parametrize("other", ["store", "atomic"])
def test_stores_are_counted_apart(chip: str, wait: str, wanted: list[str], other: str) -> None:
    """Since gfx10, and atomic operations without a result with them."""
    family = chip[:4]
    after = STORES[family] if other == "store" else "global_atomic_add_u32 v0, v5, s[0:1]"
    assert problems(chip, GLOBAL[family], after, wait.format(1), USE) == wanted
    assert problems(chip, GLOBAL[family], after, wait.format(0), USE) == []


def test_accesses_that_overtake_others() -> None:
    local, scalar = "ds_read_b32 v1, v0", "s_load_dword s4, s[0:1], 0x0"
    flat = "flat_load_dword v3, v[4:5]"
    assert problems("gfx942", local, "ds_read_b32 v3, v0", "s_waitcnt lgkmcnt(1)", USE) == []
    assert problems("gfx942", local, scalar, "s_waitcnt lgkmcnt(1)", USE) == ["v1"]
    assert problems("gfx942", local, flat, "s_waitcnt lgkmcnt(1)", USE) == ["v1"]
    assert problems("gfx942", GLOBAL["gfx9"], flat, "s_waitcnt vmcnt(1)", USE) == ["v1"]
    assert problems("gfx942", GLOBAL["gfx9"], flat, "s_waitcnt vmcnt(0)", USE) == []
    assert problems("gfx942", GLOBAL["gfx9"], GLOBAL["gfx9"], "s_waitcnt vmcnt(0)", USE) == []
    assert problems("gfx942", scalar, scalar, "s_waitcnt lgkmcnt(0)") == ["s4"]
    assert problems("gfx942", flat, flat, "s_waitcnt vmcnt(0) lgkmcnt(0)") == ["v3"]


@pytest.mark.parametrize(
    ("loaded", "use", "wanted"),
    [
        ("vcc_lo", "s_add_i32 s4, vcc_lo, 1", "vcc_lo"),
        ("vcc", "s_add_i32 s4, vcc_hi, 1", "vcc_hi"),
        ("vcc", "s_cbranch_vccz 1", "vcc_hi, vcc_lo"),
        ("vcc", "v_div_fmas_f32 v2, v3, v4, v5", "vcc_hi, vcc_lo"),
    ],
)
def test_vcc_is_two_registers(loaded: str, use: str, wanted: str) -> None:
    load = f"s_load_dword{'x2' if loaded == 'vcc' else ''} {loaded}, s[0:1], 0x0"
    assert problems("gfx942", load, use, "s_nop 0") == [wanted]
    assert problems("gfx942", load, "s_waitcnt lgkmcnt(0)", use, "s_nop 0") == []
