"""Editable installations of hatchling's and pybind11's packages; those of other build tools are with their adapters."""

from __future__ import annotations

from pathlib import Path

from packaging_tools import QUICK_CXX, backend, clean_venv, copy_of, in_venv, run, unpack


def editable(package: Path, front_end: str, settings: str = "None") -> Path:
    """The Python of an environment with the package installed as editable, for the CPU alone."""
    out = package.parent / "out"
    backend(package, "build_editable", out, front_end, settings, environment={"OFFLOAD_TARGETS": "host"})
    python = clean_venv(package.parent / "venv")
    unpack(next(out.glob("*.whl")), python)
    return python


def test_hatchling(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    python = editable(package, "offload.hooks.backend")
    code = (
        "import numpy as np, rowwise\n"
        "x = np.zeros((1, 4), np.float32)\n"
        "y = np.empty_like(x)\n"
        "rowwise.softmax(x, y)\n"
        "print(y[0, 0])"
    )
    assert in_venv(python, "-c", code, cwd=tmp_path) == "0.25\n"
    source = package / "src" / "rowwise" / "softmax.mlir"
    source.write_text(source.read_text().replace("arith.divf %e, %sum", "arith.addf %e, %sum"))
    said = in_venv(python, "-c", code, cwd=tmp_path)
    assert said.startswith("rowwise.kernels: kernels.offload.so, ")
    assert said.endswith("\n5.0\n")
    assert in_venv(python, "-c", code, cwd=tmp_path) == "5.0\n"


def test_pybind11(full: bool, tmp_path: Path) -> None:
    """Kernels and C++ in one module: CMake builds what has changed of either (of the C++ with --full, for its time)."""
    package = copy_of("pybind11", tmp_path)
    defined = {f"cmake.define.{name}": value for name, value in {**QUICK_CXX, "OFFLOAD_TARGETS": "host"}.items()}
    settings = {"editable.rebuild": "true", "build-dir": "build", **defined}
    python = editable(package, "scikit_build_core.build", repr(settings))
    code = "import numpy as np, unitvec; print(unitvec.normalized(np.array([3, 4], np.float32))[0])"

    def first() -> str:
        # CMake runs the Python that built the package, with this environment's settings.
        return run(python, "-c", code, cwd=tmp_path, environment={"OFFLOAD_BACKEND": "host"}).stdout.splitlines()[-1]

    assert first() == "0.6"
    kernel = package / "src" / "unitvec" / "scale.mlir"
    kernel.write_text(kernel.read_text().replace("arith.mulf", "arith.addf"))
    assert first() == "3.2"
    if full:
        module = package / "src" / "unitvec" / "module.cpp"
        module.write_text(module.read_text().replace("1 / std::sqrt(squares)", "2.0"))
        assert first() == "5.0"
