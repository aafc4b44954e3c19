"""The problems as programs of tensors, peers/host/iree/: as IREE gets them, and for ours, with memory for results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from host.engine import LeftOut
from host.problem import Problem

PROGRAMS = Path(__file__).resolve().parent.parent / "peers" / "host" / "iree"
NO_LINALG = {
    "histogram": "linalg has no reduction into places that the data say",
    "spmv": "linalg has no loops of a length that the data say; another format of matrices would be another problem",
}
NO_SCAN = {"scan": "linalg has no scan; the program for IREE has one of a dialect of IREE's"}
OUTPUT = r"(%\w+): tensor<([^>]+)> \{iree\.abi\.output = \d+ : index\}"
"""An argument where a result goes, as IREE has it said."""


def shape(problem: Problem) -> tuple[int, ...]:
    """Of a problem's first input."""
    return next(iter(problem.inputs.values())).shape


def program(kernel: str, shape: Sequence[int]) -> str:
    """The program for IREE, for the shape of its first input."""
    text = (PROGRAMS / f"{kernel}.mlir").read_text()
    rows, cols = shape[0], shape[-1]
    # What stands for a length; longer words first.
    sides = {"ROWSIN": rows - 2, "COLSIN": cols - 2, "ROWS": rows, "COLS": cols, "RUNS": rows // 4096}
    for word, value in sides.items():
        text = text.replace(word, str(value))
    return text


def linalg(kernel: str, shape: Sequence[int]) -> str:
    """The program for ours. Raises LeftOut where linalg has no words for the problem."""
    why = {**NO_LINALG, **NO_SCAN}
    if kernel in why:
        raise LeftOut(why[kernel])
    return with_memory_for_results(program(kernel, shape))


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
