"""The stages of a build, and programs that begin at each level. Golden IR: test_golden.py."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import ALL_TARGETS, EXAMPLES, PROGRAMS, command, emit, emit_text, on_host, program, tool
from hypothesis import given, settings
from hypothesis import strategies as st

import offload
from offload.compiler.driver import STAGES
from offload.runtime import Library

LEVELS = PROGRAMS / "levels"


def test_stages_are_in_order() -> None:
    assert STAGES == (
        "input", "kernels", "split", "lowered", "llvm", "isa", "object", "fat", "host-llvm", "so",
    )  # fmt: skip


def test_ir_of_each_stage_is_ir_again(tmp_path: Path) -> None:
    """What a stage prints is read by LLVM's own tools, and a printed program builds to the same library."""
    for stage in ("input", "kernels"):
        text = emit_text(EXAMPLES / "saxpy.mlir", stage)
        tool("mlir-opt", "--verify-each", "-", given=text)
        library = on_host(text)
        x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
        library.saxpy(2, x, y)
        np.testing.assert_array_equal(y, 2 * x + 1)
        assert library.functions["saxpy"].signature.args[1].name == "x"
    for item in emit(EXAMPLES / "linear.mlir", "lowered", ALL_TARGETS):
        tool("mlir-opt", "--verify-each", "-", given=item.data.decode())
    for item in emit(EXAMPLES / "linear.mlir", "llvm", ALL_TARGETS):
        tool("llvm-as", "-", "-o", tmp_path / "x.bc", given=item.data.decode())
    tool("llvm-as", "-", "-o", tmp_path / "x.bc", given=emit_text(EXAMPLES / "linear.mlir", "host-llvm"))


@pytest.mark.parametrize("name", ["saxpy", "transpose"])
def test_bytecode_is_a_program_too(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.mlirbc"
    tool("mlir-opt", "--emit-bytecode", EXAMPLES / f"{name}.mlir", "-o", path)
    library = on_host(path)
    if name == "saxpy":
        x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
        library.saxpy(2, x, y)
        np.testing.assert_array_equal(y, 2 * x + 1)
    else:
        x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((4, 3), np.float32)
        library.transpose(x, y)
        np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("size", [4, 300])
def test_bytecode_that_is_cut(size: int, tmp_path: Path) -> None:
    whole = tmp_path / "saxpy.mlirbc"
    tool("mlir-opt", "--emit-bytecode", EXAMPLES / "saxpy.mlir", "-o", whole)
    cut = tmp_path / "cut.mlirbc"
    cut.write_bytes(whole.read_bytes()[:size])
    with pytest.raises(offload.CompileError, match=r"note: this is bytecode that is cut or damaged, or not of MLIR 22"):
        offload.build(cut, tmp_path / "cut.so")


# Levels.


def level(name: str) -> Library:
    """The program on the CPU; on the way it must have reached the stage ``kernels`` and nothing above it."""
    path = LEVELS / f"{name}.mlir"
    text = emit_text(path, "kernels")
    assert "gpu.launch_func" in text
    for higher in ("scf.parallel", "scf.forall", "affine.parallel", "gpu.launch blocks", "linalg."):
        assert higher not in text, text
    return on_host(path)


def test_each_program_is_tested() -> None:
    text = Path(__file__).read_text()
    assert [path.stem for path in LEVELS.glob("*.mlir") if f'"{path.stem}"' not in text] == []


@pytest.mark.parametrize("name", ["launch", "module", "lowered"])
def test_from_launches_and_kernels(name: str) -> None:
    for n, threads in ((1, 1), (100, 32), (1000, 1000)):
        x = np.arange(n, dtype=np.float32)
        level(name).run(x, threads)
        np.testing.assert_array_equal(x, 2 * np.arange(n))


@given(n=st.integers(1, 2000), start=st.integers(0, 30))
@settings(max_examples=20)
def test_from_parallel_loops_with_any_bounds(n: int, start: int) -> None:
    x = np.ones(n, np.float32)
    level("parallel_1d").run(x, start, n)
    expected = np.ones(n)
    expected[start:n:3] = 2
    np.testing.assert_array_equal(x, expected)


def test_an_empty_parallel_loop_does_nothing() -> None:
    x = np.ones(5, np.float32)
    level("parallel_1d").run(x, 3, 3)
    level("parallel_1d").run(x, 4, 2)
    np.testing.assert_array_equal(x, 1)


def test_from_parallel_loops_with_a_step_of_the_caller() -> None:
    for step in (1, 2, 7):
        x = np.ones(300, np.float32)
        program("parallel_step").run(x, 5, 290, step)
        expected = np.ones(300)
        expected[5:290:step] = 2
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("name", ["parallel_2d", "parallel_3d", "parallel_4d"])
@given(data=st.data())
@settings(max_examples=12)
def test_from_parallel_loops_of_several_dimensions(name: str, data: st.DataObject) -> None:
    rank = int(name[-2])
    shape = data.draw(st.tuples(*[st.integers(1, 40 if rank == 2 else 9)] * rank))
    x = np.zeros(shape, np.int64)
    level(name).run(x)
    expected = sum(index * 100 ** (rank - 1 - axis) for axis, index in enumerate(np.indices(shape)))
    np.testing.assert_array_equal(x, expected)


def test_from_affine_loops() -> None:
    for n in (1, 49, 50, 51, 80):
        x, y = np.arange(n, dtype=np.float32), np.zeros(2 * n + 1, np.float32)
        level("affine").run(x, y)
        expected = np.zeros_like(y)
        count = min(n, 50)
        expected[1 : 2 * count : 2] = 2 * x[:count]
        np.testing.assert_array_equal(y, expected)


def test_from_forall() -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    level("forall").run(x)
    np.testing.assert_array_equal(x, np.arange(35.0).reshape(5, 7) ** 2)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(1).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (33, 65), (1, 100), (100, 1)])
