"""CuPy: its own operations, and an elementwise kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from host.engine import LeftOut, Missing
from host.problem import Problem


class Solver:
    """Raises Missing where CuPy has no device."""

    name = "CuPy"

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError:
            raise Missing("no cupy") from None
        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:
            raise Missing("cupy without a device") from None
        self._cupy = cupy

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """As `hardware.ours.Ours.prepare`. Raises LeftOut."""
        cupy = self._cupy
        x = {name: cupy.asarray(value) for name, value in problem.inputs.items()}
        out = {name: cupy.asarray(value) for name, value in problem.outputs.items()}
        step = self._step(problem, x, out)

        def run(times: int) -> None:
            for _ in range(times):
                step()
            cupy.cuda.get_current_stream().synchronize()

        return run, lambda: {name: cupy.asnumpy(out[name]) for name in problem.outputs}

    def _step(self, problem: Problem, x: dict[str, Any], out: dict[str, Any]) -> Callable[[], object]:
        cupy, kernel = self._cupy, problem.kernel
        if kernel == "copy":
            return lambda: cupy.copyto(out["out"], x["x"])
        if kernel == "triad":
            function = cupy.ElementwiseKernel("T b, T c, T s", "T a", "a = b + s * c", "triad")
            return lambda: function(x["b"], x["c"], cupy.float32(3), out["a"])
        if kernel == "transpose":
            return lambda: cupy.copyto(out["out"], x["x"].T)
        if kernel == "reduction":
            return lambda: cupy.sum(x["x"], keepdims=True, out=out["sums"])
        if kernel == "scan":
            return lambda: cupy.cumsum(x["x"], dtype=cupy.int32, out=out["out"])
        if kernel == "histogram":

            def histogram() -> None:
                out["bins"] = cupy.bincount(x["x"], minlength=256)

            return histogram
        raise LeftOut("no one operation")
