"""gpu.launch inside of host code: its body, memory, clusters, tokens and names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from offload.runtime import Library
from operations import Case

PRELUDE = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c40 = arith.constant 40 : index
"""
SPACE = "threads(%tx, %ty, %tz) in (%sx = %c40, %sy = %c1, %sz = %c1)"
BLOCKS = "blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)"
AT = "%p = arith.muli %bx, %sx : index\n%at = arith.addi %p, %tx : index\n"


def _launch(body: str, before: str = "", after: str = "", head: str = "", tail: str = "", module: str = "") -> str:
    return f"""{module}
func.func @run(%x: memref<?xi32>, %out: memref<?xi32>) {{
  {PRELUDE}{before}
  {head} {BLOCKS} {SPACE} {tail} {{
    {AT}{body}
    gpu.terminator
  }}
  {after}
  return
}}
"""


def _gives(want: Callable[[np.ndarray], np.ndarray], size: int = 120) -> Callable[[Library], None]:  # type: ignore[type-arg]
    def run(library: Library) -> None:
        x = np.random.default_rng(1).integers(-1000, 1000, size, np.int32)
        out = np.zeros_like(x)
        library.run(x, out)
        np.testing.assert_array_equal(out, want(x))

    return run


COPY = "%v = memref.load %x[%at] : memref<?xi32>\nmemref.store %v, %out[%at] : memref<?xi32>"
SHARED = """
  %v = memref.load %x[%at] : memref<?xi32>
  memref.store %v, %w[%tx] : memref<40xi32, #gpu.address_space<workgroup>>
  gpu.barrier
  %k = arith.constant 39 : index
  %o = arith.subi %k, %tx : index
  %u = memref.load %w[%o] : memref<40xi32, #gpu.address_space<workgroup>>
  memref.store %u, %q[%c0] : memref<1xi32, #gpu.address_space<private>>
  gpu.barrier
  %r = memref.load %q[%c0] : memref<1xi32, #gpu.address_space<private>>
  memref.store %r, %out[%at] : memref<?xi32>"""
MEMORY = (
    "workgroup(%w : memref<40xi32, #gpu.address_space<workgroup>>) "
    "private(%q : memref<1xi32, #gpu.address_space<private>>)"
)
DYNAMIC = """
  %v = memref.load %x[%at] : memref<?xi32>
  %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %w = memref.view %d[%c0][]
    : memref<?xi8, #gpu.address_space<workgroup>> to memref<40xi32, #gpu.address_space<workgroup>>
  memref.store %v, %w[%tx] : memref<40xi32, #gpu.address_space<workgroup>>
  gpu.barrier
  %k = arith.constant 39 : index
  %o = arith.subi %k, %tx : index
  %u = memref.load %w[%o] : memref<40xi32, #gpu.address_space<workgroup>>
  memref.store %u, %out[%at] : memref<?xi32>"""


def _turned(x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return x.reshape(3, 40)[:, ::-1].reshape(-1)


# Clusters of two blocks along x in a grid of (4, 3, 1).
CLUSTERS = f"""
func.func @run(%x: memref<?xi32>, %out: memref<?x4xi32>) {{
  {PRELUDE}
  %c4 = arith.constant 4 : index
  gpu.launch clusters(%cx, %cy, %cz) in (%kx = %c2, %ky = %c1, %kz = %c1)
             blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c3, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
    %p = arith.muli %by, %gx : index
    %at = arith.addi %p, %bx : index
    %b = gpu.cluster_block_id x
    %d = gpu.cluster_dim x
    %n = gpu.cluster_dim_blocks x
    %i0 = arith.index_cast %cx : index to i32
    %i1 = arith.index_cast %b : index to i32
    %i2 = arith.index_cast %d : index to i32
    %i3 = arith.index_cast %n : index to i32
    memref.store %i0, %out[%at, %c0] : memref<?x4xi32>
    memref.store %i1, %out[%at, %c1] : memref<?x4xi32>
    memref.store %i2, %out[%at, %c2] : memref<?x4xi32>
    memref.store %i3, %out[%at, %c3] : memref<?x4xi32>
    gpu.terminator
  }}
  return
}}
"""


def _clusters(library: Library) -> None:
    out = np.full((12, 4), -1, np.int32)
    library.run(np.zeros(1, np.int32), out)
    bx = np.arange(12) % 4
    np.testing.assert_array_equal(out, np.stack([bx // 2, bx % 2, 0 * bx + 2, 0 * bx + 2], axis=1))


ASYNC = f"""
func.func @run(%x: memref<?xi32>, %out: memref<?xi32>) {{
  {PRELUDE}
  %t0 = gpu.wait async
  %t1 = gpu.launch async [%t0] {BLOCKS} {SPACE} {{
    {AT}{COPY}
    gpu.terminator
  }}
  %t2 = gpu.launch async [%t1] blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c40, %sy = %c1, %sz = %c1) {{
    {AT}
    %v = memref.load %out[%at] : memref<?xi32>
    %w = arith.addi %v, %v : i32
    memref.store %w, %out[%at] : memref<?xi32>
    gpu.terminator
  }}
  gpu.wait [%t2]
  return
}}
"""
CASES = [
    Case("gpu.launch", "body", _launch(COPY, head="gpu.launch"), _gives(lambda x: x)),
    Case(
        "gpu.launch", "workgroup and private memory", _launch(SHARED, head="gpu.launch", tail=MEMORY), _gives(_turned)
    ),
    Case(
        "gpu.launch",
        "dynamic_shared_memory_size",
        _launch(
            DYNAMIC,
            before="%bytes = arith.constant 160 : i32",
            head="gpu.launch",
            tail="dynamic_shared_memory_size %bytes",
        ),
        _gives(_turned),
    ),
    Case("gpu.launch", "clusters", CLUSTERS, _clusters, chips={"nvvm": "sm_90"}),
    Case("gpu.launch", "async", ASYNC, _gives(lambda x: 2 * x)),
    Case(
        "gpu.launch",
        "module and function",
        _launch(COPY, head="gpu.launch", tail="module(@group) function(@chosen)"),
        _gives(lambda x: x),
    ),
]
