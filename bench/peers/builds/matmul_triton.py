"""The kernel of programs/wmma_matmul.mlir for Triton: a warp for each 16 x 16 tile. KERNELS as in saxpy_triton.py."""

import triton
import triton.language as tl

ARGUMENTS = {"a": "*fp16", "b": "*fp16", "c": "*fp32"}


@triton.jit
def tile(a, b, c, side: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(1) * side + tl.arange(0, side)
    columns = tl.program_id(0) * side + tl.arange(0, side)
    place = c + rows[:, None] * 1024 + columns[None, :]
    total = tl.load(place)
    for start in range(0, 1024, side):
        k = start + tl.arange(0, side)
        x = tl.load(a + rows[:, None] * 1024 + k[None, :])
        y = tl.load(b + k[:, None] * 1024 + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(place, total)


KERNELS = [(tile, ARGUMENTS, {"side": 16}, 1)]
