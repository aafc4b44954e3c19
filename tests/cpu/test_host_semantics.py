"""Kernels on the CPU against NumPy: ids, barriers, workgroup memory, reductions, warps, functions, globals."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest
from blocks import PLACE, REDUCE, WARP, module, reduced, size_of, values
from compiling import on_host, program
from hypothesis import given, settings
from hypothesis import strategies as st

import offload

# Ids.

shapes = st.tuples(*[st.integers(1, 5)] * 3)


@given(grid=shapes, block=shapes)
@settings(max_examples=15)
def test_every_thread_knows_its_place(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    threads = size_of(block)
    out = np.full((size_of(grid) * threads, 13), -1, np.int64)
    program("ids").kernels.all[grid, block](out)
    blocks, inside = np.divmod(np.arange(len(out)), threads)
    tx, ty, tz = inside % block[0], inside // block[0] % block[1], inside // block[0] // block[1]
    bx, by, bz = blocks % grid[0], blocks // grid[0] % grid[1], blocks // grid[0] // grid[1]
    warps = np.full_like(tx, -(-threads // WARP))
    expected = [tx, ty, tz, bx, by, bz, inside % WARP, inside // WARP, warps, np.full_like(tx, WARP)]
    expected += [bx * block[0] + tx, by * block[1] + ty, bz * block[2] + tz]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


@given(grid=shapes, block=shapes)
@settings(max_examples=10)
def test_ids_are_the_same_after_a_barrier(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    out = np.full(size_of(grid) * size_of(block), -1, np.int64)
    program("ids").kernels.after_barrier[grid, block](out)
    np.testing.assert_array_equal(out, np.arange(len(out)))


# Barriers and workgroup memory.


@given(block=st.sampled_from([1, 2, 31, 32, 33, 100, 1024]), times=st.lists(st.integers(0, 9), min_size=1, max_size=9))
@settings(max_examples=20)
def test_barriers_in_loops_of_other_lengths_in_each_block(block: int, times: list[int]) -> None:
    x = np.arange(block * len(times), dtype=np.int32)
    expected = np.stack([np.roll(part, -n) for part, n in zip(x.reshape(-1, block), times, strict=True)])
    program("barriers").kernels.rotate[len(times), block](x, np.array(times))
    np.testing.assert_array_equal(x.reshape(-1, block), expected)


@pytest.mark.parametrize("block", [1, 2, 7, 32, 33, 1000, 1024])
def test_barriers_in_while_loops_and_branches(block: int) -> None:
    x = np.random.default_rng(block).integers(-1000, 1000, (3, block), np.int32)
    out = np.zeros(3, np.int32)
    program("barriers").kernels.halve[3, block](x.ravel(), out)
    np.testing.assert_array_equal(out, x.sum(axis=1))


@pytest.mark.parametrize("block", [1, 5, 64])
def test_private_memory_survives_barriers(block: int) -> None:
    out = np.zeros(4 * block, np.int32)
    program("barriers").kernels.keep[4, block](out)
    np.testing.assert_array_equal(out, np.tile(np.arange(block, dtype=np.int32) * 3, 4))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (4, 16, 16), (7, 1, 33)])
def test_barriers_in_blocks_of_three_dimensions(shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(0).integers(0, 1 << 30, shape, np.int32)
    expected = x.ravel()[::-1].reshape(shape).copy()
    program("barriers").kernels.turn[1, shape[::-1]](x)
    np.testing.assert_array_equal(x, expected)


def test_threads_that_work_longer_are_waited_for() -> None:
    x = np.zeros(300, np.int32)
    program("barriers").kernels.uneven_work[1, 300](x)
    np.testing.assert_array_equal(x, np.arange(300)[::-1])


@pytest.mark.parametrize("block", [1, 31, 256])
def test_static_module_and_dynamic_workgroup_memory_together(block: int) -> None:
    library = program("shared")
    for run in (
        lambda x: library.kernels.reverse[3, block, None, 8 * block](x),
        lambda x: library.run(x, 3, block),
    ):
        x = np.random.default_rng(1).random((3, block), np.float32)
        expected = x[:, ::-1] + np.float32(7)
        run(x.reshape(-1))
        np.testing.assert_array_equal(x, expected)


def test_dynamic_workgroup_memory_of_an_inline_launch() -> None:
    x = np.arange(100, dtype=np.int32)
    program("shared").inline(x, 100)
    np.testing.assert_array_equal(x, np.arange(100)[::-1])


# Functions, globals, several kernels.


def test_functions_called_from_kernels() -> None:
    library = module(
        "calls",
        PLACE
        + """
      func.func private @twice(%v: i32) -> i32 {
        %r = arith.addi %v, %v : i32
        return %r : i32
      }
      func.func private @neighbour(%tile: memref<64xi32, #gpu.address_space<workgroup>>, %v: i32) -> i32 {
        %c1 = arith.constant 1 : index
        %t = gpu.thread_id x
        %n = gpu.block_dim x
        memref.store %v, %tile[%t] : memref<64xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %next = arith.addi %t, %c1 : index
        %from = arith.remui %next, %n : index
        %w = memref.load %tile[%from] : memref<64xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %r = func.call @twice(%w) : (i32) -> i32
        return %r : i32
      }
      gpu.func @plain(%x: memref<?xi32>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xi32>
        %r = func.call @twice(%v) : (i32) -> i32
        memref.store %r, %x[%at] : memref<?xi32>
        gpu.return
      }
      gpu.func @with_barriers(%x: memref<?xi32>)
          workgroup(%tile: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xi32>
        %r = func.call @neighbour(%tile, %v) : (memref<64xi32, #gpu.address_space<workgroup>>, i32) -> i32
        %s = func.call @neighbour(%tile, %r) : (memref<64xi32, #gpu.address_space<workgroup>>, i32) -> i32
        memref.store %s, %x[%at] : memref<?xi32>
        gpu.return
      }""",
    )
    x = np.arange(100, dtype=np.int32)
    library.kernels.plain[2, 50](x)
    np.testing.assert_array_equal(x, 2 * np.arange(100))
    library.kernels.with_barriers[2, 50](x)
    np.testing.assert_array_equal(x, np.roll(8 * np.arange(100).reshape(2, 50), -2, axis=1).reshape(-1))


def test_globals_of_a_device_module() -> None:
    library = module(
        "globals",
        PLACE
        + """
      memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 10.0, 100.0, 1000.0]>
      memref.global "private" @hits : memref<1xi32> = dense<5>
      gpu.func @look_up(%x: memref<?xi32>, %out: memref<?xf32>) kernel {
        %at = func.call @place() : () -> index
        %i = memref.load %x[%at] : memref<?xi32>
        %ii = arith.index_cast %i : i32 to index
        %table = memref.get_global @table : memref<4xf32>
        %v = memref.load %table[%ii] : memref<4xf32>
        memref.store %v, %out[%at] : memref<?xf32>
        gpu.return
      }
      gpu.func @count(%out: memref<?xi32>) kernel {
        %c0 = arith.constant 0 : index
        %one = arith.constant 1 : i32
        %hits = memref.get_global @hits : memref<1xi32>
        %r = memref.atomic_rmw addi %one, %hits[%c0] : (i32, memref<1xi32>) -> i32
        gpu.return
      }
      gpu.func @counted(%out: memref<?xi32>) kernel {
        %c0 = arith.constant 0 : index
        %hits = memref.get_global @hits : memref<1xi32>
        %r = memref.load %hits[%c0] : memref<1xi32>
        memref.store %r, %out[%c0] : memref<?xi32>
        gpu.return
      }""",
    )
    x = np.array([3, 0, 2, 1, 1], np.int32)
    out = np.zeros(5, np.float32)
    library.kernels.look_up[1, 5](x, out)
    np.testing.assert_array_equal(out, np.float32(10) ** x)
    hits = np.zeros(1, np.int32)
    library.kernels.count[4, 25](hits)
    library.kernels.counted[1, 1](hits)
    assert hits[0] == 105


def test_kernels_of_several_modules_with_one_name() -> None:
    text = "".join(
        f"""gpu.module @{name} {{
          gpu.func @store(%out: memref<?xi32>) kernel {{
            %c0 = arith.constant 0 : index
            %v = arith.constant {value} : i32
            memref.store %v, %out[%c0] : memref<?xi32>
            gpu.return
          }}
        }}
        """
        for name, value in (("first", 1), ("second", 2))
    )
    host = """func.func @run(%out: memref<?xi32>, %which: i1) {
      %c1 = arith.constant 1 : index
      scf.if %which {
        gpu.launch_func @first::@store blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<?xi32>)
      } else {
        gpu.launch_func @second::@store blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%out : memref<?xi32>)
      }
      return
    }"""
    library = on_host(f"module attributes {{gpu.container_module}} {{ {text} {host} }}")
    out = np.zeros(1, np.int32)
    library.run(out, True)
    assert out[0] == 1
    library.run(out, False)
    assert out[0] == 2
    library.kernels["first.store"][1, 1](out)
    assert out[0] == 1


RECURSIVE = """gpu.module @m {
  func.func private @down(%n: i32) -> i32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %done = arith.cmpi eq, %n, %zero : i32
    %r = scf.if %done -> i32 {
      scf.yield %zero : i32
    } else {
      %less = arith.subi %n, %one : i32
      %s = func.call @{callee}(%less) : (i32) -> i32
      %t = arith.addi %s, %one : i32
      scf.yield %t : i32
    }
    return %r : i32
  }
  func.func private @again(%n: i32) -> i32 {
    %r = func.call @down(%n) : (i32) -> i32
    return %r : i32
  }
  gpu.func @k(%x: memref<?xi32>, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %r = func.call @down(%n) : (i32) -> i32
    memref.store %r, %x[%c0] : memref<?xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("callee", ["down", "again"])
def test_recursion_is_refused(callee: str) -> None:
    with pytest.raises(offload.CompileError, match=r"<string>:\d+:\d+: error: .* calls '(down|again)' recursively"):
        offload.compile(RECURSIVE.replace("{callee}", callee), targets=["host"])


# Every level of optimization gives the same results.


@pytest.mark.parametrize("level", range(4))
def test_levels_of_optimization(level: int) -> None:
    text = f"gpu.module @levels {{ {PLACE + REDUCE.format(op='add', type='i32')} }}\n"
    library = on_host(text, opt=level, target=f"host:{host_chip()},O={level}")
    x = values("i32", "add", (2, 77), level)
    out = np.zeros_like(x)
    library.kernels.add_i32[2, 77](x.reshape(-1), out.reshape(-1))
    np.testing.assert_array_equal(out, np.broadcast_to(reduced("add", x)[:, None], x.shape))


def host_chip() -> str:
    from offload.targets import registry

    return registry().get("host").default_chip()


def test_blocks_run_as_often_as_the_grid_says() -> None:
    library = module(
        "grid",
        """
      gpu.func @count(%out: memref<i64>) kernel {
        %one = arith.constant 1 : i64
        %r = memref.atomic_rmw addi %one, %out[] : (i64, memref<i64>) -> i64
        gpu.return
      }""",
    )
    for grid, block in [((1000, 1, 1), 1), ((3, 70, 2), (2, 2, 2)), ((1, 1, 65), 33), ((100000, 1, 1), 1)]:
        out = np.zeros((), np.int64)
        library.kernels.count[grid, block](out)
        assert out == functools.reduce(operator.mul, grid) * size_of(block)
