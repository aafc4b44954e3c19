"""meson-python: kernels by a custom_target that runs ``python -m offload.hooks``."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging_tools import backend, clean_venv, copy_of, images, names, run, unpack

MESON = "mesonpy"
HOST = {"OFFLOAD_TARGETS": "host"}


@pytest.mark.parametrize(("given", "expected"), [(HOST, ["host"]), ({}, ["nvvm", "rocdl", "host"])])
def test_what_is_in_the_wheel(given: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    backend(copy_of("meson_python", tmp_path), "build_wheel", tmp_path / "out", MESON, environment=given)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert names(wheel) == {
        f"smooth/{name}" for name in ("__init__.py", "kernels.py", "kernels.pyi", "kernels.offload.so")
    }
    assert [image.split(":")[0] for image in images(wheel, tmp_path)] == expected


def test_a_mistake_is_told(tmp_path: Path) -> None:
    package = copy_of("meson_python", tmp_path)
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace("targets = ", "target = "))
    said = backend(package, "build_wheel", tmp_path / "out", MESON, fails=True)
    assert 'offload: error: pyproject.toml: [[tool.offload.kernels]] 1: unknown key "target"; did you mean ' in said


def test_an_editable_installation_is_built_again(tmp_path: Path) -> None:
    package = copy_of("meson_python", tmp_path)
    backend(package, "build_editable", tmp_path / "out", MESON, environment=HOST)
    python = clean_venv(tmp_path / "venv")
    unpack(next((tmp_path / "out").glob("*.whl")), python)
    code = "import numpy as np, smooth.kernels as k; x = np.array([3, 6, 9], np.float32); y = x.copy(); k.box(x, y); "

    def middle() -> str:
        return run(
            python, "-c", f"{code}print(y[1])", cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host", **HOST}
        ).stdout.split()[-1]

    assert middle() == "6.0"
    source = package / "src" / "smooth" / "box.mlir"
    source.write_text(source.read_text().replace("0.333333343", "0.5"))
    assert middle() == "9.0"