def test_from_linalg(shape: tuple[int, int]) -> None:
    library = level("linalg")
    rows, columns = shape
    x = np.zeros(shape, np.float32)
    library.fill(4.5, x)
    np.testing.assert_array_equal(x, 4.5)
    a, b, c = numbers(rows, 17), numbers(17, columns), numbers(rows, columns)
    expected = a @ b + c
    library.matmul(a, b, c)
    np.testing.assert_array_equal(c, expected)
    added = numbers(rows)
    expected = c + added[:, None]
    library.add_rows(c, added)
    np.testing.assert_array_equal(c, expected)
    sums = numbers(rows)
    expected = sums + c.sum(axis=1)
    library.row_sums(c, sums)
    np.testing.assert_array_equal(sums, expected)
    turned = np.zeros((columns, rows), np.float32)
    library.turn(c, turned)
    np.testing.assert_array_equal(turned, c.T)


def test_from_a_linalg_reduction_to_one_number() -> None:
    x, total = numbers(1000), np.full((), 3, np.float32)
    level("linalg").total(x, total)
    assert total == 3 + x.sum()


def test_linalg_inside_a_kernel() -> None:
    x = np.zeros((5, 8), np.float32)
    level("linalg_in_kernel").run(x, 3)
    np.testing.assert_array_equal(x, 3)


def test_loops_around_and_after_each_other() -> None:
    x = np.zeros(300, np.float32)
    level("nested").run(x, 3)
    np.testing.assert_array_equal(x, ((1 * 2 + 1) * 2 + 1) * 2)


@pytest.mark.parametrize("path", sorted(LEVELS.glob("*.mlir")), ids=lambda path: path.stem)
def test_every_level_builds_for_every_target(path: Path, tmp_path: Path) -> None:
    library = offload.load(offload.build(path, tmp_path / "out.so", targets=ALL_TARGETS))
    assert len(library.metadata.images) % 3 == 0
    assert library.metadata.images


def test_a_program_without_kernels(tmp_path: Path) -> None:
    library = on_host("func.func @add(%x: i64, %y: i64) -> i64 {\n %r = arith.addi %x, %y : i64\n return %r : i64\n}\n")
    assert library.add(1 << 40, 2) == (1 << 40) + 2
    assert list(library.metadata.images) == []


def test_two_sources_make_one_library(tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = (EXAMPLES / "saxpy.mlir").read_text().replace("@saxpy", f"@{name}")
        helper = "func.func private @helper(%x: f32) -> f32 {\n  return %x : f32\n}\n"
        (tmp_path / f"{name}.mlir").write_text(text + helper)
    sources = [tmp_path / "one.mlir", tmp_path / "two.mlir"]
    library = offload.load(offload.build(sources, tmp_path / "out.so"))
    library.use("host")
    for function in (library.one, library.two):
        x, y = np.arange(9, dtype=np.float32), np.ones(9, np.float32)
        function(2, x, y)
        np.testing.assert_array_equal(y, 2 * x + 1)


def test_verifying_after_every_pass(tmp_path: Path) -> None:
    done = command(
        "build", EXAMPLES / "linear.mlir", "--verify-each", "-q", "-o", "out.so", "-t", "nvvm:sm_90", "-t", "host",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def helpers(count: int) -> str:
    """So many functions of which each calls the one before; a kernel calls the last one, and host code the tenth."""
    text = "func.func private @f0(%v: i32) -> i32 { return %v : i32 }\n"
    for number in range(1, count):
        text += f"""func.func private @f{number}(%v: i32) -> i32 {{
          %r = func.call @f{number - 1}(%v) : (i32) -> i32
          return %r : i32
        }}
        """
    return (
        text
        + f"""func.func @run(%x: memref<4xi32>) -> i32 {{
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i32
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
        %v = memref.load %x[%tx] : memref<4xi32>
        %r = func.call @f{count - 1}(%v) : (i32) -> i32
        memref.store %r, %x[%tx] : memref<4xi32>
        gpu.terminator
      }}
      %s = func.call @f9(%one) : (i32) -> i32
      return %s : i32
    }}"""
    )


def test_functions_that_kernels_alone_call_are_no_host_code() -> None:
    """Of many, too: each was once looked for in the whole program as often as functions call each other in a row."""
    took = {}
    for count in (40, 160):
        begin = time.process_time()
        code = emit_text(helpers(count), "host-llvm")
        took[count] = time.process_time() - begin
        assert set(re.findall(r"^define .*@(f\d+)\(", code, re.MULTILINE)) <= {f"f{number}" for number in range(10)}
    assert took[160] < 16 * took[40]
