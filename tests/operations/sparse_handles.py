"""Handles of sparse operations that go through functions and branches, views as their memory, and what is refused."""

from __future__ import annotations

import numpy as np
from sparse_programs import DTYPES, WIDE, K, M, call, numbers, pruned, sparse, stored

from offload.runtime import Library
from operations import CHIPS, Case

CSR = "%p: memref<?xindex>, %q: memref<?xindex>, %v: memref<?xf32>"
MAKE_CSR = "gpu.create_csr %rows, %cols, %n, %p, %q, %v : memref<?xindex>, memref<?xindex>, memref<?xf32>"
BUFFERS = "%1: memref<?xi8>, %2: memref<?xi8>, %3: memref<?xi8>"
MATRIX, DENSE = "!gpu.sparse.spmat_handle", "!gpu.sparse.dntensor_handle"


def run_spmv(library: Library) -> None:
    dense = sparse(M, K, DTYPES["f32"], 1)
    x, y = numbers((K,), DTYPES["f32"], 2), numbers((M,), DTYPES["f32"], 3)
    expected = dense @ x + y
    call(library, "run", *stored(dense, "csr"), x, y)
    np.testing.assert_array_equal(y, expected)


def run_spmm24(library: Library) -> None:
    left, right, result = (numbers((WIDE, WIDE), DTYPES["f16"], seed) for seed in (4, 5, 6))
    expected = pruned(left) @ right + result
    call(library, "run", left, right, result)
    np.testing.assert_array_equal(result, expected)


THROUGH_FUNCTIONS = f"""
func.func private @multiply(%a: {MATRIX}, %x: {DENSE}, %y: {DENSE}) -> {DENSE} {{
  %size = gpu.spmv_buffer_size %a, %x, %y into f32
  %buffer = gpu.alloc (%size) : memref<?xi8>
  gpu.spmv %a, %x, %y, %buffer : memref<?xi8> into f32
  gpu.dealloc %buffer : memref<?xi8>
  return %y : {DENSE}
}}
func.func private @make(%rows: index, %cols: index, %n: index, {CSR}) -> {MATRIX} {{
  %a = {MAKE_CSR}
  return %a : {MATRIX}
}}
func.func @given(%a: {MATRIX}, %x: {DENSE}, %s: !gpu.sparse.spgemmop_handle) {{
  gpu.destroy_sp_mat %a
  gpu.destroy_dn_tensor %x
  gpu.spgemm_destroy_descr %s
  return
}}
func.func @run(%rows: index, %cols: index, %n: index, {CSR}, %x: memref<?xf32>, %y: memref<?xf32>) {{
  %a = call @make(%rows, %cols, %n, %p, %q, %v)
    : (index, index, index, memref<?xindex>, memref<?xindex>, memref<?xf32>) -> {MATRIX}
  %dx = gpu.create_dn_tensor %x, %cols : index into memref<?xf32>
  %dy = gpu.create_dn_tensor %y, %rows : index into memref<?xf32>
  %same = call @multiply(%a, %dx, %dy) : ({MATRIX}, {DENSE}, {DENSE}) -> {DENSE}
  gpu.destroy_dn_tensor %same
  %s = gpu.spgemm_create_descr
  call @given(%a, %dx, %s) : ({MATRIX}, {DENSE}, !gpu.sparse.spgemmop_handle) -> ()
  return
}}
"""

THROUGH_BRANCHES = f"""
func.func @run(%rows: index, %cols: index, %n: index, {CSR}, %x: memref<?xf32>, %y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %some = arith.cmpi sgt, %n, %c0 : index
  %first = scf.if %some -> ({MATRIX}) {{
    %a = {MAKE_CSR}
    scf.yield %a : {MATRIX}
  }} else {{
    %a = gpu.create_csc %rows, %cols, %c0, %p, %q, %v : memref<?xindex>, memref<?xindex>, memref<?xf32>
    scf.yield %a : {MATRIX}
  }}
  %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%before = %first) -> ({MATRIX}) {{
    gpu.destroy_sp_mat %before
    %a = {MAKE_CSR}
    scf.yield %a : {MATRIX}
  }}
  %dx = gpu.create_dn_tensor %x, %cols : index into memref<?xf32>
  %dy = gpu.create_dn_tensor %y, %rows : index into memref<?xf32>
  %size = gpu.spmv_buffer_size %last, %dx, %dy into f32
  %buffer = gpu.alloc (%size) : memref<?xi8>
  gpu.spmv %last, %dx, %dy, %buffer : memref<?xi8> into f32
  gpu.destroy_sp_mat %last
  return
}}
"""

