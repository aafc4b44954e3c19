"""Numbers each of which is made of the one before in two ways. LLVM 22 follows each way by itself in two places, and
each number doubled the time: its vectorizer, from what all iterations of a host function's loop load, and its
propagation of constants, from what counts the iterations."""

from __future__ import annotations

import time

import numpy as np
import pytest
from compiling import emit, on_host

LOADED = "%v0 = memref.load %x[%c0] : memref<?xindex>"
COUNTED = "%v0 = arith.subi %i, %three : index"
STEPS = {
    "squares": (LOADED, "%m{k} = arith.muli %v{k}, %v{k} : index", "arith.addi %m{k}, %three : index"),
    "smaller": (LOADED, "%m{k} = arith.muli %v{k}, %three : index", "arith.minsi %m{k}, %v{k} : index"),
    "distances": (
        COUNTED,
        "%m{k} = math.absi %v{k} : index",
        "affine.apply affine_map<(a, b) -> (a + b * 3)>(%m{k}, %v{k})",
    ),
    "sums": (COUNTED, "", "affine.apply affine_map<(a, b) -> (a * 3 + b * 5 + 1)>(%v{k}, %v{k})"),
}


def chain(name: str, number: int) -> str:
    """A host function whose loop adds the last of so many numbers to each element of y."""
    first, *step = STEPS[name]
    lines = "".join(f"\n    {step[0]}\n    %v{{next}} = {step[1]}".format(k=k, next=k + 1) for k in range(number))
    return f"""
func.func @f(%x: memref<?xindex>, %y: memref<?xindex>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %three = arith.constant 3 : index
  scf.for %i = %c0 to %n step %c1 {{
    {first}{lines}
    %old = memref.load %y[%i] : memref<?xindex>
    %new = arith.addi %old, %v{number} : index
    memref.store %new, %y[%i] : memref<?xindex>
  }}
  return
}}
"""


def made(name: str, begin: int, number: int) -> int:
    for _ in range(number):
        begin = {
            "squares": begin * begin + 3,
            "smaller": min((begin * 3 + 2**63) % 2**64 - 2**63, begin),
            "distances": abs(begin) + begin * 3,
            "sums": begin * 8 + 1,
        }[name]
        begin = (begin + 2**63) % 2**64 - 2**63
    return begin


@pytest.mark.parametrize("name", STEPS)
def test_numbers(name: str) -> None:
    counted = STEPS[name][0] is COUNTED
    for begin in (5, -7):
        y = np.arange(21, dtype=np.int64)
        on_host(chain(name, 30)).f(np.array([begin]), y, len(y))
        added = [made(name, i - 3 if counted else begin, 30) for i in range(len(y))]
        np.testing.assert_array_equal(y, np.arange(21, dtype=np.int64) + np.array(added, np.int64))


@pytest.mark.parametrize("name", STEPS)
def test_time(name: str) -> None:
    def took(number: int) -> float:
        begin = time.process_time()
        emit(chain(name, number), "host-llvm", cache=False)
        return time.process_time() - begin

    took(4)
    assert took(22) < 10 * min(took(4) for _ in range(2))
