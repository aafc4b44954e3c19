"""gpu.subgroup_broadcast, gpu.warp_execute_on_lane_0: the values of one lane."""

from __future__ import annotations

import numpy as np
from device_values import BLOCKS, FLOATS, INTEGERS, launched, mapped, module, values

from offload.runtime import Library
from operations import Case
from operations.device_gpu_lanes import WARP, WAVE32, exchanged, vector_of

FIRST = module("".join(mapped(f"of_{kind}", kind, f"""
  %two = arith.constant 2 : index
  %c = arith.cmpi uge, %thread, %two : index
  %r = scf.if %c -> {kind} {{
    %a = gpu.subgroup_broadcast %v, first_active_lane : {kind}
    scf.yield %a : {kind}
  }} else {{
    scf.yield %v : {kind}
  }}""") for kind in (*INTEGERS, *FLOATS, "index")))  # fmt: skip


def _first(library: Library) -> None:
    for kind in (*INTEGERS, *FLOATS, "index"):
        for block in BLOCKS:
            threads = int(np.prod(block))
            x = values(kind, "minnumf", (3, threads))
            thread = np.arange(threads)
            want = x[:, np.where(thread < 2, thread, np.maximum(thread // WARP * WARP, np.minimum(2, threads - 1)))]
            np.testing.assert_array_equal(launched(library.kernels[f"of_{kind}"], block, x), want, f"{kind} {block}")


FIRST_OF_THE_REST = module(mapped("k", "i32", """
  %two = arith.constant 2 : index
  %c = arith.cmpi ult, %thread, %two : index
  %all = gpu.subgroup_broadcast %v, first_active_lane : i32
  %r = scf.if %c -> i32 {
    scf.yield %all : i32
  } else {
    %a = gpu.subgroup_broadcast %v, first_active_lane : i32
    scf.yield %a : i32
  }"""))  # fmt: skip


# The two blocks look the same, and canonicalization would make one of them.
FIRST_BY_A_CALL = module("""
func.func @first(%v: i32) -> i32 {
  %a = gpu.subgroup_broadcast %v, first_active_lane : i32
  return %a : i32
}
""" + mapped("k", "i32", """
  %two = arith.constant 2 : index
  %c = arith.cmpi ult, %thread, %two : index
  cf.cond_br %c, ^few, ^rest
^few:
  %a = func.call @first(%v) : (i32) -> i32
  cf.br ^both(%a : i32)
^rest:
  %b = func.call @first(%v) : (i32) -> i32
  cf.br ^both(%b : i32)
^both(%r: i32):"""))  # fmt: skip


def _first_of_the_rest(library: Library) -> None:
    for block in BLOCKS:
        threads = int(np.prod(block))
        x = values("i32", "minnumf", (3, threads))
        first = np.arange(threads) // WARP * WARP
        rest = np.where(np.arange(threads) < 2, first, np.maximum(first, np.minimum(2, threads - 1)))
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), x[:, rest], str(block))


def _broadcast(kind: str, lane: int) -> str:
    return module(mapped("k", kind, f"%l = arith.constant {lane} : i32\n"
                         f"%r = gpu.subgroup_broadcast %v, specific_lane %l : {kind} // here"))  # fmt: skip


PLAIN_LANE_0 = module(mapped("k", "i32", """
  %l = gpu.lane_id
  %new = arith.constant -5 : i32
  gpu.warp_execute_on_lane_0(%l)[32] { // here
    memref.store %new, %x[%at] : memref<?xi32>
  }
  %r = memref.load %x[%at] : memref<?xi32>"""))  # fmt: skip


def _plain_lane_0(library: Library) -> None:
    for block in BLOCKS:
        x = values("i32", "add", (3, int(np.prod(block))))
        want = np.where(np.arange(x.shape[1]) % WARP == 0, -5, x)
        np.testing.assert_array_equal(launched(library.kernels.k, block, x), want)


def _lane_0(size: int) -> str:
    """Lane 0 adds up two values of each lane and tells all; and gives the values to the lanes in reverse."""
    pair = "vector<2xf32>"
    mask = ", ".join(map(str, range(2 * size - 1, -1, -1)))
    return module(mapped("k", "f32", f"""
      %l = gpu.lane_id
      %one = arith.constant 1.0 : f32
      %w = arith.addf %v, %one : f32
      %pair = vector.from_elements %v, %w : vector<2xf32>
      %sum, %back = gpu.warp_execute_on_lane_0(%l)[{size}] args(%pair : {pair}) -> (f32, {pair}) {{ // here
      ^bb0(%all: vector<{2 * size}xf32>):
        %s = vector.reduction <add>, %all : vector<{2 * size}xf32> into f32
        %t = vector.shuffle %all, %all [{mask}] : vector<{2 * size}xf32>, vector<{2 * size}xf32>
        gpu.yield %s, %t : f32, vector<{2 * size}xf32>
      }}
      %b = vector.extract %back[0] : f32 from vector<2xf32>
      %hundred = arith.constant 1000.0 : f32
      %m = arith.mulf %sum, %hundred : f32
      %r = arith.addf %m, %b : f32"""))  # fmt: skip


def _of_lane_0(library: Library) -> None:
    x = np.random.default_rng(1).integers(0, 5, (3, 64)).astype(np.float32)
    out = launched(library.kernels.k, (64, 1, 1), x)
    warps = x.reshape(3, 2, WARP)
    total = (2 * warps.sum(axis=2) + WARP)[:, :, None]
    np.testing.assert_array_equal(out, (1000 * total + warps[:, :, ::-1] + 1).reshape(3, 64))


# Lanes hold columns of two rows; of the same numbers in eight rows, four lanes share one.
SHARES = module(mapped("k", "f32", """
  %l = gpu.lane_id
  %hundred = arith.constant 100.0 : f32
  %w = arith.addf %v, %hundred : f32
  %column = vector.from_elements %v, %w : vector<2x1xf32>
  %share = gpu.warp_execute_on_lane_0(%l)[32] args(%column : vector<2x1xf32>) -> (vector<1x2xf32>) {
  ^bb0(%all: vector<2x32xf32>):
    %rows = vector.shape_cast %all : vector<2x32xf32> to vector<8x8xf32>
    gpu.yield %rows : vector<8x8xf32>
  }
  %a = vector.extract %share[0, 0] : f32 from vector<1x2xf32>
  %b = vector.extract %share[0, 1] : f32 from vector<1x2xf32>
  %thousand = arith.constant 1000.0 : f32
  %m = arith.mulf %b, %thousand : f32
  %r = arith.addf %m, %a : f32"""))  # fmt: skip


def _shared_out(library: Library) -> None:
    x = np.random.default_rng(1).integers(0, 5, (3, 64)).astype(np.float32)
    warps = x.reshape(3, 2, WARP)
    pairs = np.concatenate((warps, warps + 100), axis=2).reshape(3, 2, WARP, 2)
    want = pairs[..., 0] + 1000 * pairs[..., 1]
    np.testing.assert_array_equal(launched(library.kernels.k, (64, 1, 1), x), want.reshape(3, 64))


COMPLEX = """
  %w = arith.addf %v, %v : f32
  %z = complex.create %v, %w : complex<f32>
  {}
  %re = complex.re %there : complex<f32>
  %im = complex.im %there : complex<f32>
  %r = arith.subf %im, %re : f32"""
COMPLEX_BROADCAST = COMPLEX.format(
    "%l = arith.constant 9 : i32\n%there = gpu.subgroup_broadcast %z, specific_lane %l : complex<f32>"
)
COMPLEX_LANE_0 = COMPLEX.format(
    "%l = gpu.lane_id\n%there = gpu.warp_execute_on_lane_0(%l)[32] -> (complex<f32>) {\ngpu.yield %z : complex<f32>\n}"
)


_LANES_32 = "is written for subgroups of 32 threads, but those of this target have 64"
POINTERS_OF_LANE_0 = """gpu.module @m {
gpu.func @k(%p: !llvm.ptr, %x: memref<?xi64>) kernel {
  %l = gpu.lane_id
  %r = gpu.warp_execute_on_lane_0(%l)[32] -> (vector<1x!llvm.ptr>) { // here
    %v = vector.broadcast %p : !llvm.ptr to vector<32x!llvm.ptr>
    gpu.yield %v : vector<32x!llvm.ptr>
  }
  %own = vector.extract %r[0] : !llvm.ptr from vector<1x!llvm.ptr>
  %n = llvm.ptrtoint %own : !llvm.ptr to i64
  memref.store %n, %x[%l] : memref<?xi64>
  gpu.return
}
}
"""

CASES = [
    Case("gpu.subgroup_broadcast", "first_active_lane, every type, in a branch", FIRST, _first),
    Case(
        "gpu.subgroup_broadcast", "first_active_lane, for all, then in a branch", FIRST_OF_THE_REST, _first_of_the_rest
    ),
    Case(
        "gpu.subgroup_broadcast",
        "first_active_lane, in a function that both sides of a branch call",
        FIRST_BY_A_CALL,
        _first_of_the_rest,
    ),
    *(
        Case(
            "gpu.subgroup_broadcast",
            f"specific_lane, {kind}",
            _broadcast(kind, 6),
            exchanged(kind, lambda lane: 0 * lane + 6),
        )
        for kind in ("i8", "i32", "i64", "index", "f16", "bf16", "f64")
    ),
    Case(
        "gpu.subgroup_broadcast",
        "specific_lane, vector",
        vector_of("f32", 3, "%l = arith.constant 9 : i32\n%u = gpu.subgroup_broadcast %t, specific_lane %l"),
        exchanged("f32", lambda lane: 0 * lane + 9, 2),
    ),
    Case(
        "gpu.subgroup_broadcast",
        "specific_lane, complex<f32>",
        module(mapped("k", "f32", COMPLEX_BROADCAST)),
        exchanged("f32", lambda lane: 0 * lane + 9),
    ),
    Case(
        "gpu.subgroup_broadcast",
        "lane 40",
        _broadcast("f32", 40),
        refused=dict.fromkeys(("nvvm", "host"), "reads lane 40, but the subgroups of this target have 32 threads"),
    ),
    Case("gpu.warp_execute_on_lane_0", "no results", PLAIN_LANE_0, _plain_lane_0, refused={"rocdl": _LANES_32}),
    Case("gpu.warp_execute_on_lane_0", "no results, wave32", PLAIN_LANE_0, _plain_lane_0, chips=WAVE32),
    Case("gpu.warp_execute_on_lane_0", "vectors in and out, 32 lanes", _lane_0(32), _of_lane_0, chips=WAVE32),
    Case("gpu.warp_execute_on_lane_0", "shares of the last dimension, and of two", SHARES, _shared_out, chips=WAVE32),
    Case(
        "gpu.warp_execute_on_lane_0",
        "complex<f32>",
        module(mapped("k", "f32", COMPLEX_LANE_0)),
        exchanged("f32", lambda lane: 0 * lane),
        chips=WAVE32,
    ),
    Case(
        "gpu.warp_execute_on_lane_0",
        "vector of pointers",
        POINTERS_OF_LANE_0,
        refused=dict.fromkeys(
            ("nvvm", "rocdl", "host"),
            "exchanges values of type 'vector<32x!llvm.ptr>': only numbers and vectors of numbers can be",
        ),
        chips=WAVE32,
    ),
    Case(
        "gpu.warp_execute_on_lane_0",
        "vectors in and out, 64 lanes",
        _lane_0(64),
        refused=dict.fromkeys(
            ("nvvm", "host"), "is written for subgroups of 64 threads, but those of this target have 32"
        ),
    ),
]
