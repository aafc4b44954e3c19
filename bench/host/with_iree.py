"""IREE: tensor programs, peers/host/iree/, compiled by llvm-cpu for this processor and run by its task system."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from host.engine import LeftOut, Missing, Program
from host.problem import Array, Problem

PROGRAMS = Path(__file__).resolve().parent.parent / "peers" / "host" / "iree"
FLAGS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
LEFT_OUT = {
    "histogram": "linalg has no reduction into places that the data say",
    "spmv": "linalg has no loops of a length that the data say; another format of matrices would be another problem",
}

try:
    import iree.compiler
    import iree.runtime
except ImportError:
    found = False
else:
    found = True


class Solver:
    """Compiles for the sizes of a problem, which are part of the tensors' types; outputs go where the caller says."""

    def __init__(self) -> None:
        if not found:
            raise Missing("no iree-base-compiler and iree-base-runtime: pip install 'offload[bench]'")
        self.config = iree.runtime.Config("local-task")
        self.versions = {"iree": version("iree-base-compiler"), "iree flags": " ".join(FLAGS)}

    def prepare(self, problem: Problem) -> Program:
        if problem.kernel in LEFT_OUT:
            raise LeftOut(LEFT_OUT[problem.kernel])
        text = (PROGRAMS / f"{problem.kernel}.mlir").read_text()
        for word, value in sides(problem).items():
            text = text.replace(word, str(value))
        code = iree.compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=list(FLAGS))
        device = self.config.device
        module = iree.runtime.VmModule.copy_buffer(self.config.vm_instance, code)
        context = iree.runtime.SystemContext(vm_modules=[module], config=self.config)
        function = getattr(context.modules.module, problem.kernel)
        arrays = {
            name: iree.runtime.asdevicearray(device, array)
            for name, array in {**problem.inputs, **problem.outputs}.items()
        }

        def outputs() -> Mapping[str, Array]:
            return {name: arrays[name].to_host() for name in problem.outputs}

        scalars = list(problem.scalars.values())
        return Program(functools.partial(function, *arrays.values(), *scalars), outputs)


def sides(problem: Problem) -> dict[str, int]:
    """What stands for a length in the programs; longer words first."""
    shape = next(iter(problem.inputs.values())).shape
    rows, cols = shape[0], shape[-1]
    return {"ROWSIN": rows - 2, "COLSIN": cols - 2, "ROWS": rows, "COLS": cols, "RUNS": rows // 4096}
