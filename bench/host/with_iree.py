"""IREE: tensor programs, peers/host/iree/, compiled by llvm-cpu for this processor and run by its task system."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib.metadata import version

from host.engine import LeftOut, Missing, Program
from host.problem import Array, Problem
from host.tensors import NO_LINALG, program, shape

FLAGS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
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
        if problem.kernel in NO_LINALG:
            raise LeftOut(NO_LINALG[problem.kernel])
        code = iree.compiler.compile_str(
            program(problem.kernel, shape(problem)), target_backends=["llvm-cpu"], extra_args=list(FLAGS)
        )
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
