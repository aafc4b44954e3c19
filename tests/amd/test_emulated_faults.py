"""What the emulator must notice: accesses outside of memory, waves at different barriers; and what it computes with."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from emulator import counting, manual_math, trig_preop
from emulator.driver import Driver, shared
from emulator.errors import EmulationError
from emulator.manual_compile import meaning
from emulator.manual_text import ManualError, parse
from emulator.memory import Memory
from emulator.on_device import OnDevice

import offload
from offload.errors import DeviceError


@pytest.fixture
def gfx942() -> Iterator[Driver]:
    with shared().chip("gfx942") as driver:
        yield driver
    driver.check()


def kernels(body: str, outside: str = "") -> OnDevice:
    source = (
        f"gpu.module @m {{ {outside} gpu.func @k(%x: memref<?xi32>, %n: index) kernel {{\n"
        f"%t = gpu.thread_id x\n{body}\ngpu.return }} }}"
    )
    library = offload.compile(source, targets=["rocdl:gfx942"])
    library.use("hip")
    return OnDevice(library)


def refused(driver: Driver, library: OnDevice, words: str, *arguments: object) -> None:
    with pytest.raises(DeviceError, match='launch of the kernel "k"'):
        library.kernels.k[1, 64](*arguments)
    error = driver.failures.pop()
    assert isinstance(error, EmulationError)
    assert words in str(error)
    assert "gfx942 k+0x" in str(error)


LOAD = "%v = memref.load %x[%i] : memref<?xi32>\nmemref.store %v, %x[%t] : memref<?xi32>"
STORE = "%v = arith.constant 5 : i32\nmemref.store %v, %x[%i] : memref<?xi32>"


@pytest.mark.parametrize("access", [LOAD, STORE], ids=["load", "store"])
def test_accesses_outside_of_allocations(gfx942: Driver, access: str) -> None:
    library = kernels(f"%i = arith.addi %t, %n : index\n{access}")
    x = np.zeros(64, np.int32)
    library.kernels.k[1, 64](x, 0)
    gfx942.check()
    refused(gfx942, library, "bytes after the end of an allocation of 256 bytes", x, 1)


def test_accesses_outside_of_local_data(gfx942: Driver) -> None:
    library = kernels(
        "%l = memref.get_global @l : memref<64xi32, 3>\n%i = arith.addi %t, %n : index\n"
        "%w = memref.load %x[%t] : memref<?xi32>\nmemref.store %w, %l[%t] : memref<64xi32, 3>\ngpu.barrier\n"
        "%v = memref.load %l[%i] : memref<64xi32, 3>\nmemref.store %v, %x[%t] : memref<?xi32>",
        "memref.global @l : memref<64xi32, 3> = uninitialized",
    )
    x = np.zeros(64, np.int32)
    library.kernels.k[1, 64](x, 0)
    refused(gfx942, library, "of 256 bytes of local data share", x, 1)


def test_atomic_operations_that_are_not_aligned(gfx942: Driver) -> None:
    x = np.zeros(65, np.int32)
    library = kernels(
        "%v = arith.constant 5 : i32\n%o = memref.atomic_rmw addi %v, %x[%t] : (i32, memref<?xi32>) -> i32"
    )
    there = library.device.array(x.view(np.uint8))
    odd = type(there)(there._memory, there.pointer + 1, np.dtype(np.int32), (64,), owner=there)
    refused(gfx942, library, "which is not a multiple of 4", odd, 0)


@pytest.mark.parametrize(
    "instruction",
    [
        "v_cvt_pkrtz_f16_f32 $0, $1, $1 clamp",
        "v_rndne_f32_sdwa $0, $1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
        "v_frexp_exp_i32_f32_dpp $0, $1 row_shr:1 row_mask:0xf bank_mask:0xf",
        "v_frexp_exp_i32_f32_dpp $0, $1 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0x3 bound_ctrl:0",
    ],
)
def test_modifiers_that_are_not_known(gfx942: Driver, instruction: str) -> None:
    """Of instructions that are written by hand, since their descriptions do not do."""
    library = kernels(
        f'%v = memref.load %x[%t] : memref<?xi32>\n%r = llvm.inline_asm "{instruction}", "=&v,v" %v : (i32) -> i32\n'
        "memref.store %r, %x[%t] : memref<?xi32>"
    )
    refused(gfx942, library, "modifiers of v_", np.zeros(64, np.int32), 0)


def test_memory_knows_its_ranges() -> None:
    memory, held = Memory(), np.arange(16, dtype=np.uint8)
    start = held.ctypes.data
    memory.add(start, 16, "the array")
    assert memory.read(start + 4, 4) == bytes([4, 5, 6, 7])
    addresses = np.array([start, start + 12], np.uint64)
    np.testing.assert_array_equal(memory.gather(addresses, 4), held[[[0, 1, 2, 3], [12, 13, 14, 15]]])
    with pytest.raises(EmulationError, match=r"a read of 4 bytes .* -3 bytes after the end of the array of 16 bytes"):
        memory.gather(addresses + np.uint64(1), 4)
    memory.remove(start)
    with pytest.raises(EmulationError, match="outside of all allocations"):
        memory.read(start, 1)


def test_memory_that_is_freed_while_other_memory_becomes_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage collection may come at any time."""
    memory, held = Memory(), np.arange(64, dtype=np.uint8)
    start = held.ctypes.data
    memory.add(start, 16, "freed soon")
    made = np.frombuffer

    def freeing(*arguments: Any) -> Any:
        memory.remove(start)
        return made(*arguments)

    memory.add(start + 48, 16, "behind")
    monkeypatch.setattr("emulator.memory.np.frombuffer", freeing)
    memory.add(start + 32, 16, "between")
    monkeypatch.undo()
    assert memory.read(start + 32, 1) == bytes([32])
    assert memory.read(start + 48, 1) == bytes([48])


