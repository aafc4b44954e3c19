"""Single instructions of PTX, executed on the CPU, against what PTX's description says of them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emulator.memory import Memory
from ptx.program import Program

MODULE = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) {{
  .reg .pred %p<3>;
  .reg .b16 %h<5>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<9>;
  .shared .align 4 .b8 held[4];
  ld.param.b64 %rd1, [k_param_0];
  ld.param.b64 %rd2, [k_param_1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, {given};
  add.s64 %rd3, %rd1, %rd3;
  mul.wide.u32 %rd4, %r1, {made};
  add.s64 %rd4, %rd2, %rd4;
  {body}
  ret;
}}
"""


def run(body: str, x: np.ndarray, made: type[np.generic]) -> np.ndarray:
    """A thread for each of the numbers, which are at %rd3; their results, first 0, are at %rd4."""
    memory, x, result = Memory(), x.copy(), np.zeros(x.size, made)
    for array in (x, result):
        memory.add(array.ctypes.data, array.nbytes, "the argument")
    program = Program(MODULE.format(body=body, given=x.itemsize, made=result.itemsize), memory, print)
    pointers = [ctypes.c_uint64(array.ctypes.data) for array in (x, result)]
    program.launch(
        program.kernels["k"], (1, 1, 1), (x.size, 1, 1), 0, (1, 1, 1), [ctypes.addressof(each) for each in pointers]
    )
    return result


SUBNORMAL = np.array([2**-24, -(2**-15), 2**-14, 3 * 2**-15, 1.0, -0.0], np.float16)
"""Two subnormal numbers of f16, the smallest normal one, and others."""


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("add{}.f16 %h2, %h1, %h1;", [0.0, -0.0, 2**-13, 3 * 2**-14, 2.0, -0.0]),
        ("mov.b16 %h3, 0x3800; mul{}.f16 %h2, %h1, %h3;", [0.0, -0.0, 0.0, 0.0, 0.5, -0.0]),
        ("mov.b16 %h3, 0x3C00; fma.rn{}.f16 %h2, %h1, %h3, %h1;", [0.0, -0.0, 2**-13, 3 * 2**-14, 2.0, -0.0]),
        ("max{}.f16 %h2, %h1, %h1;", [0.0, -0.0, 2**-14, 3 * 2**-15, 1.0, -0.0]),
        ("abs{}.f16 %h2, %h1;", [0.0, 0.0, 2**-14, 3 * 2**-15, 1.0, 0.0]),
        (
            "mov.b16 %h3, 0; mov.b32 %r2, {{%h3, %h1}}; add{}.f16x2 %r2, %r2, %r2; mov.b32 {{%h3, %h2}}, %r2;",
            [0.0, -0.0, 2**-13, 3 * 2**-14, 2.0, -0.0],
        ),
        (
            "mov.b16 %h3, 0; mov.b16 %h4, 0x3C00; setp.eq{}.f16 %p1, %h1, %h3; selp.b16 %h2, %h4, %h3, %p1;",
            [1.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        ),
    ],
)
def test_subnormal_halves(operation: str, wanted: list[float]) -> None:
    body = "ld.global.b16 %h1, [%rd3]; {} st.global.b16 [%rd4], %h2;"
    found = run(body.format(operation.format(".ftz")), SUBNORMAL, np.float16)
    np.testing.assert_array_equal(found.view(np.uint16), np.array(wanted, np.float16).view(np.uint16))
    kept = run(body.format(operation.format("")), SUBNORMAL, np.float16)
    assert (kept.view(np.uint16) != found.view(np.uint16)).any()


def test_conversions_keep_subnormal_halves() -> None:
    """Their .ftz is about f32."""
    wide = run("ld.global.b16 %h1, [%rd3]; cvt.ftz.f32.f16 %r2, %h1; st.global.b32 [%rd4], %r2;", SUBNORMAL, np.float32)
    np.testing.assert_array_equal(wide, SUBNORMAL.astype(np.float32))
    back = run("ld.global.b32 %r2, [%rd3]; cvt.rn.ftz.f16.f32 %h1, %r2; st.global.b16 [%rd4], %h1;", wide, np.float16)
    np.testing.assert_array_equal(back, SUBNORMAL)


@pytest.mark.parametrize(
    ("space", "address", "kept"),
    [("global.", "%rd3", False), ("", "%rd3", False), ("shared.", "held", True), ("", "%rd5", True)],
)
def test_atomic_sums_of_subnormal_numbers(space: str, address: str, kept: bool) -> None:
    """They are flushed in the GPU's memory, and kept in a block's."""
    x = np.array([-1e-40], np.float32)
    body = f"""
    mov.b64 %rd5, held; cvta.shared.u64 %rd5, %rd5; ld.global.b32 %r2, [%rd3]; st.shared.b32 [held], %r2;
    mov.b32 %r3, 1; atom.{space}add.f32 %r4, [{address}], %r3;
    ld{".shared" if kept else ".global"}.b32 %r2, [{"held" if kept else "%rd3"}]; st.global.b32 [%rd4], %r2;"""
    wanted = x + np.uint32(1).view(np.float32) if kept else np.zeros(1, np.float32)  # -0 and 0
    np.testing.assert_array_equal(run(body, x, np.float32).view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize(
    ("given", "made", "wanted"),
    [("f32", "s32", 0), ("f16", "u32", 0), ("f64", "s32", 1 << 31), ("f64", "u32", 1 << 31), ("f32", "s64", 1 << 63),
     ("f32", "u64", 1 << 63), ("f64", "s64", 1 << 63), ("f16", "s64", 1 << 63), ("f64", "s16", 1 << 15)],
)  # fmt: skip
def test_integers_of_what_is_no_number(given: str, made: str, wanted: int) -> None:
    registers = {"16": "%h", "32": "%r", "64": "%rd"}
    x, y = f"{registers[given[1:]]}1", f"{registers[made[1:]]}2"
    body = f"""
    ld.global.b{given[1:]} {x}, [%rd3]; cvt.rzi.{made}.{given} {y}, {x}; st.global.b{made[1:]} [%rd4], {y};"""
    found = run(body, np.array([np.nan], f"f{int(given[1:]) // 8}"), np.dtype(f"u{int(made[1:]) // 8}").type)
    assert found.tolist() == [wanted]
