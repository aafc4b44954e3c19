"""The kernel of examples/saxpy.mlir for Triton. KERNELS: name, types of the arguments, constants, warps."""

import triton
import triton.language as tl

KERNELS = []

ARGUMENTS = {"a": "fp32", "x": "*fp32", "y": "*fp32", "n": "i64"}


@triton.jit
def saxpy(a, x, y, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < n
    tl.store(y + at, a * tl.load(x + at, inside) + tl.load(y + at, inside), inside)


KERNELS.append((saxpy, ARGUMENTS, {"block": 256}, 8))
