"""Assertions in host code: an error in Python, and everything in order afterwards."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, command, emit_text, on_host, program

import offload
from offload.runtime import abi

FAILED = r"assertions\.mlir:5: assertion failed: x must be positive\."


def test_a_failed_assertion_is_an_error() -> None:
    library = program("assertions")
    for _ in range(3):
        assert library.check(7) == 7
        with pytest.raises(offload.DeviceError, match=FAILED):
            library.check(-7)


def test_work_goes_on_after_an_assertion_deep_inside() -> None:
    library = program("assertions")
    data = np.zeros(4, np.int32)
    for value in (1, 2):
        for _ in range(100):  # more than a scope's streams: they go back
            with pytest.raises(offload.DeviceError, match=FAILED):
                library.indirect(data, -value)
        library.indirect(data, value)
        np.testing.assert_array_equal(data, np.full(4, value))


def test_nothing_is_left_behind_by_what_failed() -> None:
    """Memory, operands, streams and events of 10 000 failing calls: as many as before."""
    library = program("assertions")
    library.holding(1)

    def counts() -> list[int]:
        return [library._native.api.mgpuCount(what) for what in range(abi.COUNT_OPERANDS + 1)]

    def fail() -> None:
        with pytest.raises(offload.DeviceError, match=FAILED):
            library.holding(-1)

    fail()
    before = counts()
    for _ in range(10_000):
        fail()
    assert counts() == before
    library.holding(1)
    assert counts() == before


def test_many_threads_fail_each_for_itself() -> None:
    library = program("assertions")

    def call(value: int) -> object:
        try:
            return library.check(value)
        except offload.DeviceError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(call, [1, -1] * 200))
    assert results[::2] == [1] * 200
    assert all("assertion failed" in str(text) for text in results[1::2])


def test_only_entry_points_that_may_fail_have_a_guard() -> None:
    text = emit_text(
        'func.func @may(%x: i1) {\n cf.assert %x, "no"\n return\n}\nfunc.func @never() {\n return\n}\n', "host-llvm"
    )
    bodies = dict(part.split("(", 1) for part in text.split("define void @")[1:])
    assert "@mgpuGuardEnter" in bodies["_mlir_ciface_may"]
    assert "@mgpuGuardEnter" not in bodies["_mlir_ciface_never"]


BY_POINTER = """
func.func private @bad(%c: i1) {
  cf.assert %c, "bad"
  return
}
func.func private @good(%c: i1) {
  return
}
func.func @main(%which: i1, %c: i1) {
  %f = func.constant @bad : (i1) -> ()
  %g = func.constant @good : (i1) -> ()
  %h = arith.select %which, %f, %g : (i1) -> ()
  func.call_indirect %h(%c) : (i1) -> ()
  return
}
llvm.func @lowered(%c: i1) {
  cf.assert %c, "lowered"
  llvm.return
}
"""


def test_assertions_behind_pointers_and_of_lowered_functions_are_errors() -> None:
    library = on_host(BY_POINTER)
    for which, c in ((True, True), (False, False), (False, True)):
        assert library.main(which, c) is None
    with pytest.raises(offload.DeviceError, match="assertion failed: bad"):
        library.main(True, False)
    assert library.lowered(True) is None
    with pytest.raises(offload.DeviceError, match="assertion failed: lowered"):
        library.lowered(False)


LOWERED = """
llvm.func @check(%x: !llvm.ptr {llvm.nonnull}, %n: i32 {llvm.signext}) -> (i32 {llvm.signext}) {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  %isEnd = llvm.icmp "eq" %n, %0 : i32
  llvm.cond_br %isEnd, ^end, ^more
^more:
  %isMore = llvm.icmp "sgt" %n, %0 : i32
  cf.assert %isMore, "below"
  %less = llvm.sub %n, %1 : i32
  %result = llvm.call @check(%x, %less) : (!llvm.ptr, i32) -> i32
  llvm.return %result : i32
^end:
  %old = llvm.load %x : !llvm.ptr -> i32
  llvm.return %old : i32
}
llvm.func @twice(%x: !llvm.ptr, %n: i32) -> i32 {
  %mark = llvm.mlir.constant(9 : i32) : i32
  %first = llvm.call @check(%x, %n) : (!llvm.ptr, i32) -> i32
  llvm.store %mark, %x : i32, !llvm.ptr
  %second = llvm.call @check(%x, %n) : (!llvm.ptr, i32) -> i32
  %sum = llvm.add %first, %second : i32
  llvm.return %sum : i32
}
llvm.func @in_place(%x: !llvm.ptr, %n: i32) -> i32 {
  %result = llvm.call musttail @twice(%x, %n) : (!llvm.ptr, i32) -> i32
  llvm.return %result : i32
}
"""


def test_lowered_functions_that_the_program_calls_too() -> None:
    """Their failures are errors whoever calls, and what called them does not go on."""
    library = on_host(LOWERED)
    x = np.array([4], np.int32)
    assert library.check(x, 3) == 4
    assert library.twice(x, 3) == 13
    assert library.in_place(x, 3) == 18
    for name in ("check", "twice", "in_place"):
        x[0] = 4
        with pytest.raises(offload.DeviceError, match="assertion failed: below"):
            getattr(library, name)(x, -1)
        assert x[0] == 4


def test_c_callers_past_the_entry_point_see_what_c_does(tmp_path: Path) -> None:
    path = offload.build(PROGRAMS / "assertions.mlir", tmp_path / "a.so", targets=["host"])
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).check(-1)"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == -6
    assert "assertions.mlir:5: assertion failed: x must be positive" in done.stderr


def test_run_says_it_and_exits_with_1(tmp_path: Path) -> None:
    source = tmp_path / "main.mlir"
    source.write_text('func.func @main() {\n  %no = arith.constant false\n  cf.assert %no, "never"\n  return\n}\n')
    done = command("run", source, "--target", "host", cwd=tmp_path)
    assert done.returncode == 1
    assert "main.mlir:3: assertion failed: never." in done.stderr


IN_LOOPS = """
func.func @rows(%which: memref<?xi64>, %table: memref<30x16xf32>, %out: memref<?x16xf32>) {
  %c30 = arith.constant 30 : index
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]} ins(%which : memref<?xi64>) outs(%out : memref<?x16xf32>) {
  ^bb0(%in: i64, %old: f32):
    %i = arith.index_cast %in : i64 to index
    %ok = arith.cmpi ult, %i, %c30 : index
    cf.assert %ok, "no such row"
    %j = linalg.index 1 : index
    %v = memref.load %table[%i, %j] : memref<30x16xf32>
    linalg.yield %v : f32
  }
  return
}
func.func @taken(%which: tensor<?xi64>, %table: tensor<30xf32>) -> tensor<f32> {
  %c30 = arith.constant 30 : index
  %zero = arith.constant dense<0.0> : tensor<f32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                         iterator_types = ["reduction"]} ins(%which : tensor<?xi64>) outs(%zero : tensor<f32>) {
  ^bb0(%in: i64, %sofar: f32):
    %i = arith.index_cast %in : i64 to index
    %ok = arith.cmpi ult, %i, %c30 : index
    cf.assert %ok, "no such row"
    %v = tensor.extract %table[%i] : tensor<30xf32>
    %more = arith.addf %sofar, %v : f32
    linalg.yield %more : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}
