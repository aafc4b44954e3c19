"""PoCL: the same kernels in OpenCL C, peers/host/kernels.cl, on its device for the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from host.engine import Missing, Program
from host.problem import Array, Problem

SOURCE = Path(__file__).resolve().parent.parent / "peers" / "host" / "kernels.cl"

try:
    import pyopencl as cl
except ImportError:
    cl = None


class Solver:
    """Launches as programs/*.mlir do. Buffers are the problem's arrays: on a CPU nothing is copied."""

    def __init__(self) -> None:
        if cl is None:
            raise Missing("no pyopencl: pip install 'offload[bench]'")
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            platforms = []
        found = [platform for platform in platforms if "Portable Computing" in platform.name]
        if not found:
            raise Missing("no PoCL among OpenCL's platforms: apt-get install pocl-opencl-icd")
        device = found[0].get_devices(cl.device_type.CPU)[0]
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.program = cl.Program(self.context, SOURCE.read_text()).build(["-cl-std=CL1.2"])
        self.versions = {"pocl": found[0].version, "pyopencl": cl.VERSION_TEXT, "pocl device": device.name}

    def prepare(self, problem: Problem) -> Program:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        arrays = {**problem.inputs, **problem.outputs, **problem.scratch}
        buffers = {name: cl.Buffer(self.context, flags, hostbuf=array) for name, array in arrays.items()}
        launches = [self.launch(*step, buffers, problem) for step in steps(problem)]

        def run() -> None:
            for kernel, groups, threads in launches:
                cl.enqueue_nd_range_kernel(self.queue, kernel, groups, threads, g_times_l=True)
            self.queue.finish()

        def outputs() -> Mapping[str, Array]:
            for name, array in problem.outputs.items():
                cl.enqueue_copy(self.queue, array, buffers[name])
            return problem.outputs

        return Program(run, outputs)

    def launch(
        self,
        name: str,
        groups: tuple[int, ...],
        threads: tuple[int, ...],
        arguments: Sequence[str | int],
        buffers: Mapping[str, Any],
        problem: Problem,
    ) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
        """A kernel with its arguments set: buffers by name, numbers as ``long``, then the problem's scalars."""
        kernel = cl.Kernel(self.program, name)
        values = [buffers[each] if isinstance(each, str) else np.int64(each) for each in arguments]
        kernel.set_args(*values, *(np.float32(value) for value in problem.scalars.values()))
        return kernel, groups, threads


Step = tuple[str, tuple[int, ...], tuple[int, ...], list[str | int]]
LINE = (256, 1)


def steps(problem: Problem) -> list[Step]:
    """The launches of a problem: kernel, groups, threads of a group, arguments."""
    names: list[str | int] = [*problem.inputs, *problem.outputs]
    shape = next(iter(problem.inputs.values())).shape
    n, rows, cols = shape[0], shape[0], shape[-1]
    one = (1, 1)
    match problem.kernel:
        case "triad" | "n_body":
            return [(problem.kernel, (up(n, 256), 1), LINE, [*names, n])]
        case "spmv":
            return [("spmv", (up(n - 1, 256), 1), LINE, [*names, n - 1])]
        case "softmax" | "layer_norm":
            return [(problem.kernel, (rows, 1), LINE, [*names, rows, cols])]
        case "transpose":
            return [("transpose", (up(cols, 32), up(rows, 32)), (32, 8), [*names, rows, cols])]
        case "stencil":
            return [("stencil", (up(cols - 2, 32), up(rows - 2, 8)), (32, 8), [*names, rows, cols])]
        case "matmul":
            return [("matmul", (cols // 64, rows // 64), (16, 16), [*names, rows, cols])]
        case "histogram":
            return [("clear", one, LINE, ["bins"]), ("histogram", (min(64, up(n, 1024)), 1), LINE, ["x", "bins", n])]
        case "reduction":
            parts = problem.scratch["partial"].size
            return [
                ("sum", (parts, 1), LINE, ["x", "partial", n]),
                ("sum", one, LINE, ["partial", "sum", parts]),
            ]
        case "scan":
            runs = problem.scratch["sums"].size
            return [
                ("run_sums", (runs, 1), LINE, ["x", "sums", n]),
                ("scan_sums", one, LINE, ["sums", runs]),
                ("scan_runs", (runs, 1), LINE, ["x", "sums", "out", n]),
            ]
    raise ValueError(f"no launches for {problem.kernel}")


def up(n: int, group: int) -> int:
    """Groups that hold n threads."""
    return -(-n // group)
