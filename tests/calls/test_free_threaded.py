"""A free-threaded Python keeps its lock off where offload is used: calls go through ctypes there."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiling import python

CALLS = """
import sys, threading
if sys.argv[2] == "free":
    sys._is_gil_enabled = lambda: False
import numpy, offload
library = offload.load(sys.argv[1])
library.use("host")
wrong = []

def call(factor):
    for _ in range(50):
        x, y = numpy.arange(1000, dtype=numpy.float32), numpy.ones(1000, numpy.float32)
        library.saxpy(factor, x, y)
        library.kernels.saxpy_kernel[4, 256](x, y, factor)
        if (y != 2 * factor * x + 1).any():
            wrong.append(factor)

threads = [threading.Thread(target=call, args=(factor,)) for factor in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from offload.runtime.plans import where
print(wrong, "offload.runtime._fast" in sys.modules, where() == "this Python runs without its lock")
"""


@pytest.mark.parametrize("lock", ["free", "locked"])
def test_the_extension_stays_out_where_there_is_no_lock(built: dict[str, Path], lock: str, tmp_path: Path) -> None:
    """Importing it switched the lock on for the whole process, with a warning."""
    pytest.importorskip("offload.runtime._fast")
    free = lock == "free"
    assert python(CALLS, built["saxpy"], lock, cwd=tmp_path) == f"[] {not free} {free}\n"
