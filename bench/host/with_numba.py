"""Numba: loops in Python over threads (prange), peers/host/numba_loops.py."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path

import numpy as np

from host.engine import Missing, Program
from host.problem import Problem

FOLDER = Path(__file__).resolve().parent.parent / "peers" / "host"


class Solver:
    """Calls a compiled function; the first call compiles."""

    def __init__(self) -> None:
        try:
            import numba
        except ImportError:
            raise Missing("no numba: pip install 'offload[bench]'") from None
        sys.path.insert(0, str(FOLDER))
        self.loops = importlib.import_module("numba_loops")
        self.versions = {"numba": numba.__version__, "numba svml": str(numba.config.USING_SVML)}

    def prepare(self, problem: Problem) -> Program:
        arrays = [*problem.inputs.values(), *problem.outputs.values()]
        scalars = [np.float32(value) for value in problem.scalars.values()]
        function = getattr(self.loops, problem.kernel)
        return Program(functools.partial(function, *arrays, *scalars), lambda: problem.outputs)
