"""bench/hardware's product of a sparse matrix: whatever lengths its rows have."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from compiling import ROOT, on_host

sys.path.append(str(ROOT / "bench"))
from hardware import ours

SOURCE = ours.kernel_program("spmv").text
ROWS = 56
"""Of a block."""

LENGTHS = {
    "few": [3, 0, 1],
    "none": [0, 0, 0, 0],
    "as many as a step takes, and more": [1024, 5, 1020, 0, 3000, 7],
    "blocks of unequal rows": [k % 29 for k in range(3 * ROWS + 1)],
    "empty blocks": [0] * ROWS + [2] + [0] * (2 * ROWS),
}


@pytest.mark.parametrize("left", range(4))
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_rows_of_any_length(lengths: list[int], left: int) -> None:
    """Also where the arrays end ``left`` entries after a run of four."""
    lengths = [*lengths, 4 - sum(lengths) % 4 + left]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    random = np.random.default_rng(left)
    columns = random.integers(0, len(lengths), starts[-1], dtype=np.int32)
    values, x = (random.integers(-8, 9, size).astype(np.float32) for size in (starts[-1], len(lengths)))
    y = np.full(len(lengths), np.nan, np.float32)
    on_host(SOURCE).kernels.spmv[-(-len(lengths) // ROWS), 128](starts, columns, values, x, y)
    products = values * x[columns]
    np.testing.assert_array_equal(y, [products[a:b].sum() for a, b in itertools.pairwise(starts)])
