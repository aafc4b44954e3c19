"""Triton: kernels like those of its tutorials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from host.engine import LeftOut, Missing
from host.problem import Problem


class Solver:
    """Raises Missing where Triton or a device for it is not there."""

    name = "Triton"

    def __init__(self) -> None:
        try:
            import torch
            import triton  # noqa: F401 - whether it is there
        except ImportError as error:
            raise Missing(f"no {error.name}") from None
        if not torch.cuda.is_available():
            raise Missing("torch without CUDA")
        from hardware import triton_kernels

        self._torch, self._kernels = torch, triton_kernels

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """As `hardware.ours.Ours.prepare`. Raises LeftOut."""
        torch = self._torch
        launcher = getattr(self._kernels, problem.kernel, None)
        if launcher is None:
            raise LeftOut("not written")
        arrays = {**problem.inputs, **problem.outputs, **problem.scratch}
        there = {name: torch.from_numpy(value).cuda() for name, value in arrays.items()}

        def run(times: int) -> None:
            for _ in range(times):
                launcher(*there.values())
            torch.cuda.synchronize()

        return run, lambda: {name: there[name].cpu().numpy() for name in problem.outputs}