func.func @positive(%x: memref<?xi32>) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %x[%i] : memref<?xi32>
    %ok = arith.cmpi sgt, %v, %zero : i32
    cf.assert %ok, "not positive"
    %ok32 = arith.extui %ok : i1 to i32
    %less = arith.subi %v, %ok32 : i32
    memref.store %less, %x[%i] : memref<?xi32>
  }
  return
}
"""


def test_loops_that_become_kernels_assert() -> None:
    library = offload.compile(IN_LOOPS, targets=["host"])
    table = np.arange(30 * 16, dtype=np.float32).reshape(30, 16)
    which, out = np.array([3, 29, 0], np.int64), np.zeros((3, 16), np.float32)
    library.rows(which, table, out)
    np.testing.assert_array_equal(out, table[which])
    assert library.taken(which, table[:, 0].copy()).numpy() == table[which, 0].sum()
    numbers = np.arange(1, 1001, dtype=np.int32)
    library.positive(numbers)
    np.testing.assert_array_equal(numbers, np.arange(1000))
    for call in (
        lambda: library.rows(which + 1, table, out),
        lambda: library.taken(which + 1, table[:, 0].copy()),
        lambda: library.positive(numbers),
    ):
        with pytest.raises(
            offload.DeviceError, match=r"failed an assertion .*<string>:\d+:5: (no such row|not positive)"
        ):
            call()


def test_it_builds_for_every_target() -> None:
    assert "mgpuAssertFail" in emit_text(PROGRAMS / "assertions.mlir", "host-llvm", ALL_TARGETS)
    assert "assertfail" in emit_text(IN_LOOPS, "isa", ["nvvm:sm_90"])
    assert "s_trap" in emit_text(IN_LOOPS, "isa", ["rocdl:gfx942"])
