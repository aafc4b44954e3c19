"""Kernels without work, for launches.py, which imports this where there is a Triton."""

from __future__ import annotations

import triton


@triton.jit
def k0():  # type: ignore[no-untyped-def]
    pass


@triton.jit
def k4(x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    pass


@triton.jit
def k16(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15):  # type: ignore[no-untyped-def]
    pass
