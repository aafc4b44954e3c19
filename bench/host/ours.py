"""offload: kernels for a GPU, in programs/, on its CPU target; called with NumPy arrays."""

from __future__ import annotations

import functools
from pathlib import Path

import offload
from host.engine import Program
from host.problem import Problem
from offload.compiler.native import native

PROGRAMS = Path(__file__).resolve().parent / "programs"


class Solver:
    """Calls the host function of a program, which launches its kernels."""

    def __init__(self) -> None:
        offload.use("host")
        self.versions = {"offload": offload.__version__, "llvm": native().llvm_version}

    def prepare(self, problem: Problem) -> Program:
        library = offload.compile(PROGRAMS / f"{problem.kernel}.mlir", targets=["host:native"])
        arrays = [*problem.inputs.values(), *problem.outputs.values(), *problem.scratch.values()]
        function = getattr(library, problem.kernel)
        return Program(functools.partial(function, *arrays, *problem.scalars.values()), lambda: problem.outputs)
