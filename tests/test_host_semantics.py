"""Kernels on the CPU against NumPy: ids, barriers, workgroup memory, reductions, warps, functions, globals."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest
from compiling import on_host, program
from hypothesis import given, settings
from hypothesis import strategies as st

import offload
from offload.runtime import Library

WARP = 32
BLOCKS = [1, 7, 32, 33, 256, 1024, (8, 4), (33, 3), (4, 3, 5), (1, 1, 7), (16, 8, 8)]


def size_of(block: int | tuple[int, ...]) -> int:
    return int(np.prod(block))


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


# Reductions over a block. Each thread stores its own result.

REDUCE = """
  gpu.func @{op}_{type}(%x: memref<?x{type}>, %out: memref<?x{type}>) kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r = gpu.all_reduce {op} %v uniform {{}} : ({type}) -> {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    gpu.return
  }}
"""
PLACE = """
  func.func private @place() -> index {
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %b = gpu.block_id x
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %dz = gpu.block_dim z
    %0 = arith.muli %b, %dz : index
    %1 = arith.addi %0, %tz : index
    %2 = arith.muli %1, %dy : index
    %3 = arith.addi %2, %ty : index
    %4 = arith.muli %3, %dx : index
    %5 = arith.addi %4, %tx : index
    return %5 : index
  }
"""
DTYPES: dict[str, Any] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGER_OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum,
    "maxui": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
FLOAT_OPS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minnumf": np.fmin, "maxnumf": np.fmax, "minimumf": np.minimum,
    "maximumf": np.maximum,
}  # fmt: skip
REDUCTIONS = [(op, "i32") for op in INTEGER_OPS] + [(op, "f32") for op in FLOAT_OPS]
REDUCTIONS += [("add", "i64"), ("maxsi", "i64"), ("add", "f64"), ("mul", "f64")]


def module(name: str, body: str) -> Library:
    return on_host(f"gpu.module @{name} {{\n{body}\n}}\n")


@functools.cache
def reductions() -> Library:
    return module("reductions", PLACE + "".join(REDUCE.format(op=op, type=kind) for op, kind in REDUCTIONS))


def values(kind: str, op: str, shape: tuple[int, ...], seed: int) -> Any:
    """Values whose reduction is exact in any order, or nearly."""
    random = np.random.default_rng(seed)
    dtype = DTYPES[kind]
    if kind.startswith("i"):
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype)
    if op == "mul":
        return random.choice(np.array([-1, 1, 2, 0.5], dtype), shape)
    return random.integers(-512, 512, shape).astype(dtype)


def reduced(op: str, x: Any) -> Any:
    if op in ("minui", "maxui"):
        unsigned = x.view(f"u{x.dtype.itemsize}")
        return INTEGER_OPS[op].reduce(unsigned, axis=-1).view(x.dtype)
    ufunc = (INTEGER_OPS if x.dtype.kind == "i" else FLOAT_OPS)[op]
    with np.errstate(over="ignore"):
        return ufunc.reduce(x, axis=-1, dtype=x.dtype)


@pytest.mark.parametrize(("op", "kind"), REDUCTIONS)
def test_all_reduce(op: str, kind: str) -> None:
    for block in BLOCKS:
        x = values(kind, op, (3, size_of(block)), size_of(block))
        out = np.zeros_like(x)
        reductions().kernels[f"{op}_{kind}"][3, block](x.reshape(-1), out.reshape(-1))
        np.testing.assert_array_equal(out, np.broadcast_to(reduced(op, x)[:, None], x.shape), str(block))


@given(block=st.integers(1, 1024), blocks=st.integers(1, 5), seed=st.integers(0, 100))
@settings(max_examples=25)
def test_all_reduce_of_any_block(block: int, blocks: int, seed: int) -> None:
    x = values("i32", "add", (blocks, block), seed)
    out = np.zeros_like(x)
    reductions().kernels.add_i32[blocks, block](x.reshape(-1), out.reshape(-1))
    np.testing.assert_array_equal(out, np.broadcast_to(reduced("add", x)[:, None], x.shape))


def test_all_reduce_keeps_or_drops_nan_as_the_operation_says() -> None:
    x = np.arange(64, dtype=np.float32)
    x[40] = np.nan
    out = np.zeros_like(x)
    reductions().kernels.maximumf_f32[1, 64](x, out)
    assert np.isnan(out).all()
    reductions().kernels.maxnumf_f32[1, 64](x, out)
    np.testing.assert_array_equal(out, np.full(64, 63, np.float32))


def test_all_reduce_that_is_not_uniform_is_refused_where_it_stands() -> None:
    text = f"gpu.module @m {{{PLACE}{REDUCE.format(op='add', type='i32')}}}\n".replace(" uniform", "")
    with pytest.raises(offload.CompileError, match=r"^<string>:\d+:10: error: 'gpu.all_reduce' .*\n.*%r = gpu.all_red"):
        offload.compile(text, targets=["host"])


def test_all_reduce_with_an_operation_of_the_author() -> None:
    library = module(
        "own",
        PLACE
        + """
      gpu.func @largest_magnitude(%x: memref<?xf32>, %out: memref<?xf32>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xf32>
        %r = gpu.all_reduce %v uniform {
        ^bb0(%a: f32, %b: f32):
          %m = math.absf %a : f32
          %n = math.absf %b : f32
          %c = arith.cmpf oge, %m, %n : f32
          %s = arith.select %c, %m, %n : f32
          "gpu.yield"(%s) : (f32) -> ()
        } : (f32) -> (f32)
        memref.store %r, %out[%at] : memref<?xf32>
        gpu.return
      }""",
    )
    for block in (1, 33, 256):
        x = np.random.default_rng(3).normal(size=block).astype(np.float32)
        x[0] = abs(x[0])
        out = np.zeros_like(x)
        library.kernels.largest_magnitude[1, block](x, out)
        np.testing.assert_array_equal(out, np.full(block, np.abs(x).max()))


# Warps.

SHUFFLE = """
  gpu.func @{mode}_{type}(%x: memref<?x{type}>, %out: memref<?x{type}>, %ok: memref<?xi32>, %offset: i32, %width: i32)
      kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r, %valid = gpu.shuffle {mode} %v, %offset, %width : {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    %flag = arith.extui %valid : i1 to i32
    memref.store %flag, %ok[%at] : memref<?xi32>
    gpu.return
  }}
