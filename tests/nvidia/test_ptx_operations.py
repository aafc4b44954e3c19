"""The operations' table executed as PTX, instruction by instruction, on the CPU (tests/ptx).

Every run takes a part of the cases for each generation of chips; ``--full`` takes all of them for all.
"""

from __future__ import annotations

import pytest
from emulator.cases import Table
from operations import Case

TABLE = Table(
    "nvvm",
    dict.fromkeys(("sm_75", "sm_80", "sm_90", "sm_100"), 32),
    {"gpu.binary": "machine code", "gpu.module": "machine code"},
    # Where LLVM, NVIDIA's library or the emulator were once wrong.
    {
        ("arith.sitofp", "i1 to bf16"),
        ("math.fpowi", "f32, i16"),
        ("math.sin", "f32"),
        ("gpu.subgroup_broadcast", "first_active_lane, in a function that both sides of a branch call"),
    },
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    TABLE.parametrize(metafunc)


def test_operation(chip: str, case: Case) -> None:
    TABLE.run(case, chip)
