"""CUDA C++, compiled by nvcc where it runs: bench/peers/hardware/kernels.cu."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from host.engine import LeftOut, Missing
from host.problem import Problem

SOURCE = Path(__file__).resolve().parents[1] / "peers" / "hardware" / "kernels.cu"


def sizes(problem: Problem) -> list[int]:
    """What a launcher takes between the arrays and the number of times."""
    first = next(iter(problem.inputs.values()))
    if problem.kernel == "reduction":
        return [first.size, problem.scratch["parts"].size]
    if problem.kernel == "stencil":
        return list(first.shape)
    if problem.kernel in ("transpose", "softmax", "layer_norm"):
        return [first.shape[0]]
    if problem.kernel == "spmv":
        return [problem.outputs["y"].size]
    return [first.size]


class Solver:
    """Raises Missing where there is no nvcc."""

    name = "CUDA C++"

    def __init__(self) -> None:
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if nvcc is None:
            raise Missing("no nvcc")
        try:
            import cupy  # its arrays hold what the kernels work on
        except ImportError:
            raise Missing("no cupy, for its arrays") from None
        self._cupy = cupy
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / "kernels.so"
        command = [
            nvcc,
            "-O3",
            "-std=c++17",
            "-gencode",
            "arch=compute_90,code=sm_90",
            "-shared",
            "-Xcompiler",
            "-fPIC",
        ]
        done = subprocess.run([*command, SOURCE, "-o", library], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"nvcc fails on {SOURCE}:\n{done.stderr}")
        self._library = ctypes.CDLL(str(library))

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """As `hardware.ours.Ours.prepare`. Raises LeftOut."""
        function = getattr(self._library, problem.kernel, None)
        if function is None:
            raise LeftOut("not written")
        arrays = {**problem.inputs, **problem.outputs, **problem.scratch}
        there = {name: self._cupy.asarray(value) for name, value in arrays.items()}
        pointers = [ctypes.c_void_p(array.data.ptr) for array in there.values()]
        numbers = [ctypes.c_int64(size) for size in sizes(problem)]
        if problem.kernel == "reduction":
            numbers[1] = ctypes.c_int(sizes(problem)[1])

        def run(times: int) -> None:
            if status := function(*pointers, *numbers, ctypes.c_int(times)):
                raise RuntimeError(f"{problem.kernel}: CUDA's status is {status}")

        return run, lambda: {name: there[name].get() for name in problem.outputs}
