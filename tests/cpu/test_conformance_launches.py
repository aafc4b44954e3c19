"""Clusters, prints and assertions in every way in which the CPU can run kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiling import on_host, python
from conformance import Theme
from emulator.running import running_on
from test_conformance import WAYS

import offload

IDS = ("cluster_id", "cluster_block_id", "cluster_dim", "cluster_dim_blocks")
COLUMNS = [(op, axis) for op in IDS for axis in "xyz"]


def clusters() -> str:
    stores = "".join(
        f"""
    %v{i} = gpu.{op} {axis}
    %w{i} = arith.index_cast %v{i} : index to i64
    %c{i} = arith.constant {i} : index
    memref.store %w{i}, %out[%block, %c{i}] : memref<?x12xi64>"""
        for i, (op, axis) in enumerate(COLUMNS)
    )
    kernel = f"""  gpu.func @k(%out: memref<?x12xi64>) kernel {{
    %block = func.call @block() : () -> index{stores}
    BARRIER
    gpu.return
  }}
"""
    return f"""module attributes {{gpu.container_module}} {{
  {Theme("m", text=kernel).source}
  func.func @run(%out: memref<?x12xi64>) {{
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    gpu.launch_func @m::@k clusters in (%c2, %c1, %c3) blocks in (%c4, %c3, %c6) threads in (%c1, %c1, %c1)
      args(%out : memref<?x12xi64>)
    return
  }}
}}"""


TILES = """  gpu.func @k(%out: memref<?xi64>) workgroup(%tile: memref<4xi64, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i64
    %block = func.call @block() : () -> index
    %thread = gpu.thread_id x
    memref.store %c1, %tile[%thread] : memref<4xi64, #gpu.address_space<workgroup>>
    gpu.barrier
    %one = memref.load %tile[%c0] : memref<4xi64, #gpu.address_space<workgroup>>
    %old = memref.atomic_rmw addi %one, %out[%block] : (i64, memref<?xi64>) -> i64
    gpu.return
  }
"""


@pytest.mark.parametrize("way", ("host", "host,coroutines"))
def test_blocks_with_workgroup_memory_run_once_each(way: str) -> None:
    """They go in squares: grids whose sizes squares divide, and others, on one thread and on several."""
    library = on_host(Theme("m", text=TILES).source, target=way)
    random = np.random.default_rng(0)
    drawn = random.integers([1, 1, 1], [40, 40, 4], (30, 3))
    for grid in [(8, 8, 1), (16, 24, 2), (9, 17, 2), (7, 3, 1), (1, 50, 1), (50, 1, 3), (500, 300, 1), *drawn]:
        out = np.zeros(int(np.prod(grid)), np.int64)
        library.kernels.k[tuple(map(int, grid)), (4, 1, 1)](out)
        np.testing.assert_array_equal(out, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", ["", "gpu.barrier"])
def test_clusters(barrier: str, way: str) -> None:
    grid, size = np.array([4, 3, 6]), np.array([2, 1, 3])
    out = np.full((grid.prod(), 12), -1, np.int64)
    on_host(clusters().replace("BARRIER", barrier), target=way).run(out)
    blocks = np.arange(grid.prod())
    ids = np.stack([blocks % 4, blocks // 4 % 3, blocks // 12], axis=1)
    sizes = np.broadcast_to([grid // size, size], (len(blocks), 2, 3)).reshape(-1, 6)
    np.testing.assert_array_equal(out, np.hstack([ids // size, ids % size, sizes]))


BUILT = """gpu.module @m {
  gpu.func @k(%out: memref<?x2xi64>) kernel attributes {ATTRIBUTE = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %block = gpu.block_id x
    %size = gpu.cluster_dim_blocks x
    %id = gpu.cluster_id x
    %number = arith.index_cast %size : index to i64
    memref.store %number, %out[%block, %c0] : memref<?x2xi64>
    %place = arith.index_cast %id : index to i64
    memref.store %place, %out[%block, %c1] : memref<?x2xi64>
    gpu.return
  }
}"""


@pytest.mark.parametrize("attribute", ["known_cluster_size", "gpu.known_cluster_size"])
def test_the_clusters_that_a_kernel_is_built_for(attribute: str) -> None:
    """They are those of every launch, as on NVIDIA's GPUs, whose driver takes no others; they were blocks."""
    source = BUILT.replace("ATTRIBUTE", attribute)
    out = np.full((4, 2), -1)
    with running_on("sm_90", source) as library:
        library.kernels.k[4, 1](out)
    assert out.tolist() == [[2, 0], [2, 0], [2, 1], [2, 1]]
    library = offload.compile(source, targets=["host"])
    for cluster in (None, (2, 1, 1)):
        out = np.full((4, 2), -1)
        library.kernels.k[4, 1, None, 0, cluster](out)
        assert out.tolist() == [[2, 0], [2, 0], [2, 1], [2, 1]]
    with pytest.raises(offload.DeviceError, match=r"clusters of \(2, 1, 1\), which do not divide the"):
        library.kernels.k[3, 1](out)
    with pytest.raises(offload.DeviceError, match=r"of \(4, 1, 1\); it was built for clusters of \(2, 1, 1\), its"):
        library.kernels.k[4, 1, None, 0, 4](out)


PRINTS = """  gpu.func @k() kernel {
    %t = func.call @thread() : () -> index
    %c2 = arith.constant 2 : index
    %below = arith.cmpi ult, %t, %c2 : index
    %half = arith.constant 0.5 : f32
    scf.if %below {
      gpu.printf "%d first %g\\n", %t, %half : index, f32
      BARRIER
    }
    gpu.printf "%d second\\n", %t : index
    gpu.return
  }
"""
SCRIPT = """
import sys, offload
library = offload.compile(open(sys.argv[1]).read(), targets=[sys.argv[2]])
library.use("host")
library.kernels.k[2, 3]()
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("barrier", ["", "gpu.barrier"])
def test_prints(barrier: str, way: str, tmp_path: Path) -> None:
    source = tmp_path / "prints.mlir"
    source.write_text(Theme("prints", text=PRINTS.replace("BARRIER", barrier)).source)
    lines = python(SCRIPT, source, way, cwd=tmp_path).splitlines()
    assert sorted(lines) == sorted(2 * ["0 first 0.5", "1 first 0.5", "0 second", "1 second", "2 second"])


ASSERTS = """  gpu.func @k(%x: memref<?xi32>, %bad: index) kernel {
    %at = func.call @at() : () -> index
    %t = func.call @thread() : () -> index
    %one = arith.constant 1 : i32
    memref.store %one, %x[%at] : memref<?xi32>
    %waits = arith.cmpi WAITS, %t, %bad : index
    scf.if %waits {
      gpu.barrier
    }
    %ok = arith.cmpi ne, %at, %bad : index
    cf.assert %ok, "the bad one"
    gpu.return
  }
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("waits", ["ult", "eq"])
def test_assertions(waits: str, way: str) -> None:
    library = on_host(Theme("asserts", text=ASSERTS.replace("WAITS", waits)).source, target=way)
    x = np.zeros(4 * 30, np.int32)
    with pytest.raises(offload.DeviceError, match=r'"k" failed an assertion in block \(1, 0, 0\), thread \(2, 3, 1\)'):
        library.kernels.k[4, (3, 5, 2)](x, 30 + 2 + 3 * 3 + 15)
    library.kernels.k[4, (3, 5, 2)](x, 1000)
    np.testing.assert_array_equal(x, 1)
