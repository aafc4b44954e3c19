"""offload: kernels in programs/, launched one after the other on a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from device.checks import Program
from device.store import Store
from host.problem import SIZES, Problem
from host.tensors import linalg

from hardware.problems import RUN, shape

HERE = Path(__file__).resolve().parent
KERNELS = ("triad", "transpose", "reduction", "softmax", "layer_norm", "scan", "histogram", "stencil", "spmv")
OF_TENSORS = ("triad", "transpose", "reduction", "softmax", "layer_norm", "stencil")
ELEMENTS = ("f16", "bf16")
LINALG_ELEMENTS = ("f16", "bf16", "f32", "i8")
LAYER_ELEMENTS = ("f16", "f32")
Launch = tuple[str, Any, Any, Sequence[Any]]  # kernel, grid, block, arguments


def kernel_program(kernel: str) -> Program:
    """The program of a kernel that memory bounds."""
    return Program((HERE / "programs" / f"{kernel}.mlir").read_text(), ("nvvm:sm_90", "host"))


def matmul_program(element: str) -> Program:
    return Program((HERE / "programs" / "matmul.mlir").read_text().replace("ELEMENT", element), ("nvvm:sm_90a",))


def linalg_program(element: str, across: bool) -> Program:
    """The product of linalg. ``across``: the second matrix has the steps of the sums in its rows, as a layer's weights
    do."""
    text = (HERE / "programs" / "linalg_matmul.mlir").read_text()
    zero, word = ("0", "i32") if element == "i8" else ("0.0", "f32")
    for name, value in {"FACTOR": element, "SUM": word, "ZERO": zero, "RIGHT": "j, k" if across else "k, j"}.items():
        text = text.replace(name, value)
    return Program(text, ("nvvm:sm_90", "host"))


def tensor_program(kernel: str, size: str) -> Program:
    """The problem as a program of linalg."""
    return Program(linalg(kernel, shape(kernel, size)), ("nvvm:sm_90", "host"))


def programs() -> Iterator[Program]:
    """All that are to be compiled beforehand."""
    for kernel in OF_TENSORS:
        for size in SIZES:
            yield tensor_program(kernel, size)
    for kernel in KERNELS:
        yield kernel_program(kernel)
    for element in ELEMENTS:
        yield matmul_program(element)
    for element in LINALG_ELEMENTS:
        yield linalg_program(element, across=element == "i8")
    for element in LAYER_ELEMENTS:
        yield linalg_program(element, across=True)


def launches(problem: Problem, given: dict[str, Any]) -> list[Launch]:
    """The launches that solve a problem; ``given`` has its arrays on the device, and its scalars."""
    everything = list(given.values())
    kernel = problem.kernel
    if kernel == "triad":
        return [(kernel, -(-problem.outputs["a"].size // 2048), 256, everything)]
    if kernel == "transpose":
        side = problem.inputs["x"].shape[0] // 64
        return [(kernel, (side, side), 512, everything)]
    if kernel == "reduction":
        parts = problem.scratch["parts"].size
        return [
            (kernel, parts, 256, [given["x"], given["parts"]]), (kernel, 1, 256, [given["parts"], given["sums"]]),
        ]  # fmt: skip
    if kernel in ("softmax", "layer_norm"):
        return [(kernel, problem.inputs["x"].shape[0], 256, everything)]
    if kernel == "scan":
        return [(kernel, -(-problem.inputs["x"].size // RUN), 256, everything)]
    if kernel == "histogram":
        blocks = min(-(-problem.inputs["x"].size // 2048), 264)
        return [("clear", 1, 256, [given["bins"]]), (kernel, blocks, 512, [given["x"], given["bins"]])]
    if kernel == "stencil":
        height, width = problem.inputs["x"].shape
        return [(kernel, (-(-width // 128), -(-height // 8)), (32, 8), everything)]
    return [(kernel, -(-problem.outputs["y"].size // 56), 128, everything)]


class Ours:
    """Measures what `device.store` has compiled."""

    name = "offload"

    def __init__(self, store: Store, backend: str) -> None:
        self.store, self.backend = store, backend

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """A function that solves a problem so many times and waits, and one that gives the outputs."""
        library = self.store.load(kernel_program(problem.kernel), self.backend)
        arrays = {**problem.inputs, **problem.outputs, **problem.scratch}
        there = {name: library.device.array(value) for name, value in arrays.items()}
        stream = library.stream()
        bound = [
            (library.kernels[kernel][grid, block, stream], arguments)
            for kernel, grid, block, arguments in launches(problem, {**there, **problem.scalars})
        ]

        def run(times: int) -> None:
            for _ in range(times):
                for launch, arguments in bound:
                    launch(*arguments)
            stream.synchronize()

        return run, lambda: {name: there[name].numpy() for name in problem.outputs}

    def product(self, element: str, a: Any, b: Any) -> tuple[Callable[[int], None], Callable[[], Any]]:
        """The product of two matrices, likewise."""
        return self.multiplied(matmul_program(element), a, b, b.shape[1])

    def multiplied(
        self, program: Program, a: Any, b: Any, columns: int
    ) -> tuple[Callable[[int], None], Callable[[], Any]]:
        library = self.store.load(program, self.backend)
        left, right = library.device.array(a), library.device.array(b)
        out = library.device.zeros((a.shape[0], columns), "int32" if a.dtype == "int8" else "float32")
        return (lambda times: library.matmul(left, right, out, times)), out.numpy


class Tensors(Ours):
    """The same problems as programs of linalg, whose kernels are made and not written."""

    name = "linalg"

    def prepare(self, problem: Problem) -> tuple[Callable[[int], None], Callable[[], dict[str, Any]]]:
        """As `Ours.prepare`. Raises LeftOut."""
        library = self.store.load(tensor_program(problem.kernel, problem.size), self.backend)
        there = {name: library.device.array(value) for name, value in {**problem.inputs, **problem.outputs}.items()}
        function, stream = getattr(library, problem.kernel), library.stream()

        def run(times: int) -> None:
            for _ in range(times):
                function(*there.values(), *problem.scalars.values(), stream=stream)
            stream.synchronize()

        return run, lambda: {name: there[name].numpy() for name in problem.outputs}


class Linalg(Ours):
    """Products as programs of linalg, whose kernels are made and not written."""

    name = "linalg"

    def product(self, element: str, a: Any, b: Any) -> tuple[Callable[[int], None], Callable[[], Any]]:
        """As `Ours.product`; of bytes the second matrix is given by columns."""
        if element == "i8":
            return self.layer(element, a, np.ascontiguousarray(b.T))
        return self.multiplied(linalg_program(element, across=False), a, b, b.shape[1])

    def layer(self, element: str, x: Any, weights: Any) -> tuple[Callable[[int], None], Callable[[], Any]]:
        """Rows with the rows of weights, likewise."""
        return self.multiplied(linalg_program(element, across=True), x, weights, weights.shape[0])
