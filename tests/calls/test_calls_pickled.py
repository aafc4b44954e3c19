"""Pickles and copies: functions and kernels go to other processes by the file of their library, memory does not."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import on_host
from runtime_support import real

import offload
from offload.runtime import Library


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_functions_and_kernels_are_pickled_by_the_library() -> None:
    for make in (again, copy.deepcopy):
        assert make(real().echo_int8)(3) == 3
        x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
        make(real().kernels.saxpy)[1, 4](2, x, y)
        assert y.tolist() == [1, 3, 5, 7]
        make(real().kernels)["saxpy"][1, 4](1, x, y)
        make(real().kernels.saxpy[1, (4, 1), None, 16])(1, x, y)
        assert y.tolist() == [1, 5, 9, 13]


FILL = """gpu.func @{}(%x: memref<1xi32>) kernel {{
  %i = arith.constant 0 : index
  %v = arith.constant {} : i32
  memref.store %v, %x[%i] : memref<1xi32>
  gpu.return
}}"""


def test_one_spelling_of_two_kernels() -> None:
    library = on_host(f"gpu.module @a {{ {FILL.format('b', 1)} }}\ngpu.module @m {{ {FILL.format('a.b', 2)} }}")
    out = np.zeros(1, np.int32)
    for name, value in (("b", 1), ("a.b", 2)):
        again(library.kernels[name])[1, 1](out)
        assert out[0] == value


def test_a_function_in_another_process() -> None:
    add = on_host("func.func @add(%x: i64, %y: i64) -> i64 {\n %r = arith.addi %x, %y : i64\n return %r : i64\n}").add
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(add, [1, 2, 3], [10, 20, 30])) == [11, 22, 33]


def test_the_folder_may_change_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = "func.func @f() -> i64 {\n %r = arith.constant 5 : i64\n return %r : i64\n}"
    (tmp_path / "a.mlir").write_text(source)
    library = offload.load(offload.build("a.mlir", "a.so", targets=["host"]))
    assert library.path == Path("a.so")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert again(library).f() == 5
    assert again(library.f)() == 5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda library: library.device.zeros(3, "f4"), "a DeviceArray .*; pickle its .numpy()"),
        (Library.stream, r"a stream .*; make another one with lib.stream\(\)"),
        (lambda library: library.kernels.saxpy[1, 4, library.stream()], "a stream .*"),
        (lambda library: library.device, "what a library has on a device .*; pickle the library"),
    ],
)
def test_what_stays_in_its_process(make: Any, said: str) -> None:
    """A copied stream would have given the driver's back twice."""
    value = make(real())
    for way in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=said):
            way(value)
    if type(value).__name__ in ("Stream", "DeviceArray"):
        with pytest.raises(TypeError, match=said):
            copy.copy(value)
