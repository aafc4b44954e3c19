"""Parts of one build as jobs of an executor: which there are, the same bytes, and its words once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from compiling import EXAMPLES
from faulty_target import FaultyTarget

import offload
from offload.compiler import driver, parallel
from offload.compiler.native import native

pytestmark = pytest.mark.usefixtures("no_cache")

TARGETS = ["nvvm:sm_80", "nvvm:sm_90", "rocdl:gfx942", "host"]
TWO_MODULES = r"""
gpu.module @compiled [#nvvm.target<chip = "sm_70">] {
  gpu.func @twice(%x: memref<4xf32>) kernel {
    %t = gpu.thread_id x
    %a = memref.load %x[%t] : memref<4xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %x[%t] : memref<4xf32>
    gpu.return
  }
}
gpu.binary @carried [#gpu.object<#nvvm.target<chip = "sm_80">, assembly = ".version 7.0\0A.target sm_80\0A">]
func.func @f(%x: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch_func @compiled::@twice blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
  return
}
"""


class Counting(ThreadPoolExecutor):
    """An executor that remembers what it was to do."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.jobs: list[str] = []
        self.chips: set[str] = set()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        self.jobs.append(arguments[1].__name__)
        self.chips |= {target.chip for target in (*arguments[2].targets, *arguments[2].optional)}
        return super().submit(function, *arguments, **named)


class Silent:
    """One that does not tell how much it does at a time."""

    def __init__(self, inner: Counting) -> None:
        self.submit = inner.submit


def test_an_executor_whose_jobs_are_none(tmp_path: Path) -> None:
    executor = Counting(1)
    executor.submit = lambda *_, **__: 5  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(TypeError, match=r"^executor.submit\(\) gives a job as concurrent.futures.Future is one, not 5"):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "saxpy.so", executor=executor, cache=False)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("alone") / "linear.so"
    return offload.build(EXAMPLES / "linear.mlir", path, targets=TARGETS, cache=False).read_bytes()


@pytest.mark.parametrize(
    ("most", "jobs"),
    [(1, ["build"]), *((most, ["part"] * parts + ["assemble"]) for most, parts in ((2, 2), (4, 4), (9, 5)))],
)
def test_there_are_as_many_jobs_as_there_is_room_for(
    most: int, jobs: list[str], expected: bytes, tmp_path: Path
) -> None:
    lines: list[str] = []
    with Counting(most) as executor:
        path = offload.build(
            EXAMPLES / "linear.mlir", tmp_path / "a.so", targets=TARGETS, executor=executor, progress=lines.append
        )
    assert executor.jobs == jobs
    assert path.read_bytes() == expected
    assert lines[:2] == ["parsing", "making kernels"] and lines[-2:] == ["compiling host code", "linking"]
    assert len(lines) == 4 + 4 * len(TARGETS), lines  # it has four kernels, each a module


@pytest.mark.parametrize("most", [1, 4])
def test_native_is_the_processor_of_who_asks(most: int, tmp_path: Path) -> None:
    """On another machine it would be that one's, and be kept as this one's."""
    with Counting(most) as executor:
        path = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "a.so", targets=["native"], executor=executor)
    assert executor.chips == {native().host_processor()}
    alone = offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "b.so", targets=["native"])
    assert path.read_bytes() == alone.read_bytes()


def test_large_programs_are_cut_between_their_kernels(expected: bytes, tmp_path: Path) -> None:
    (tmp_path / "linear.mlir").write_text((EXAMPLES / "linear.mlir").read_text() + "// a large program\n" * 1000)
    with Counting(10) as executor:
        path = offload.build(tmp_path / "linear.mlir", tmp_path / "a.so", targets=TARGETS, executor=executor)
    assert executor.jobs == [*["part"] * 9, "assemble"]
    assert path.read_bytes() == expected


def test_several_builds_share_the_room(expected: bytes, tmp_path: Path) -> None:
    def builds(count: int) -> list[dict[str, Any]]:
        return [
            {"sources": EXAMPLES / "linear.mlir", "output": tmp_path / f"{number}.so", "targets": TARGETS}
            for number in range(count)
        ]

    for count, jobs in ((2, ["assemble"] * 2 + ["part"] * 4), (3, ["build"] * 3)):
        with Counting(5) as executor:
            paths = offload.build_all(builds(count), executor=executor)
        assert sorted(executor.jobs) == jobs
        assert [path.read_bytes() for path in paths] == [expected] * count


def test_an_executor_that_does_not_tell_has_one_job(expected: bytes, tmp_path: Path) -> None:
    with Counting(5) as executor:
        path = offload.build(
            EXAMPLES / "linear.mlir", tmp_path / "a.so", targets=TARGETS, executor=Silent(executor)  # type: ignore[arg-type]
        )  # fmt: skip
    assert executor.jobs == ["build"] and path.read_bytes() == expected


def test_a_program_that_carries_code_and_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(TWO_MODULES)
    warned, made = [], []
    for most in (1, 4):
        with pytest.warns(offload.BuildWarning) as caught, ThreadPoolExecutor(most) as executor:
            path = offload.build(tmp_path / "a.mlir", tmp_path / "a.so", executor=executor)
        warned.append([str(item.message) for item in caught])
        made.append(path.read_bytes())
    assert len(warned[0]) == 1 and warned[0] == warned[1]
    assert made[0] == made[1]


def test_errors(tmp_path: Path) -> None:
    (tmp_path / "wrong.mlir").write_text("func.func @f() { foo.bar }\n")
    with ThreadPoolExecutor(4) as executor:
        with pytest.raises(offload.CompileError, match=r"wrong.mlir:1:18: error: unknown operation 'foo.bar': "):
            offload.build(tmp_path / "wrong.mlir", tmp_path / "x.so", targets=TARGETS, executor=executor)
        faulty: list[Any] = [*TARGETS[:3], FaultyTarget(fault="abort")]
        with pytest.raises(offload.CompilerCrash, match="crashed with SIGABRT") as crash:
            offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=faulty, executor=executor)
        assert crash.value.reproducer is not None
    assert not (tmp_path / "x.so").exists()


def test_machines_with_different_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFFLOAD_ISOLATE", "0")
    monkeypatch.setattr(driver, "digest", lambda program: "of another version")
    message = "^the parts of this build do not fit together: the machines of the executor have different versions of "
    with ThreadPoolExecutor(4) as executor, pytest.raises(offload.OffloadError, match=message):
        offload.build(EXAMPLES / "saxpy.mlir", tmp_path / "x.so", targets=TARGETS, executor=executor)


def test_other_machines_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where a tool is missing, or what repeats a crash was left, is of interest, and where an image was made."""
    here, lines = threading.get_ident(), []
    monkeypatch.setattr(parallel, "_machine", lambda: "here" if threading.get_ident() == here else "node7")
    with ThreadPoolExecutor(4) as executor:
        path, wrong = tmp_path / "a.so", tmp_path / "wrong.mlir"
        offload.build(EXAMPLES / "saxpy.mlir", path, targets=["host"], executor=executor, progress=lines.append)
        assert lines[-1] == "linking on node7"
        with pytest.raises(offload.CompilerCrash, match=r"\n  this was on node7$") as crash:
            offload.build(EXAMPLES / "saxpy.mlir", path, targets=[FaultyTarget(fault="abort")], executor=executor)
        assert crash.value.reproducer is not None
        wrong.write_text("func.func @f() { foo.bar }\n")
        with pytest.raises(offload.CompileError) as error:
            offload.build(wrong, path, executor=executor)
        assert "node7" not in str(error.value)
