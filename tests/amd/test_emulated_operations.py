"""The operations' table executed as AMD machine code, instruction by instruction, on the CPU (tests/emulator).

Every run takes a part of the cases for each family of chips; ``--full`` takes all of them for all families.
"""

from __future__ import annotations

import pytest
from emulator.cases import Table
from operations import Case

TABLE = Table(
    "rocdl",
    # One of a family each.
    {
        "gfx90a": 64,
        "gfx942": 64,
        "gfx950": 64,
        "gfx1100": 32,
        "gfx1100,wave64": 64,
        "gfx1201": 32,
        "gfx1201,wave64": 64,
    },
    {"gpu.launch, clusters": "refused when it is launched: HIP has none"},
    # Where AMD's libraries, the lowering or the emulator were once wrong.
    {("arith.remf", "f16"), ("math.expm1", "f32"), ("math.log1p", "f64"), ("gpu.shuffle", "xor up down idx, i32")},
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    TABLE.parametrize(metafunc)


def test_operation(chip: str, case: Case) -> None:
    TABLE.run(case, chip)
