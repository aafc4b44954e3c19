"""Blocks of many loads and stores: LLVM 22's last scheduler for AMD's chips sees them in parts, as it takes seconds for
hundreds."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.driver import shared
from emulator.on_device import compiled


def doubling(elements: int) -> str:
    """A kernel of one block of code that doubles so many elements."""
    body = "".join(
        f"""
    %c{k} = arith.constant {k} : index
    %a{k} = arith.addi %first, %c{k} : index
    %v{k} = memref.load %x[%a{k}] : memref<?xf32>
    %w{k} = arith.addf %v{k}, %v{k} : f32
    memref.store %w{k}, %y[%a{k}] : memref<?xf32>"""
        for k in range(elements)
    )
    return f"""
gpu.module @m {{
  gpu.func @k(%x: memref<?xf32>, %y: memref<?xf32>) kernel {{
    %t = gpu.thread_id x
    %each = arith.constant {elements} : index
    %first = arith.muli %t, %each : index{body}
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_results(chip: str) -> None:
    """Six hundred accesses are five parts, in whose order nothing is lost."""
    x, y = np.arange(64 * 300, dtype=np.float32), np.zeros(64 * 300, np.float32)
    with shared().chip(chip):
        library = compiled(doubling(300), chip)
        library.auto_stage = True
        library.kernels.k[1, 64](x, y)
    shared().check()
    np.testing.assert_array_equal(y, 2 * x)