VIEWS = f"""
func.func @run(%rows: index, %cols: index, %n: index, {CSR}, %x: memref<?xf32>, %y: memref<?xf32>) {{
  %c3 = arith.constant 3 : index
  %room = arith.addi %cols, %c3 : index
  %wide = gpu.alloc (%room) : memref<?xf32>
  %view = memref.subview %wide[3] [%cols] [1] : memref<?xf32> to memref<?xf32, strided<[1], offset: 3>>
  gpu.memcpy %view, %x : memref<?xf32, strided<[1], offset: 3>>, memref<?xf32>
  %a = {MAKE_CSR}
  %dx = gpu.create_dn_tensor %view, %cols : index into memref<?xf32, strided<[1], offset: 3>>
  %dy = gpu.create_dn_tensor %y, %rows : index into memref<?xf32>
  %size = gpu.spmv_buffer_size %a, %dx, %dy into f32
  %buffer = gpu.alloc (%size) : memref<?xi8>
  gpu.spmv %a, %dx, %dy, %buffer : memref<?xi8> into f32
  return
}}
"""

TWO_TO_FOUR = """
func.func @run(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf16>) {
  %d0 = arith.constant 0 : index
  %d1 = arith.constant 1 : index
  %m = memref.dim %a, %d0 : memref<?x?xf16>
  %k = memref.dim %a, %d1 : memref<?x?xf16>
  %n = memref.dim %b, %d1 : memref<?x?xf16>
  %db = gpu.create_dn_tensor %b, %k, %n : index, index into memref<?x?xf16>
  %dc = gpu.create_dn_tensor %c, %m, %n : index, index into memref<?x?xf16>
BODY
  return
}
"""
CALLED_24 = f"""
func.func private @multiply(%a: {MATRIX}, %b: {DENSE}, %c: {DENSE}, {BUFFERS}) {{
  gpu.spmm %a, %b, %c, %1, %2, %3 : memref<?xi8>, memref<?xi8>, memref<?xi8> into f16
  gpu.destroy_sp_mat %a
  gpu.destroy_dn_tensor %b
  gpu.destroy_dn_tensor %c
  return
}}
""" + TWO_TO_FOUR.replace(
    "BODY",
    f"""  %s = gpu.create_2to4_spmat {{PRUNE_ONLY}} %m, %k, %a : memref<?x?xf16>
  %sizes:3 = gpu.spmm_buffer_size %s, %db, %dc : index, index, index into f16
  %1 = gpu.alloc (%sizes#0) : memref<?xi8>
  %2 = gpu.alloc (%sizes#1) : memref<?xi8>
  %3 = gpu.alloc (%sizes#2) : memref<?xi8>
  call @multiply(%s, %db, %dc, %1, %2, %3)
    : ({MATRIX}, {DENSE}, {DENSE}, memref<?xi8>, memref<?xi8>, memref<?xi8>) -> ()""",
)  # fmt: skip


def refused(op: str, form: str, reason: str, body: str, arguments: str = "") -> Case:
    """``body`` has one line that is marked."""
    memory = "%f: memref<?xf32>, %i: memref<?xindex>, %h: memref<?xf16>, %b: memref<?xi8>, %n: index"
    handles = f"%m: {MATRIX}, %x: {DENSE}, %s: !gpu.sparse.spgemmop_handle"
    source = f"func.func private @f({memory}, {handles}{arguments}) {{\n{body}\n  return\n}}\n"
    return Case(f"gpu.{op}", form, source, refused=dict.fromkeys(CHIPS, reason))


def typed(op: str, text: str) -> Case:
    reason = "computes in 'i16'; it can compute in f16, bf16, f32, f64, i32 and complex numbers of floats"
    return refused(op, "computing in i16", reason, f"  {text} // here")


VALUES = "has values of type 'i16'; sparse operations have f16, bf16, f32, f64, i8, i32 and complex numbers of floats"
INDEX = "has indices of type 'f32'; they can be index, i64, i32 or i16"
STRIDED = "memref<?xf32, strided<[2]>>"

