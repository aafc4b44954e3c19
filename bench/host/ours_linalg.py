"""offload: the tensor programs that IREE gets, peers/host/iree/, made kernels by offload's own passes."""

from __future__ import annotations

import functools
import re

import offload
from host.engine import LeftOut, Program
from host.problem import Problem
from host.with_iree import LEFT_OUT, PROGRAMS, sides
from offload.compiler.native import native

OUTPUT = r"(%\w+): tensor<([^>]+)> \{iree\.abi\.output = \d+ : index\}"
"""An argument where a result goes, as IREE has it said."""


class Solver:
    """Compiles for the sizes of a problem, as IREE does, for the same processor."""

    def __init__(self) -> None:
        offload.use("host")
        self.versions = {"offload": offload.__version__, "llvm": native().llvm_version}

    def prepare(self, problem: Problem) -> Program:
        why = {**LEFT_OUT, "scan": "linalg has no scan; the program for IREE has one of a dialect of IREE's"}
        if problem.kernel in why:
            raise LeftOut(why[problem.kernel])
        text = with_memory_for_results((PROGRAMS / f"{problem.kernel}.mlir").read_text())
        for word, value in sides(problem).items():
            text = text.replace(word, str(value))
        library = offload.compile(text.encode(), targets=["host:native"])
        arrays = [*problem.inputs.values(), *problem.outputs.values()]
        function = getattr(library, problem.kernel)
        return Program(functools.partial(function, *arrays, *problem.scalars.values()), lambda: problem.outputs)


def with_memory_for_results(text: str) -> str:
    """The program with memrefs for outputs in place of results. Raises ValueError for one of another form."""
    head, function, body = text.partition("func.func")
    outputs = re.findall(OUTPUT, body)
    body = re.sub(OUTPUT, r"\1_to: memref<\2>", body)
    body, signatures = re.subn(r"\)\s*->[^{]*\{", ") {", body, count=1)
    begin = "".join(
        f"\n  {name} = bufferization.to_tensor {name}_to restrict writable : memref<{kind}> to tensor<{kind}>"
        for name, kind in outputs
    )
    body = body.replace(") {", ") {" + begin, 1)
    body, end, results = body.rpartition("\n  return ")
    values = results.partition(" :")[0].split(", ")
    if not outputs or not signatures or not end or len(values) != len(outputs):
        raise ValueError("a program for IREE says where each of its results goes, and returns them at its end")
    written = "".join(
        f"\n  bufferization.materialize_in_destination {value} in restrict writable {name}_to"
        f" : (tensor<{kind}>, memref<{kind}>) -> ()"
        for value, (name, kind) in zip(values, outputs, strict=True)
    )
    return head + function + body + written + "\n  return\n}\n"
