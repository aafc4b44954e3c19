"""What hardware forbids, or leaves to chance, is an error where PTX is executed on the CPU."""

from __future__ import annotations

import ctypes

import pytest
from emulator.errors import EmulationError
from emulator.memory import Memory
from ptx.program import Program

MODULE = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0) {{
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .shared .align 8 .b8 held[256];
  ld.param.b64 %rd1, [k_param_0];
  mov.u32 %r1, %tid.x;
  mov.b64 %rd2, held;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  mul.wide.s32 %rd5, %r1, -4;
  add.s64 %rd6, %rd2, %rd5;
  setp.lt.u32 %p1, %r1, 16;
  {body}
  ret;
}}
"""


def run(body: str, threads: int = 64) -> bytes:
    """Runs a block of threads with 256 bytes of memory; they have been 1 each."""
    memory = Memory()
    held = (ctypes.c_uint8 * 256)(*[1] * 256)
    address = ctypes.c_uint64(ctypes.addressof(held))
    memory.add(address.value, 256, "the argument")
    program = Program(MODULE.format(body=body), memory, print)
    program.launch(program.kernels["k"], (1, 1, 1), (threads, 1, 1), 0, (1, 1, 1), [ctypes.addressof(address)])
    return bytes(held)


WRONG = {
    "another warp wrote otherwise": "st.shared.b32 [held], %r1;",
    "another warp wrote since": "mov.b32 %r2, 7; st.shared.b32 [held], %r2; ld.shared.b32 %r2, [held];",
    "another warp wrote": "st.shared.b32 [%rd4], %r1; ld.shared.b32 %r2, [%rd6+252];",
    "another warp read": "ld.shared.b32 %r2, [%rd6+252]; st.shared.b32 [%rd4], %r1;",
    "not a multiple of 4": "ld.global.b32 %r2, [%rd1+2];",
    "outside of all allocations": "st.global.b32 [%rd1+256], %r1;",
    "256 bytes of shared memory": "ld.shared.b32 %r2, [%rd4+4];",
    "threads wait for others": "@%p1 bar.sync 0; @%p1 ret; bar.sync 1;",
    "threads wait for others, which do not come": "@%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; bar.sync 0;",
    "a lane that its own mask of members does not have": "shfl.sync.bfly.b32 %r2, %r1, 1, 31, 65535;",
    "it was not initialised": "mbarrier.try_wait.parity.shared.b64 %p2, [held], 0;",
    "no instruction": "tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];",
    "the program aborted": "trap;",
}


@pytest.mark.parametrize("message", WRONG)
def test_faults(message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(WRONG[message])


@pytest.mark.parametrize(
    "body",
    [
        "st.shared.b32 [%rd4], %r1; bar.sync 0; ld.shared.b32 %r2, [%rd6+252];",
        "ld.shared.b32 %r2, [%rd6+252]; bar.sync 0; st.shared.b32 [%rd4], %r1;",
        "mov.b32 %r2, 7; st.shared.b32 [held], %r2; st.shared.b32 [held], %r2;",
        "atom.shared.add.u32 %r2, [held], 1;",
        "shr.u32 %r2, %r1, 6; st.shared.b32 [held], %r2; bar.sync 0; ld.shared.b32 %r2, [held];",
        "@%p1 st.shared.b32 [held], %r1; @%p1 ld.shared.b32 %r2, [held];",
        "st.volatile.shared.b32 [held], %r1;",
        "@%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, 65535;",
    ],
)
def test_what_is_right(body: str) -> None:
    run(body)


def test_copies_come_when_they_are_waited_for() -> None:
    copy = "cp.async.ca.shared.global [held], [%rd1], 4; cp.async.commit_group;"
    keep = "ld.shared.b32 %r2, [held]; st.global.b32 [%rd1+8], %r2;"
    clear = "mov.b32 %r2, 0; st.shared.b32 [held], %r2;"
    assert run(f"{clear}{copy}{keep}", threads=1)[8] == 0
    assert run(f"{clear}{copy}cp.async.wait_group 0;{keep}", threads=1)[8] == 1
