"""A second interpreter in the process, as web servers use them: calls go through ctypes there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from compiling import python

INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"

INSIDE = """
import warnings
warnings.simplefilter("ignore")  # NumPy's, about itself
import numpy, offload
library = offload.load(PATH)
library.use("host")
x, y = numpy.arange(1000, dtype=numpy.float32), numpy.ones(1000, numpy.float32)
library.saxpy(2.0, x, y)
library.kernels.saxpy_kernel[4, 256](x, y, 2.0)
assert (y == 4 * x + 1).all()
try:
    library.saxpy(2.0, x)
except offload.SignatureError as error:
    print(error, flush=True)  # Python 3.11 with NumPy in such an interpreter never ends where its end has to flush
"""
RUN = """
import faulthandler, importlib, sys
faulthandler.dump_traceback_later(50, exit=True)  # a wait without an end says where
interpreters = importlib.import_module(sys.argv[3])
inside = f"PATH = {sys.argv[1]!r}\\n" + sys.argv[2]
if sys.version_info >= (3, 13):
    made = interpreters.create("legacy")
    failed = interpreters.exec(made, inside)
else:
    made = interpreters.create(isolated=False)
    failed = interpreters.run_string(made, inside)
if failed:
    sys.exit(str(failed))
"""


def test_calls_in_a_subinterpreter(built: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip(INTERPRETERS)
    assert "missing: y" in python(RUN, built["saxpy"], INSIDE, INTERPRETERS, cwd=tmp_path)