"""
MODES = ("xor", "up", "down", "idx")
SHUFFLED = ("i32", "f32", "i64", "f64", "f16", "i8")


@functools.cache
def shuffles() -> Library:
    return module("shuffles", PLACE + "".join(SHUFFLE.format(mode=m, type=t) for m in MODES for t in SHUFFLED))


def shuffled(mode: str, threads: int, offset: int, width: int) -> tuple[Any, Any]:
    """For each thread of a block: the thread whose value it gets, and whether there is one."""
    thread = np.arange(threads)
    lane = thread % WARP
    first = lane - lane % width
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": first + offset}[mode]
    inside = (source >= first) & (source < first + width)
    return thread - lane + source, inside & (thread - lane + source < threads)


@pytest.mark.parametrize("kind", SHUFFLED)
@pytest.mark.parametrize("mode", MODES)
def test_shuffles(mode: str, kind: str) -> None:
    for block in (1, 8, 32, 40, 96):
        for width in (32, 16, 8):
            for offset in (0, 1, 3, 7, width // 2, width - 1):
                x = np.arange(block).astype(DTYPES[kind]) + DTYPES[kind](2)
                out, ok = np.zeros_like(x), np.zeros(block, np.int32)
                shuffles().kernels[f"{mode}_{kind}"][1, block](x, out, ok, offset, width)
                source, valid = shuffled(mode, block, offset, width)
                what = f"block {block} width {width} offset {offset}"
                np.testing.assert_array_equal(out[valid], x[source[valid]], what)
                assert ok[valid].all(), what
                if block % WARP == 0:
                    np.testing.assert_array_equal(ok, valid, what)


def test_a_warp_adds_up_by_shuffles_in_a_loop() -> None:
    library = module(
        "loops",
        PLACE
        + """
      gpu.func @butterfly(%x: memref<?xf32>) kernel {
        %at = func.call @place() : () -> index
        %v = memref.load %x[%at] : memref<?xf32>
        %c1 = arith.constant 1 : i32
        %c32 = arith.constant 32 : i32
        %sum, %o = scf.while (%s = %v, %offset = %c1) : (f32, i32) -> (f32, i32) {
          %more = arith.cmpi ult, %offset, %c32 : i32
          scf.condition(%more) %s, %offset : f32, i32
        } do {
        ^bb0(%s: f32, %offset: i32):
          %other, %valid = gpu.shuffle xor %s, %offset, %c32 : f32
          %t = arith.addf %s, %other : f32
          %next = arith.shli %offset, %c1 : i32
          scf.yield %t, %next : f32, i32
        }
        memref.store %sum, %x[%at] : memref<?xf32>
        gpu.return
      }""",
    )
    x = np.random.default_rng(5).integers(-99, 99, (2, 3, WARP)).astype(np.float32)
    expected = np.broadcast_to(x.sum(axis=2, keepdims=True), x.shape).copy()
    library.kernels.butterfly[2, 3 * WARP](x.reshape(-1))
    np.testing.assert_array_equal(x, expected)


SUBGROUP = """
  gpu.func @{name}(%x: memref<?x{type}>, %out: memref<?x{type}>) kernel {{
    %at = func.call @place() : () -> index
    %v = memref.load %x[%at] : memref<?x{type}>
    %r = gpu.subgroup_reduce {op} %v {cluster} : ({type}) -> {type}
    memref.store %r, %out[%at] : memref<?x{type}>
    gpu.return
  }}
