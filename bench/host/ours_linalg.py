"""offload: the tensor programs that IREE gets, peers/host/iree/, made kernels by offload's own passes."""

from __future__ import annotations

import functools

import offload
from host.engine import Program
from host.problem import Problem
from host.tensors import linalg, shape
from offload.compiler.native import native


class Solver:
    """Compiles for the sizes of a problem, as IREE does, for the same processor."""

    def __init__(self) -> None:
        offload.use("host")
        self.versions = {"offload": offload.__version__, "llvm": native().llvm_version}

    def prepare(self, problem: Problem) -> Program:
        library = offload.compile(linalg(problem.kernel, shape(problem)).encode(), targets=["host:native"])
        arrays = [*problem.inputs.values(), *problem.outputs.values()]
        function = getattr(library, problem.kernel)
        return Program(functools.partial(function, *arrays, *problem.scalars.values()), lambda: problem.outputs)
