"""NVIDIA's matrix units: wmma through the gpu dialect, mma.sync through nvgpu, against products in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
from emulator.on_device import OnDevice
from operations import fragments

from device.checks import CUDA, Check, Program
from offload.runtime import Library

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32,
}  # fmt: skip
KINDS = {  # of the operands, of the result, as the matrix unit has them; the shape
    "f16 to f32": ("f16", "f32", "f16", (16, 16, 16)),
    "f16 to f16": ("f16", "f16", "f16", (16, 16, 16)),
    "si8 to i32": ("i8", "i32", "si8", (16, 16, 16)),
    "tf32": ("f32", "f32", "f32", (16, 16, 8)),
}
Elementwise = Callable[[Any, Any], Any]
ELEMENTWISE: dict[str, Elementwise] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maxf": np.maximum, "minf": np.minimum,
    "negatef": lambda x, _: -x, "addi": np.add, "subi": np.subtract, "muli": np.multiply, "negates": lambda x, _: -x,
}  # fmt: skip


def whole(shape: tuple[int, ...], kind: str, seed: int) -> Any:
    """Small whole numbers, of which every type holds sums of products exactly."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(DTYPES[kind])


def wmma(kind: str, name: str = "") -> tuple[Program, Callable[[Library], None]]:
    """c = a b + (a b + c), or an operation on a b + c and c."""
    operand, result, unit, (m, n, k) = KINDS[kind]
    operands, types = ("%D", "{type}") if name.startswith("negate") else ("%D, %C", "{type}, {type}")
    compute = f"%E = gpu.subgroup_mma_elementwise {name} {operands} : ({types}) -> {{type}}" if name else ""
    source = fragments._wmma(operand, operand, result, unit, (m, n, k), compute)

    def run(library: Library) -> None:
        a, b, c = whole((m, k), operand, 1), whole((k, n), operand, 2), whole((m, n), result, 3)
        product = a.astype(np.float64) @ b.astype(np.float64) + c
        expected = ELEMENTWISE[name](product, c.astype(np.float64)) if name else 2 * product - c
        OnDevice(library).kernels.k[1, 32](a, b, c)
        np.testing.assert_array_equal(c.astype(np.float64), expected)

    return Program(source, ("nvvm:sm_90",)), run


# One warp; each lane holds what the instruction takes from it: PTX's tables of fragments.
MMA = """
gpu.module @m {{ gpu.func @k(%a: memref<32x{a_rows}x{width}x{kind}>, %b: memref<32x{b_rows}x{width}x{kind}>,
                            %c: memref<32x{c_rows}x2x{result}>) kernel {{
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero} : {kind}
  %none = arith.constant {none} : {result}
  %x = vector.transfer_read %a[%t, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<32x{a_rows}x{width}x{kind}>, vector<{a_rows}x{width}x{kind}>
  %y = vector.transfer_read %b[%t, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<32x{b_rows}x{width}x{kind}>, vector<{b_rows}x{width}x{kind}>
  %z = vector.transfer_read %c[%t, %c0, %c0], %none {{in_bounds = [true, true]}}
    : memref<32x{c_rows}x2x{result}>, vector<{c_rows}x2x{result}>
  %d = nvgpu.mma.sync (%x, %y, %z) {{mmaShape = [{m}, 8, {k}]}} : (vector<{a_rows}x{width}x{kind}>,
    vector<{b_rows}x{width}x{kind}>, vector<{c_rows}x2x{result}>) -> vector<{c_rows}x2x{result}>
  vector.transfer_write %d, %c[%t, %c0, %c0] {{in_bounds = [true, true]}}
    : vector<{c_rows}x2x{result}>, memref<32x{c_rows}x2x{result}>
  gpu.return
}} }}
"""
MMA_KINDS = {  # operand, result, values per register, depth
    "m16n8k8 f16": ("f16", "f16", 2, 8),
    "m16n8k16 f16 to f32": ("f16", "f32", 2, 16),
    "m16n8k16 bf16": ("bf16", "f32", 2, 16),
    "m16n8k32 s8": ("i8", "i32", 4, 32),
}