"""


@pytest.mark.parametrize(
    ("op", "kind", "cluster"),
    [
        ("add", "i32", WARP),
        ("add", "f32", WARP),
        ("maxsi", "i32", WARP),
        ("minimumf", "f32", WARP),
        ("xor", "i32", WARP),
        ("add", "i64", WARP),
        ("add", "i8", WARP),
        ("add", "f16", WARP),
        ("add", "i32", 8),
        ("maxnumf", "f32", 16),
        ("add", "i8", 4),
    ],
)
def test_subgroup_reduce(op: str, kind: str, cluster: int) -> None:
    text = f"cluster(size = {cluster})" if cluster != WARP else ""
    library = module("subgroup", PLACE + SUBGROUP.format(name="reduce", op=op, type=kind, cluster=text))
    x = values(kind, op, (2, 96), 7) if kind != "f16" else np.arange(-96, 96).reshape(2, 96).astype(np.float16)
    out = np.zeros_like(x)
    library.kernels.reduce[2, 96](x.reshape(-1), out.reshape(-1))
    parts = x.reshape(-1, cluster)
    expected = np.broadcast_to(reduced(op, parts)[:, None], parts.shape).reshape(x.shape)
    np.testing.assert_array_equal(out, expected)


def test_subgroup_reduce_of_strided_clusters() -> None:
    cluster = "cluster(size = 4, stride = 8)"
    library = module("strided", PLACE + SUBGROUP.format(name="reduce", op="add", type="i32", cluster=cluster))
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    library.kernels.reduce[1, 64](x, out)
    expected = x.reshape(2, 4, 8).sum(axis=1, keepdims=True).repeat(4, axis=1).reshape(-1)
    np.testing.assert_array_equal(out, expected)


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
    with pytest.raises(offload.CompileError, match=r"'(down|again)' is recursive: kernels cannot call recursive"):
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
