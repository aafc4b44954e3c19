"""Random functions of integer tensors, with loops, branches and parts of tensors, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from emulator.running import running_on
from randomized.tensor_flow import generate
from randomized.tensors import Function


@pytest.mark.parametrize(
    ("target", "start", "count"),
    [("host", 0, 24), ("host,O=0", 0, 24), ("sm_90", 1000, 12), ("gfx942", 1000, 12), ("gfx1100", 1000, 12)],
)
def test_tensors(target: str, start: int, count: int) -> None:
    check(target, [generate(seed) for seed in range(start, start + count)])


def test_long_functions() -> None:
    """Whose chains are cut where they get memory."""
    check("host", [generate(seed, fewest=50, most=80) for seed in range(3000, 3008)])


def check(target: str, functions: Sequence[Function]) -> None:
    """Their results, and that their arguments stay as they are."""
    with running_on(target, "".join(function.text for function in functions)) as library:
        for function in functions:
            given = function.inputs()  # in host memory, as some functions read elements there
            found = getattr(library, function.name)(*given)
            arrays = found if isinstance(found, tuple) else (found,)
            for place, (array, wanted) in enumerate(zip(arrays, function.expected(), strict=True)):
                np.testing.assert_array_equal(array.numpy(), wanted, f"result {place} of\n{function.text}")
            for place, (array, wanted) in enumerate(zip(given, function.inputs(), strict=True)):
                np.testing.assert_array_equal(array, wanted, f"argument {place} of\n{function.text}")
