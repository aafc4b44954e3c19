"""Targets that a program attaches to its gpu.modules: what a build that was given none says of them."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from compiling import command
from ready import CUBIN, escaped

import offload

PROGRAM = """#mine = #nvvm.target<chip = "sm_90", O = 3>
module attributes {gpu.container_module} {
  gpu.module @first [#mine, #rocdl.target<chip = "gfx942">] {
    gpu.func @k() kernel { gpu.return }
  }
  gpu.module @second { gpu.func @k() kernel { gpu.return } }
  gpu.module @third [#nvvm.target] { gpu.func @k() kernel { gpu.return } }
}
"""
CARRIED = f"""gpu.module @m [#nvvm.target<chip = "sm_90">] attributes {{nvvm.cubin = {escaped(CUBIN)}}} {{
  llvm.func @k(!llvm.ptr, !llvm.ptr, i64, i64, i64, f32) attributes {{gpu.kernel}}
}}
"""


def said(source: str, targets: Sequence[str], folder: Path) -> list[str]:
    """The warnings of a build."""
    (folder / "program.mlir").write_text(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        offload.build(folder / "program.mlir", folder / "program.so", targets=targets, cache=False)
    assert {item.category for item in caught} <= {offload.BuildWarning}
    return [str(item.message) for item in caught]


@pytest.mark.parametrize("isolated", ["0", "1"])
def test_targets_that_nobody_asked_for_are_said_at_their_module(
    isolated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLOAD_ISOLATE", isolated)
    first, third = said(PROGRAM, [], tmp_path)
    assert "program.mlir:3:3: warning: gpu.module @first gets no image for " in first
    assert re.search(r"the build is for host; name what you want, such as nvvm:sm_90, rocdl:gfx942\n", first)
    assert first.endswith('\n  gpu.module @first [#mine, #rocdl.target<chip = "gfx942">] {\n  ^')
    assert "program.mlir:7:3: warning: gpu.module @third gets no image for #nvvm.target: " in third


def test_a_target_that_does_not_exist_here_is_said_without_advice(tmp_path: Path) -> None:
    target = "#spirv.target_env<#spirv.vce<v1.0, [Shader], []>, #spirv.resource_limits<>>"
    (text,) = said(f"gpu.module @m [{target}] {{\n}}\n", [], tmp_path)
    assert text.split("\n")[0].endswith(": no target was named, so the build is for host")


@pytest.mark.parametrize("targets", [["host"], ["nvvm:sm_80"], ["nvvm:sm_90", "native"]])
def test_who_names_targets_is_told_nothing(targets: list[str], tmp_path: Path) -> None:
    assert said(PROGRAM, targets, tmp_path) == []


def test_an_image_that_is_there_needs_no_word(tmp_path: Path) -> None:
    assert said(CARRIED, [], tmp_path) == []
    (text,) = said(CARRIED.replace('"sm_90"', '"sm_80"'), [], tmp_path)
    assert "gets no image for #nvvm.target<chip = \"sm_80\">" in text  # fmt: skip


@pytest.mark.parametrize("isolated", ["0", "1"])
def test_what_comes_from_the_cache_is_said_again(
    isolated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLOAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OFFLOAD_ISOLATE", isolated)
    (tmp_path / "program.mlir").write_text(PROGRAM)
    built = tmp_path / "program.so"
    said = []
    for make in (offload.compile, offload.compile, lambda path: offload.build(path, built)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make(tmp_path / "program.mlir")
        said.append([str(item.message) for item in caught])
    assert len(said[0]) == 2 and said == [said[0]] * 3
    from_cache = built.read_bytes()  # without the warnings, which are kept behind it
    made = offload.build(tmp_path / "program.mlir", built, targets=["host"], cache=False)
    assert made.read_bytes() == from_cache


def test_the_command_line_shows_the_line_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    done = command("build", "program.mlir", "-o", "program.so", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "program.so").exists()
    assert "\nprogram.mlir:3:3: warning: gpu.module @first gets no image" in "\n" + done.stderr


@pytest.mark.parametrize("cached", [False, True])
def test_they_are_said_at_the_line_that_asked_for_the_build(cached: bool, tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    for _ in range(1 + cached):
        with pytest.warns(offload.BuildWarning) as caught:
            offload.build(tmp_path / "program.mlir", tmp_path / "program.so", cache=cached)
            offload.compile(tmp_path / "program.mlir", cache=cached)
    assert {item.filename for item in caught} == {__file__}


def test_build_tools_show_the_line(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.offload.kernels]]\nmodule = "kernels"\nsources = ["program.mlir"]\n'
    )
    words = [sys.executable, "-m", "offload.hooks", "build", "pyproject.toml", "--output", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("program.mlir:3:3: warning: gpu.module @first gets no image")
    assert "BuildWarning" not in done.stderr


def test_a_process_of_an_executor_s_is_not_where_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    with ProcessPoolExecutor(1) as pool, pytest.warns(offload.BuildWarning) as caught:
        offload.build(tmp_path / "program.mlir", tmp_path / "program.so", executor=pool, cache=False)
    assert sum(issubclass(each.category, offload.BuildWarning) for each in caught) == 2  # Python warns of forks
