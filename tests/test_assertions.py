"""Assertions in host code: an error in Python, and everything in order afterwards."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compiling import ALL_TARGETS, PROGRAMS, command, emit_text, program

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


def test_it_builds_for_every_target() -> None:
    assert "mgpuAssertFail" in emit_text(PROGRAMS / "assertions.mlir", "host-llvm", ALL_TARGETS)
