"""Vendors' Python packages that are used where they are installed: nvJitLink instead of ptxas, rocm-bootstrap."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from compiling import EXAMPLES, command
from offload.targets import nvjitlink, registry
from offload.targets.tools import run_tool

import offload
from offload import artifact


@pytest.fixture
def without_ptxas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolkit with libdevice and nvJitLink alone."""
    target = registry().all()["nvvm"]
    assembler, libdevice = (found.need() for found in target.toolkit())
    library = nvjitlink.find(sys.modules[target.__module__]._TOOLKIT, "").need()
    assert assembler.name == "ptxas"
    home = tmp_path / "toolkit"
    (home / "lib").mkdir(parents=True)
    (home / "nvvm" / "libdevice").mkdir(parents=True)
    (home / "lib" / library.name).symlink_to(library)
    (home / "nvvm" / "libdevice" / libdevice.name).symlink_to(libdevice)
    monkeypatch.setenv("CUDA_HOME", str(home))
    return home


def resources(path: Path) -> dict[str, dict[str, int]]:
    (info,) = artifact.read(path).metadata.images
    return {kernel: dict(values) for kernel, values in info.resources.items()}


@pytest.mark.parametrize("target", ["nvvm:sm_90", "nvvm:sm_80,O=1"])
def test_nvjitlink_assembles_without_ptxas(tmp_path: Path, request: pytest.FixtureRequest, target: str) -> None:
    offload.build([EXAMPLES / "reduce.mlir"], tmp_path / "ptxas.so", targets=[target])
    request.getfixturevalue("without_ptxas")
    offload.build([EXAMPLES / "reduce.mlir"], tmp_path / "nvjitlink.so", targets=[target])
    (image,) = artifact.read(tmp_path / "nvjitlink.so").images
    assert image.data.startswith(b"\x7fELF")
    assert image.format == "bin"
    ours, theirs = resources(tmp_path / "nvjitlink.so"), resources(tmp_path / "ptxas.so")
    assert ours.keys() == theirs.keys()
    for kernel, values in ours.items():
        assert values.keys() == theirs[kernel].keys()
        # It allocates registers another way; what the kernel is stays the same.
        assert values["shared_bytes"] == theirs[kernel]["shared_bytes"]
        assert 0 < values["registers"] < 255


def test_the_doctor_finds_it(without_ptxas: Path, tmp_path: Path) -> None:
    done = command("doctor", cwd=tmp_path)
    assert f"nvvm: nvJitLink (CUDA): {without_ptxas}/lib/libnvJitLink.so." in done.stdout
    assert "(via CUDA_HOME)" in done.stdout


def test_options_of_ptxas_reach_it(without_ptxas: Path, tmp_path: Path) -> None:
    with pytest.raises(offload.OffloadError, match="nonsense") as error:
        offload.build([EXAMPLES / "saxpy.mlir"], tmp_path / "x.so", targets=["nvvm:sm_90,ptxas=--nonsense"])
    assert f"nvjitlink_process.py {without_ptxas}/lib/libnvJitLink.so." in str(error.value)


def assemble(library: Path, text: str, folder: Path, *options: str) -> str:
    source = folder / "in.ptx"
    source.write_text(text)
    return run_tool(nvjitlink.command(library, source, folder / "out.cubin", options), "try")


def test_what_it_refuses(without_ptxas: Path, tmp_path: Path) -> None:
    library = next((without_ptxas / "lib").iterdir())
    wrong = ".version 7.8\n.target sm_90\n.visible .entry k()\n{ rett; }\n"
    with pytest.raises(offload.CompileError, match=r"ptxas kernels\.ptx, line 4; error\s*: .*'rett'"):
        assemble(library, wrong, tmp_path, "-arch=sm_90")
    with pytest.raises(offload.CompileError, match="nvJitLinkCreate failed"):
        assemble(library, "", tmp_path, "-arch=sm_90", "-nonsense")
    damaged = tmp_path / "libnvJitLink.so.13"
    damaged.write_bytes(b"no")
    with pytest.raises(offload.CompileError, match=re.escape(f"{damaged}: the system's loader refuses it")):
        assemble(damaged, "", tmp_path)


def test_a_chip_that_it_lacks_is_a_matter_of_the_toolkit(without_ptxas: Path, tmp_path: Path) -> None:
    with pytest.raises(offload.ToolkitError, match=r"^nvJitLink \(CUDA\) makes no machine code for sm_50: ") as error:
        offload.build([EXAMPLES / "saxpy.mlir"], tmp_path / "x.so", targets=["nvvm:sm_50"])
    assert str(error.value).endswith("PTX, which the driver compiles: nvvm:sm_50,format=isa")


def test_rocm_bootstrap_is_asked_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own interface (0.3.0) in a stand-in; the real one gives the same with forced targets."""
    package = ModuleType("rocm_bootstrap")
    gpus = [SimpleNamespace(target=SimpleNamespace(name=name)) for name in ("gfx942", "gfx1100")]
    package.detect_gpus = lambda: gpus  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rocm_bootstrap", package)
    found = registry().all()["rocdl"].devices()
    assert [(device.chip, device.name) for device in found] == [
        ("gfx942", "AMD GPU gfx942"),
        ("gfx1100", "AMD GPU gfx1100"),
    ]
    monkeypatch.setitem(sys.modules, "rocm_bootstrap", None)
    assert all(device.target == "rocdl" for device in registry().all()["rocdl"].devices())


def test_the_doctor_lists_packages(tmp_path: Path) -> None:
    checks = {check["what"]: check for check in json.loads(command("doctor", "--json", cwd=tmp_path).stdout)}
    for name, cls in registry().all().items():
        check = checks.get(f"{name}: Python packages")
        assert bool(check) == bool(cls.packages)
        for package in cls.packages:
            try:
                line = f"{package} {importlib.metadata.version(package)}"
            except importlib.metadata.PackageNotFoundError:
                assert f"{package} " not in check["detail"] or check["status"] == "none"
            else:
                assert line in check["detail"]
