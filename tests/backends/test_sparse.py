"""Sparse operations: the calls are upstream's, what is wrong with a matrix is an error in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from compiling import PROGRAMS, emit_text, on_host, tool
from sparse_programs import spmv, stored

import offload


def calls(text: str) -> Iterator[str]:
    """What is called in LLVM IR, without the names of values."""
    for line in text.splitlines():
        match = re.search(r"call (\w+ @mgpu(?!Scope|Stream).*\))", line)
        if match:
            yield re.sub(r"%[\w.]+", "%", match[1]).replace("nonnull ", "")


def test_calls_are_those_of_upstream() -> None:
    """Functions, argument types, codes of types and modes, and their order, as the stock lowering has them."""
    path = PROGRAMS / "sparse.mlir"
    passes = ("--gpu-to-llvm", "--convert-func-to-llvm", "--reconcile-unrealized-casts")
    upstream = tool("mlir-translate", "--mlir-to-llvmir", given=tool("mlir-opt", *passes, path))
    expected = list(calls(upstream))
    assert len(expected) == 31
    assert list(calls(emit_text(path, "host-llvm"))) == expected


def test_a_damaged_matrix_is_an_error() -> None:
    library = on_host(spmv())
    rows, cols, count, p, q, v = stored(np.eye(4, dtype=np.float32), "csr")
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    q[2] = 4
    with pytest.raises(offload.errors.DeviceError, match=r"Index 2 of a sparse matrix is 4; it must be in \[0, 4\)"):
        library.spmv(rows, cols, count, p, q, v, x, y)
    np.testing.assert_array_equal(y, 0)
    q[2] = 2
    library.spmv(rows, cols, count, p, q, v, x, y)
    np.testing.assert_array_equal(y, x)