def run(text: str, *sources: object) -> np.ndarray:
    """The first output of a description."""
    made = meaning("test", text, {"D0": 32, "S0": 32, "S1": 32, "S2": 32}, lambda name: "")
    lanes = type("Lanes", (), {"lane": np.arange(4, dtype=np.uint32), "all_lanes": np.ones(4, bool)})
    padded = [np.asarray(source) for source in sources] + [None] * (3 - len(sources))
    return made.run(lanes, None, *padded, np.zeros(4, np.uint32), None)[0]


def test_descriptions_become_functions() -> None:
    x = np.array([5, 0xFFFFFFFF, 1 << 31, 7], np.uint32)
    y = np.array([3, 1, 1, 9], np.uint32)
    np.testing.assert_array_equal(run("D0.u32 = S0.u32 + S1.u32", x, y), x + y)
    np.testing.assert_array_equal(
        run("D0.i32 = S0.i32 < S1.i32 ? S0.i32 : S1.i32", x, y).view(np.int32), [3, -1, -(2**31), 7]
    )
    branches = "if S0.i32 < 0 then\nD0.u32 = 1U\nelsif S0.u32 == 5U then\nD0.u32 = 2U\nelse\nD0.u32 = 3U\nendif"
    np.testing.assert_array_equal(run(branches, x), [2, 1, 1, 3])
    first_one = "D0.i32 = -1;\nfor i in 0 : 31 do\nif S0.u32[i] == 1'1U then\nD0.i32 = i;\nbreak\nendif\nendfor"
    np.testing.assert_array_equal(run(first_one, x), [0, 0, 31, 0])
    np.testing.assert_array_equal(
        run("D0 = { S1[15 : 0].u16, S0[31 : 16].u16 }", x, y), [3 << 16, 0x1FFFF, 0x18000, 9 << 16]
    )
    zeros = np.array([0.0, -0.0, 1.0, np.nan], np.float32)
    negative = run("D0.u32 = 64'F(S0.f32) == -0.0 ? 1U : 64'F(S0.f32) == +0.0 ? 2U : 3U", zeros.view(np.uint32))
    np.testing.assert_array_equal(negative, [2, 1, 3, 3])
    with pytest.raises(ManualError, match="an unknown name: NOBODY"):
        run("D0.u32 = NOBODY.u32", x)
    with pytest.raises(ManualError, match="expected"):
        parse("D0.u32 = (S0.u32")


def test_fma_is_rounded_once() -> None:
    generator = np.random.default_rng(6)
    for dtype in (np.float16, np.float32, np.float64):
        a, b, c = (generator.standard_normal(500).astype(dtype) for _ in range(3))
        c[:250] = -(a[:250].astype(np.float64) * b[:250].astype(np.float64)).astype(dtype)  # what remains is small
        exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
        got = manual_math.fma(a, b, c)
        for value, right in zip(got, exact, strict=True):
            near = [np.nextafter(value, dtype(side)) for side in (-np.inf, np.inf)]
            distance = abs(Fraction(float(value)) - right)
            assert all(distance <= abs(Fraction(float(other)) - right) for other in near)


def test_counting() -> None:
    for dtype, bits in ((np.uint32, 32), (np.uint64, 64)):
        x = np.array([0, 1, 6, 1 << (bits - 1), (1 << bits) - 1, (1 << (bits - 1)) - 1], dtype)
        assert counting.lowest(x).tolist() == [-1, 0, 1, bits - 1, 0, 0]
        assert counting.highest(x).tolist() == [-1, bits - 1, bits - 3, 0, 0, 1]
        assert counting.sign_length(x).tolist() == [-1, bits - 1, bits - 3, 1, -1, 1]


def test_bits_of_two_over_pi() -> None:
    assert trig_preop._part(1023, 0) == pytest.approx(2 / np.pi, abs=2**-52)
    second = trig_preop._part(1023, 1)
    assert 0 <= second < 2**-53
