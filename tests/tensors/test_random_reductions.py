"""Random reductions, of which some are what threads may share out and others are nearly that, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from compiling import emit_text
from emulator.running import running_on
from randomized.reductions import Program, generate


def module(programs: list[Program]) -> str:
    return "".join(program.text for program in programs)


@pytest.mark.parametrize(
    ("target", "start", "count", "most"), [("host", 0, 16, 40000), ("gfx1100", 100, 14, 1000), ("sm_86", 200, 14, 1000)]
)
def test_reductions(target: str, start: int, count: int, most: int) -> None:
    programs = [each for each in map(generate, range(start, start + count)) if each.shape[0] * each.shape[1] < most]
    with running_on(target, module(programs)) as library:
        for program in programs:
            found = getattr(library, program.name)(library.device.array(program.argument()))
            arrays = found if isinstance(found, tuple) else (found,)
            for place, (array, wanted) in enumerate(zip(arrays, program.expected(), strict=True)):
                np.testing.assert_array_equal(array.numpy(), wanted, f"result {place} of\n{program.text}")


def test_some_are_shared_out() -> None:
    """Among the threads of a subgroup, and others are not."""
    shared = ["gpu.shuffle" in emit_text(generate(seed).text, "kernels") for seed in range(12)]
    assert 0 < sum(shared) < len(shared)