CASES = [
    Case("gpu.spmv", "handles through functions", THROUGH_FUNCTIONS, run_spmv),
    Case("gpu.destroy_sp_mat", "handles through branches", THROUGH_BRANCHES, run_spmv),
    Case("gpu.create_dn_tensor", "of a view with an offset", VIEWS, run_spmv),
    Case("gpu.spmm", "2:4, handles through functions", CALLED_24, run_spmm24),
    refused("create_dn_tensor", "of rank 3", "has 3 sizes; a dense operand is a vector with one or a matrix with two",
            "  %d = gpu.create_dn_tensor %f, %n, %n, %n : index, index, index into memref<?xf32> // here"),
    refused("create_dn_tensor", "of i16", VALUES,
            "  %d = gpu.create_dn_tensor %v, %n : index into memref<?xi16> // here", ", %v: memref<?xi16>"),
    refused("create_dn_tensor", "strided", "needs contiguous memory, not 'memref<?xf32, strided<[2]>>': copy the "
            "strided view first",
            f"  %d = gpu.create_dn_tensor %v, %n : index into {STRIDED} // here", f", %v: {STRIDED}"),
    refused("create_coo", "indices of two types", "both must have one element type",
            "  %d = gpu.create_coo %n, %n, %n, %i, %v, %f : memref<?xindex>, memref<?xi32>, memref<?xf32> // here",
            ", %v: memref<?xi32>"),
    *(refused(f"create_{format}", "indices f32", INDEX,
              f"  %d = gpu.create_{format} {rest}, %f : {types}, memref<?xf32> // here")
      for format, rest, types in (
          ("coo", "%n, %n, %n, %f, %i", "memref<?xf32>, memref<?xindex>"),
          ("coo_aos", "%n, %n, %n, %f", "memref<?xf32>"),
          ("csr", "%n, %n, %n, %f, %i", "memref<?xf32>, memref<?xindex>"),
          ("csc", "%n, %n, %n, %i, %f", "memref<?xindex>, memref<?xf32>"),
          ("bsr", "%n, %n, %n, %n, %n, %i, %f", "memref<?xindex>, memref<?xf32>"))),
    refused("create_csr", "of i16", VALUES,
            "  %d = gpu.create_csr %n, %n, %n, %i, %i, %v : memref<?xindex>, memref<?xindex>, memref<?xi16> // here",
            ", %v: memref<?xi16>"),
    refused("create_2to4_spmat", "of f32", "has values of type 'f32'; a 2:4 sparse matrix has f16, bf16 or i8",
            "  %d = gpu.create_2to4_spmat {NONE} %n, %n, %f : memref<?xf32> // here"),
    refused("create_2to4_spmat", "a handle that leaves its block", "has a handle that is a block argument or a result",
            f"  %l = scf.for %k = %n to %o step %n iter_args(%e = %m) -> ({MATRIX}) {{\n"
            "  gpu.destroy_sp_mat %e\n"
            "  %d = gpu.create_2to4_spmat {NONE} %n, %n, %h : memref<?xf16> // here\n"
            f"  scf.yield %d : {MATRIX}\n  }}\n  gpu.destroy_sp_mat %l", ", %o: index"),
    typed("spmv_buffer_size", "%d = gpu.spmv_buffer_size %m, %x, %x into i16"),
    typed("spmv", "gpu.spmv %m, %x, %x, %b : memref<?xi8> into i16"),
    typed("spmm_buffer_size", "%d = gpu.spmm_buffer_size %m, %x, %x : index into i16"),
    typed("spmm", "gpu.spmm %m, %x, %x, %b : memref<?xi8> into i16"),
    typed("sddmm_buffer_size", "%d = gpu.sddmm_buffer_size %x, %x, %m into i16"),
    typed("sddmm", "gpu.sddmm %x, %x, %m, %b : memref<?xi8> into i16"),
    typed("spgemm_work_estimation_or_compute",
          "%d = gpu.spgemm_work_estimation_or_compute {COMPUTE} %m, %m, %m, %s, %n, %b : i16 into memref<?xi8>"),
    typed("spgemm_copy", "gpu.spgemm_copy %m, %m, %m, %s : i16"),
    refused("spmm_buffer_size", "two sizes", "has 2 buffers; a 2:4 sparse matrix needs 3, every other one 1",
            "  %d, %e = gpu.spmm_buffer_size %m, %x, %x : index, index into f32 // here"),
    refused("spmm_buffer_size", "2:4, of a matrix made elsewhere", "does not see the gpu.create_2to4_spmat",
            "  %d:3 = gpu.spmm_buffer_size %m, %x, %x : index, index, index into f16 // here"),
    refused("spmm_buffer_size", "2:4, computing in f32", "computes in 'f32'; with a 2:4 sparse matrix",
            "  %c = gpu.create_2to4_spmat {NONE} %n, %n, %h : memref<?xf16>\n"
            "  %d:3 = gpu.spmm_buffer_size %c, %x, %x : index, index, index into f32 // here"),
    refused("spmm", "two buffers", "has 2 buffers; a 2:4 sparse matrix needs 3, every other one 1",
            "  gpu.spmm %m, %x, %x, %b, %b : memref<?xi8>, memref<?xi8> into f32 // here"),
]  # fmt: skip
