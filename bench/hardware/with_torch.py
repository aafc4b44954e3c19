"""torch: its own operations, which call NVIDIA's libraries (cuBLAS, cuSPARSE, CUB)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from host.engine import LeftOut, Missing
from host.problem import Problem


class Solver:
    """Raises Missing where torch has no device."""

    name = "torch"

    def __init__(self) -> None:
        try:
            import torch
        except ImportError:
            raise Missing("no torch") from None
        if not torch.cuda.is_available():
            raise Missing("torch without CUDA")
        self._torch = torch

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """As `hardware.ours.Ours.prepare`. Raises LeftOut."""
        torch = self._torch
        x = {name: torch.from_numpy(value).cuda() for name, value in problem.inputs.items()}
        out = {name: torch.from_numpy(value).cuda() for name, value in problem.outputs.items()}
        step = self._step(problem, x, out)

        def run(times: int) -> None:
            for _ in range(times):
                step()
            torch.cuda.synchronize()

        def outputs() -> dict[str, Any]:
            return {name: value.cpu().numpy().reshape(problem.outputs[name].shape) for name, value in out.items()}

        return run, outputs

    def _step(self, problem: Problem, x: dict[str, Any], out: dict[str, Any]) -> Callable[[], object]:
        torch, kernel = self._torch, problem.kernel
        if kernel == "copy":
            return lambda: out["out"].copy_(x["x"])
        if kernel == "triad":
            return lambda: torch.add(x["b"], x["c"], alpha=3.0, out=out["a"])
        if kernel == "transpose":
            return lambda: out["out"].copy_(x["x"].t())
        if kernel == "reduction":
            return lambda: torch.sum(x["x"], dim=0, keepdim=True, out=out["sums"])
        if kernel == "softmax":
            return lambda: torch.softmax(x["x"], dim=1, out=out["out"])
        if kernel == "scan":
            return lambda: torch.cumsum(x["x"], dim=0, dtype=torch.int32, out=out["out"])
        if kernel == "layer_norm":
            size = (x["gamma"].numel(),)

            def layer_norm() -> None:
                out["out"] = torch.nn.functional.layer_norm(x["x"], size, x["gamma"], x["beta"], 1e-5)

            return layer_norm
        if kernel == "histogram":

            def histogram() -> None:
                out["bins"] = torch.bincount(x["x"], minlength=256).int()

            return histogram
        if kernel == "spmv":
            size = (x["x"].numel(), x["x"].numel())
            matrix = torch.sparse_csr_tensor(x["starts"], x["columns"], x["values"], size)

            def spmv() -> None:
                out["y"] = matrix @ x["x"]

            return spmv
        raise LeftOut("no one operation")

    def product(self, element: str, a: Any, b: Any) -> tuple[Callable[[int], None], Callable[[], Any]]:
        """cuBLAS: the product of two matrices into the element type; of bytes into i32, with the second one by columns.
        Words are multiplied as such, not by matrix units."""
        return self._multiplied(element, a, b.T if element == "i8" else b, element == "i8")

    def layer(self, element: str, x: Any, weights: Any) -> tuple[Callable[[int], None], Callable[[], Any]]:
        """cuBLAS: rows with the rows of weights."""
        return self._multiplied(element, x, weights, True)

    def _multiplied(
        self, element: str, a: Any, b: Any, across: bool
    ) -> tuple[Callable[[int], None], Callable[[], Any]]:
        torch = self._torch
        torch.backends.cuda.matmul.allow_tf32 = False
        kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i8": torch.int8}[element]
        left, right = (torch.from_numpy(value.astype("float32", "C")).cuda().to(kind) for value in (a, b))
        right = right.T if across else right
        multiply = torch._int_mm if element == "i8" else torch.matmul
        word = torch.int32 if element == "i8" else kind
        out = torch.empty(left.shape[0], right.shape[1], dtype=word, device="cuda")

        def run(times: int) -> None:
            for _ in range(times):
                multiply(left, right, out=out)
            torch.cuda.synchronize()

        return run, lambda: out.double().cpu().numpy()