def mma(form: str) -> tuple[Program, Callable[[Library], None]]:
    """c = a b + c of one warp."""
    kind, result, width, k = MMA_KINDS[form]
    pieces = k // (4 * width)  # of the depth, each of which four lanes share
    zero, none = ("0" if name.startswith("i") else "0.0" for name in (kind, result))
    source = MMA.format(
        kind=kind, result=result, width=width, a_rows=2 * pieces, b_rows=pieces, c_rows=2, m=16, k=k, zero=zero,
        none=none,
    )  # fmt: skip

    def run(library: Library) -> None:
        a, b, c = whole((16, k), kind, 4), whole((k, 8), kind, 5), whole((16, 8), result, 6)
        lane = np.arange(32)[:, None, None]
        group, place = lane // 4, lane % 4
        register, element = np.arange(2 * pieces)[:, None], np.arange(width)
        # Registers of a: rows alternate between the two halves, then the depth goes on.
        columns = 4 * width * (register // 2) + width * place + element
        left = a[group + 8 * (register % 2), columns].copy()
        register = np.arange(pieces)[:, None]
        right = b[4 * width * register + width * place + element, group + np.zeros_like(element)].copy()
        half, pair = np.arange(2)[:, None], np.arange(2)
        rows, places = group + 8 * half, 2 * place + pair
        rows, places = np.broadcast_arrays(rows, places)
        spread = c[rows, places].copy()
        OnDevice(library).kernels.k[1, 32](left, right, spread)
        product = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
        np.testing.assert_array_equal(spread.astype(np.float64), product[rows, places])

    return Program(source, ("nvvm:sm_90",)), run


# One warp, as above; the left factor has two of each four numbers of a row, and words that say which.
SPARSE = """
gpu.module @m {{ gpu.func @k(%a: memref<32x{rows}x2xf16>, %b: memref<32x{rows}x2xf16>, %c: memref<32x2x2x{result}>,
                            %which: memref<32x2xi16>) kernel {{
  %t = gpu.thread_id x
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0.0 : {result}
  %nowhere = arith.constant 0 : i16
  %x = vector.transfer_read %a[%t, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<32x{rows}x2xf16>, vector<{rows}x2xf16>
  %y = vector.transfer_read %b[%t, %c0, %c0], %zero {{in_bounds = [true, true]}}
    : memref<32x{rows}x2xf16>, vector<{rows}x2xf16>
  %z = vector.transfer_read %c[%t, %c0, %c0], %none {{in_bounds = [true, true]}}
    : memref<32x2x2x{result}>, vector<2x2x{result}>
  %w = vector.transfer_read %which[%t, %c0], %nowhere {{in_bounds = [true]}} : memref<32x2xi16>, vector<2xi16>
  %d = nvgpu.mma.sp.sync (%x, %y, %z) metadata (%w) {{mmaShape = [16, 8, {k}], sparsitySelector = {chosen} : i32}}
    : (vector<{rows}x2xf16>, vector<{rows}x2xf16>, vector<2x2x{result}>) -> vector<2x2x{result}>
  vector.transfer_write %d, %c[%t, %c0, %c0] {{in_bounds = [true, true]}}
    : vector<2x2x{result}>, memref<32x2x2x{result}>
  gpu.return
}} }}
"""


def sparse(result: str, k: int, chosen: int) -> tuple[Program, Callable[[Library], None]]:
    """c = a b + c of one warp, where every row of a has two numbers in each four columns."""
    rows = k // 8
    source = SPARSE.format(result=result, rows=rows, k=k, chosen=chosen)

    def run(library: Library) -> None:
        random = np.random.default_rng(k + chosen)
        kept, b, c = whole((16, k // 2), "f16", 7), whole((k, 8), "f16", 8), whole((16, 8), result, 9)
        pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])[random.integers(0, 6, (16, k // 4))]
        a = np.zeros((16, k), np.float16)
        a[np.arange(16)[:, None, None], 4 * np.arange(k // 4)[:, None] + pairs] = kept.reshape(16, -1, 2)
        codes = (pairs[:, :, 0] | pairs[:, :, 1] << 2).reshape(16, -1, 4)
        halves = (codes << 4 * np.arange(4)).sum(axis=2).astype(np.uint16)  # of a row: 16 columns each
        which = random.integers(0, 1 << 16, (32, 2)).astype(np.uint16)  # of lanes that are not asked
        for piece in range(k // 16):
            lanes = 4 * np.arange(8) + k // 16 * chosen + piece
            which[lanes] = np.stack([halves[:8, piece], halves[8:, piece]], axis=1)
        lane, pair = np.arange(32)[:, None, None], np.arange(2)
        group, place = lane // 4, lane % 4
        register = np.arange(rows)[:, None]
        left = kept[group + 8 * (register % 2), 8 * (register // 2) + 2 * place + pair].copy()
        right = b[8 * register + 2 * place + pair, group + np.zeros_like(pair)].copy()
        at = np.broadcast_arrays(group + 8 * np.arange(2)[:, None], 2 * place + pair)
        spread = c[at[0], at[1]].copy()
        OnDevice(library).kernels.k[1, 32](left, right, spread, which.view(np.int16))
        product = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
        np.testing.assert_array_equal(spread.astype(np.float64), product[at[0], at[1]])

    return Program(source, ("nvvm:sm_90",)), run


def checks() -> Iterator[Check]:
    for kind in KINDS:
        program, run = wmma(kind)
        yield Check("tensor cores", f"wmma, {kind}", [program], run, [CUDA])
    for kind, names in (
        ("f16 to f32", "addf subf mulf maxf minf negatef"),
        ("f16 to f16", "addf subf mulf maxf minf negatef"),
        ("si8 to i32", "addi subi muli negates"),
    ):
        for name in names.split():
            program, run = wmma(kind, name)
            yield Check("tensor cores", f"wmma, {kind}, {name}", [program], run, [CUDA])
    for form in MMA_KINDS:
        program, run = mma(form)
        yield Check("tensor cores", f"mma.sync, {form}", [program], run, [CUDA])
    for result, k, chosen in (("f32", 16, 1), ("f16", 32, 0), ("f32", 32, 1)):
        program, run = sparse(result, k, chosen)
        yield Check("tensor cores", f"mma.sp.sync, m16n8k{k} f16 to {result}", [program], run, [CUDA])
