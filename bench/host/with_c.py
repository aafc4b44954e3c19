"""C: loops as one would write them by hand, with OpenMP, compiled for this processor; peers/host/loops.c."""

from __future__ import annotations

import ctypes
import functools
import platform
import shutil
import tempfile
from pathlib import Path

import numpy as np
from common import call, version_of

from host.engine import Missing, Program
from host.problem import Problem

SOURCE = Path(__file__).resolve().parent.parent / "peers" / "host" / "loops.c"
WIDE = ("-mprefer-vector-width=512",) if platform.machine() == "x86_64" else ()
FLAGS = ("-O3", "-march=native", *WIDE, "-fno-math-errno", "-fopenmp")


class Solver:
    """Compiles the file once and calls its functions: pointers, then the length of each side, then scalars."""

    def __init__(self) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            raise Missing("no C compiler: apt-get install g++")
        with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
            library = Path(folder) / "loops.so"
            try:
                call([compiler, *FLAGS, "-shared", "-fPIC", str(SOURCE), "-lm", "-o", str(library)], library.parent)
            except RuntimeError as error:
                raise Missing(f"no C compiler with OpenMP: {error}") from None
            self.library = ctypes.CDLL(str(library))
        self.versions = {"cc": version_of(compiler), "cc flags": " ".join(FLAGS)}

    def prepare(self, problem: Problem) -> Program:
        arrays = [*problem.inputs.values(), *problem.outputs.values()]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        shape = next(iter(problem.outputs.values())).shape if problem.kernel == "spmv" else arrays[0].shape
        sides = [ctypes.c_int64(side) for side in shape]
        scalars = [ctypes.c_float(np.float32(value)) for value in problem.scalars.values()]
        function = getattr(self.library, problem.kernel)
        function.restype = None
        return Program(functools.partial(function, *pointers, *sides, *scalars), lambda: problem.outputs)
