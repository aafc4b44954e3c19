"""Constants of 64 bits in AMD's scalar registers: LLVM 22 loses half of some."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiling import emit_text
from emulator.driver import shared
from emulator.on_device import compiled

# The last row is outside of %x: -3.0 is in %r and in the smallest number, one of which gets a copy of the constant.
TEXT = """
gpu.module @m {
  gpu.func @k(%x: memref<1x5x2xf64>, %out: memref<5xf64>, %least: memref<?x?xf64>, %zero: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %from = arith.addi %c1, %zero : index
    %outside = arith.constant -3.0 : f64
    %mask = arith.constant dense<true> : vector<5x1xi1>
    %v = vector.transfer_read %x[%c0, %from, %c0], %outside, %mask
      {permutation_map = affine_map<(d0, d1, d2) -> (d2, d1)>, in_bounds = [true, false]}
      : memref<1x5x2xf64>, vector<1x5xf64>
    %same = arith.maximumf %v, %v : vector<1x5xf64>
    %start = arith.constant dense<9.0> : vector<1xf64>
    %smallest = vector.multi_reduction <minimumf>, %v, %start [1] : vector<1x5xf64> to vector<1xf64>
    %at = arith.addi %c1, %zero : index
    vector.transfer_write %smallest, %least[%at, %at] {in_bounds = [false]} : vector<1xf64>, memref<?x?xf64>
    %r = vector.extract %same[0] : vector<5xf64> from vector<1x5xf64>
    vector.store %r, %out[%zero] : memref<5xf64>, vector<5xf64>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx942,O=0"])
def test_both_halves_are_there(target: str) -> None:
    with shared().chip(target.split(",")[0]):
        library = compiled(TEXT, target)
        library.auto_stage = True
        x, out, least = np.arange(10.0).reshape(1, 5, 2), np.zeros(5), np.zeros((2, 2))
        library.kernels.k[1, 1](x, out, least, 0)
    shared().check()
    np.testing.assert_array_equal(out, [2, 4, 6, 8, -3])
    assert least[1, 1] == -3


@pytest.mark.parametrize("chip", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_no_move_holds_more_than_it_can(chip: str) -> None:
    assert not re.search(r"s_mov_b64 .*, 0x[0-9a-f]{9,}", emit_text(TEXT, "isa", [f"rocdl:{chip}"]))
