"""Wheels for the machine that builds them, and for vendors whose tools it lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compiling import EXAMPLES
from offload.targets import parse_targets
from packaging_tools import backend, copy_of, images

from offload.hooks.build import request_for
from offload.hooks.project import make_table

SETUPTOOLS, HATCH = "setuptools.build_meta", "offload.hooks.backend"


def with_targets(package: Path, targets: str) -> Path:
    """The package, declaring other targets."""
    path = package / "pyproject.toml"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "targets = [" not in line) + f"targets = {targets}\n")
    return package


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_native_is_what_is_in_this_machine(tmp_path: Path) -> None:
    package = with_targets(copy_of("setuptools", tmp_path), '["native"]')
    backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS)
    made = images(wheel_in(tmp_path / "out"), tmp_path)
    here = [target.name for target in parse_targets(["native"])]
    assert sorted({image.split(":")[0] for image in made}) == sorted(set(here))
    # It is named for what it is: elsewhere, native would be something else.
    assert "native" not in [image.split(":")[1] for image in made]


def test_native_with_a_device(drivers: Path, tmp_path: Path) -> None:
    """On a machine with NVIDIA's driver, which a stand-in gives it."""
    package = with_targets(copy_of("setuptools", tmp_path), '["native"]')
    backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, environment={"LD_LIBRARY_PATH": str(drivers)})
    made = {image.split(":")[0] for image in images(wheel_in(tmp_path / "out"), tmp_path)}
    assert made == {"nvvm", *(target.name for target in parse_targets(["native"]))}


@pytest.mark.parametrize(("name", "front_end"), [("setuptools", SETUPTOOLS), ("hatchling", HATCH)])
def test_a_vendor_whose_tools_are_absent(name: str, front_end: str, tmp_path: Path) -> None:
    """The build fails, and says what is missing and what may be done; no wheel comes out."""
    nowhere = {"CUDA_HOME": str(tmp_path / "nowhere")}
    package = copy_of(name, tmp_path)
    said = backend(package, "build_wheel", tmp_path / "out", front_end, environment=nowhere, fails=True)
    assert re.search(
        r'pyproject\.toml: .* key "targets": (ptxas|libdevice) \(CUDA\) was not found\n  looked in:\n', said
    )
    assert 'or leave the target out, or name it in "optional-targets"' in said
    assert "Traceback" not in said
    assert "Warning" not in said
    assert not list((tmp_path / "out").glob("*.whl"))


@pytest.mark.parametrize("name", ["setuptools", "hatchling"])
def test_a_vendor_who_may_be_left_out(name: str, tmp_path: Path) -> None:
    package = with_targets(copy_of(name, tmp_path), '["host"]\noptional-targets = ["nvvm:sm_90", "rocdl:gfx942"]')
    front_end = SETUPTOOLS if name == "setuptools" else HATCH
    nowhere = {"CUDA_HOME": str(tmp_path / "nowhere")}
    said = backend(package, "build_wheel", tmp_path / "out", front_end, environment=nowhere)
    assert ".kernels: left out nvvm:sm_90, which is optional; not found: ptxas (CUDA)" in said
    made = images(wheel_in(tmp_path / "out"), tmp_path)
    assert {image.split(":")[0] for image in made} == {"host", "rocdl"}
    assert {line.split()[0].split(":")[0] for line in said.splitlines() if line.startswith("  ")} == {"host", "rocdl"}


def test_a_processor_that_llvm_does_not_know(tmp_path: Path) -> None:
    """Which is found out by the compiler, behind the spelling."""
    package = with_targets(copy_of("setuptools", tmp_path), '["host:znver99"]')
    said = backend(package, "build_wheel", tmp_path / "out", SETUPTOOLS, fails=True)
    assert (
        'error: pyproject.toml: [[tool.offload.kernels]] 1 ("vectorops.kernels"): key "targets": unknown chip '
        "'znver99' for target host; there are: " in said
    )


def test_what_a_target_is_linked_with_in_a_folder_with_a_comma(tmp_path: Path) -> None:
    """Such a name is no part of a target's spelling."""
    root = tmp_path / "mine, and yours"
    root.mkdir()
    (root / "a.mlir").write_bytes((EXAMPLES / "saxpy.mlir").read_bytes())
    (root / "own.ll").write_text("define void @own() { ret void }\n")
    given = {"module": "a", "sources": ["a.mlir"], "targets": ["host, link=own.ll"]}
    (target,) = request_for(make_table(given, root, "here"), ["host, link=own.ll"], "here").targets
    assert target.link == (str(root / "own.ll"),)
