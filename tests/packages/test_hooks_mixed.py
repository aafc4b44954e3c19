"""Packages that have more than kernels: commands, modules, compiled code and build hooks of their own."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging_tools import backend, copy_of, names, run

import offload
import offload.artifact
from offload.errors import OffloadError
from offload.hooks import freshness
from offload.hooks.project import read_tables
from offload.hooks.report import check_platform

SETUPTOOLS, HATCH = "setuptools.build_meta", "hatchling.build"
HOST = {"OFFLOAD_TARGETS": "host"}


def wheel_of(package: Path, folder: Path, front_end: str, **given: object) -> Path:
    backend(package, "build_wheel", folder, front_end, environment=HOST, **given)
    (wheel,) = folder.glob("*.whl")
    return wheel


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def library_in(wheel: Path, folder: Path) -> offload.Library:
    run(sys.executable, "-m", "zipfile", "-e", wheel, folder, cwd=folder.parent)
    (path,) = folder.rglob("*.offload.so")
    return offload.load(path)


@pytest.mark.parametrize("place", ["pyproject.toml", "setup.py"])
def test_a_package_with_commands_of_its_own(place: str, tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    (package / "commands.py").write_text(
        "from setuptools.command.build_py import build_py\nclass BuildPy(build_py):\n    def run(self):\n"
        "        super().run()\n        if not self.editable_mode:\n"
        "            open(f'{self.build_lib}/vectorops/ran.txt', 'w').close()\n"
    )
    if place == "setup.py":
        text = "import sys\nsys.path.insert(0, '.')\nfrom commands import BuildPy\nfrom setuptools import setup\n"
        (package / place).write_text(text + "setup(cmdclass={'build_py': BuildPy})\n")
    else:
        with (package / place).open("a") as file:
            file.write('\n[tool.setuptools.cmdclass]\nbuild_py = "commands.BuildPy"\n')
    wheel = wheel_of(package, tmp_path / "out", SETUPTOOLS)
    assert "py3-none-" in wheel.name
    assert {"vectorops/kernels.py", "vectorops/kernels.offload.so", "vectorops/ran.txt"} <= names(wheel)
    backend(package, "build_editable", tmp_path / "editable", SETUPTOOLS, environment=HOST)
    backend(package, "build_sdist", tmp_path / "out", SETUPTOOLS)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        assert not [name for name in file.getnames() if "/kernels." in name]


def test_a_wheel_after_an_installation_in_place_has_the_new_library(tmp_path: Path) -> None:
    """setuptools copies the loader of the sources into its folder, and not the library."""
    package = copy_of("setuptools", tmp_path)
    edit(package / "pyproject.toml", "[[tool.offload.kernels]]", "[tool.unused]")
    (package / "setup.py").write_text(
        "from setuptools import setup\nfrom offload.hooks.setuptools import OffloadExtension\n"
        'setup(ext_modules=[OffloadExtension("vectorops.kernels", ["src/vectorops/scale.mlir"])])\n'
    )
    wheel_of(package, tmp_path / "out", SETUPTOOLS)
    edit(package / "src" / "vectorops" / "scale.mlir", "arith.mulf %a, %xi", "arith.addf %a, %xi")
    backend(package, "build_editable", tmp_path / "editable", SETUPTOOLS, environment=HOST)
    library = library_in(wheel_of(package, tmp_path / "out", SETUPTOOLS), tmp_path / "unpacked")
    x = np.ones(3, np.float32)
    library.scale(4, x)
    assert x[0] == 5


HOOK = """from hatchling.builders.hooks.plugin.interface import BuildHookInterface
class Other(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["infer_tag"] = True
        build_data["pure_python"] = False
"""


@pytest.mark.parametrize("place", ["build", "build.targets.sdist", "a hook"])
def test_artifacts_of_a_project_are_not_what_was_made_in_place(place: str, tmp_path: Path) -> None:
    """hatchling takes artifacts whatever is excluded; an editable module names a folder of its author's."""
    package = copy_of("hatchling", tmp_path)
    path = package / "pyproject.toml"
    named = 'artifacts = ["*.so", "*/kernels.py"]\n'
    if place == "a hook":
        adds = "        build_data['artifacts'] += ['*.so', '*/kernels.py']\n"
        (package / "hatch_build.py").write_text(HOOK + adds)
        edit(
            path,
            "[tool.hatch.build.hooks.offload]",
            "[tool.hatch.build.hooks.custom]\n[tool.hatch.build.hooks.offload]",
        )
    else:
        path.write_text(f"{path.read_text()}\n[tool.hatch.{place}]\n{named}")
    backend(package, "build_editable", tmp_path / "editable", HATCH, environment=HOST)
    (package / "src" / "rowwise" / "own.so").write_text("")
    backend(package, "build_sdist", tmp_path / "out", HATCH)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        entries = [entry for entry in file.getnames() if "kernels." in entry or entry.endswith(".so")]
    assert entries == ["rowwise-1.0/src/rowwise/own.so"]


@pytest.mark.parametrize("front_end", [SETUPTOOLS, HATCH])
def test_sources_that_a_program_writes(front_end: str, tmp_path: Path) -> None:
    name, file = ("setuptools", "vectorops/scale") if front_end == SETUPTOOLS else ("hatchling", "rowwise/softmax")
    package = copy_of(name, tmp_path)
    source = package / "src" / f"{file}.mlir"
    source.rename(package / "template.txt")
    writes = f"Path('src/{file}.mlir').write_text(Path('template.txt').read_text())\n"
    if front_end == SETUPTOOLS:
        (package / "setup.py").write_text(f"from pathlib import Path\nfrom setuptools import setup\n{writes}setup()\n")
    else:
        (package / "hatch_build.py").write_text(f"from pathlib import Path\n{HOOK}        {writes}")
        offload_hook = "[tool.hatch.build.hooks.offload]"
        edit(package / "pyproject.toml", offload_hook, f"[tool.hatch.build.hooks.custom]\n{offload_hook}")
    wheel = wheel_of(package, tmp_path / "out", front_end)
    assert f"{file.partition('/')[0]}/kernels.offload.so" in names(wheel)
    source.unlink()
    backend(package, "build_sdist", tmp_path / "out", front_end)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as archive:
        assert [entry for entry in archive.getnames() if entry.endswith(f"/src/{file}.mlir")]


@pytest.mark.parametrize("front_end", [SETUPTOOLS, HATCH])
def test_a_package_with_a_file_that_is_open_in_an_editor(front_end: str, tmp_path: Path) -> None:
    """Emacs marks it by a link to nowhere beside it."""
    name, package_name = ("setuptools", "vectorops") if front_end == SETUPTOOLS else ("hatchling", "rowwise")
    package = copy_of(name, tmp_path)
    (package / "src" / package_name / ".#__init__.py").symlink_to("author@machine.4711:1700000000")
    backend(package, "build_editable", tmp_path / "editable", front_end, environment=HOST)
    backend(package, "build_sdist", tmp_path / "out", front_end)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        assert not [entry for entry in file.getnames() if "/kernels." in entry]


@pytest.mark.parametrize("front_end", [SETUPTOOLS, HATCH])
def test_a_module_of_the_authors_own_is_not_replaced(front_end: str, tmp_path: Path) -> None:
    name, package_name = ("setuptools", "vectorops") if front_end == SETUPTOOLS else ("hatchling", "rowwise")
    package = copy_of(name, tmp_path)
    own = package / "src" / package_name / "kernels.py"
    own.write_text("VALUE = 1\n")
    said = backend(package, "build_wheel", tmp_path / "out", front_end, environment=HOST, fails=True)
    assert f"{own.relative_to(package)} is there, and offload did not make it; choose another name" in said


def test_a_module_of_the_authors_own_in_a_folder_that_is_renamed_on_its_way(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    (package / "src").rename(package / "python")
    (package / "python" / "rowwise" / "kernels.py").write_text("VALUE = 1\n")
    settings = (package / "pyproject.toml").read_text().replace("src/", "python/")
    wheel = "[tool.hatch.build.targets.wheel]\n"
    sources = '[tool.hatch.build.targets.wheel.sources]\n"python/rowwise" = "rowwise"\n'
    kept = "\n".join(line for line in settings.splitlines() if not line.startswith("packages = "))
    settings = kept.replace(wheel, "") + f'\n{wheel}include = ["python/rowwise"]\n{sources}'
    (package / "pyproject.toml").write_text(settings)
    said = backend(package, "build_wheel", tmp_path / "out", HATCH, environment=HOST, fails=True)
    assert "python/rowwise/kernels.py is there, and offload did not make it; choose another name" in said


CALLS_C = """
gpu.module @device {
  func.func private @twice(f32) -> f32
  gpu.func @k(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<?xf32>
    %w = func.call @twice(%v) : (f32) -> f32
    memref.store %w, %x[%c0] : memref<?xf32>
    gpu.return
  }
}
func.func @run(%x: memref<?xf32>) attributes {llvm.emit_c_interface} {
  %c1 = arith.constant 1 : index
  gpu.launch_func @device::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
  return
}
"""
TWICE = "define float @twice(float %x) {\n  %r = fmul float %x, 2.0\n  ret float %r\n}\n"


def test_what_a_target_is_linked_with_belongs_to_the_sources(tmp_path: Path) -> None:
    package = copy_of("setuptools", tmp_path)
    folder = package / "src" / "vectorops"
    head = (package / "pyproject.toml").read_text().split("[[tool.offload.kernels]]")[0]
    (package / "pyproject.toml").write_text(
        f'{head}[[tool.offload.kernels]]\nmodule = "vectorops.kernels"\nsources = ["src/vectorops/calls.mlir"]\n'
        'targets = ["host,link=src/vectorops/twice.ll"]\n'
    )
    (folder / "calls.mlir").write_text(CALLS_C)
    (folder / "twice.ll").write_text(TWICE)
    (table,) = read_tables(package / "pyproject.toml")
    assert table.files == ("src/vectorops/calls.mlir", "src/vectorops/twice.ll")
    backend(package, "build_sdist", tmp_path / "out", SETUPTOOLS)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        file.extractall(tmp_path / "from")
    (unpacked,) = (tmp_path / "from").iterdir()
    for factor in (2, 3):
        (unpacked / "src" / "vectorops" / "twice.ll").write_text(TWICE.replace("2.0", f"{factor}.0"))
        backend(unpacked, "build_wheel", tmp_path / "out", SETUPTOOLS)
        (wheel,) = (tmp_path / "out").glob("*.whl")
        library, x = library_in(wheel, tmp_path / f"times{factor}"), np.ones(1, np.float32)
        library.run(x)
        assert x[0] == factor
        assert str(tmp_path).encode() not in library.path.read_bytes()
    # From another folder, as an editable module is built again.
    output = ["--output", tmp_path / "built"]
    run(sys.executable, "-m", "offload.hooks", "build", unpacked / "pyproject.toml", *output, cwd=tmp_path)
    (folder / "twice.ll").unlink()
    with pytest.raises(OffloadError, match=r'vectorops.kernels"\): targets: there is no file src/vectorops/twice.ll'):
        read_tables(package / "pyproject.toml")


def test_beside_a_hook_whose_code_is_for_one_python(tmp_path: Path) -> None:
    package = copy_of("hatchling", tmp_path)
    (package / "hatch_build.py").write_text(HOOK)
    path = package / "pyproject.toml"
    edit(path, 'build-backend = "offload.hooks.backend"', f'build-backend = "{HATCH}"')
    edit(
        path, "[tool.hatch.build.hooks.offload]", "[tool.hatch.build.hooks.offload]\n[tool.hatch.build.hooks.custom]\n"
    )
    said = backend(package, "build_wheel", tmp_path / "out", HATCH, environment=HOST, fails=True)
    assert "put [tool.hatch.build.hooks.offload] behind the table of that hook" in said
    assert not list((tmp_path / "out").glob("*.whl"))
    edit(path, "[tool.hatch.build.hooks.custom]\n", "")
    edit(path, "[tool.hatch.build.hooks.offload]", "[tool.hatch.build.hooks.custom]\n[tool.hatch.build.hooks.offload]")
    wheel = wheel_of(package, tmp_path / "out", HATCH)
    assert "py3-none" not in wheel.name
    assert "rowwise/kernels.offload.so" in names(wheel)


def test_beside_a_plugin_whose_code_is_for_one_python(tmp_path: Path) -> None:
    """As setuptools-rust does it: it says that the distribution has compiled code."""
    package = copy_of("setuptools", tmp_path)
    (package / "setup.py").write_text(
        "from setuptools import Distribution, setup\nclass Rusty(Distribution):\n"
        "    def has_ext_modules(self):\n        return True\nsetup(distclass=Rusty)\n"
    )
    assert "py3-none" not in wheel_of(package, tmp_path / "out", SETUPTOOLS).name


def test_a_library_for_another_processor_than_the_wheels(tmp_path: Path) -> None:
    path = tmp_path / "k.so"
    offload.build(Path(copy_of("setuptools", tmp_path), "src", "vectorops", "scale.mlir"), path, targets=["host"])
    machine = offload.artifact.read(path).machine
    ours, other = ("x86_64", "aarch64") if machine == 62 else ("aarch64", "x86_64")
    check_platform("here", path, f"linux_{ours}")
    check_platform("here", path, f"manylinux_2_28_{ours}")
    check_platform("here", path, f"musllinux_1_2_{ours}")
    for platform in ("any", f"macosx_11_0_{ours}", "win_amd64"):
        with pytest.raises(OffloadError) as caught:
            check_platform("here", path, platform)
        assert str(caught.value) == (
            f"here: the library is for Linux on {ours}, and the wheel's tag would be {platform}: leave plat-name out"
        )
    with pytest.raises(OffloadError) as caught:
        check_platform("pyproject.toml: 1", path, f"linux_{other}")
    assert str(caught.value) == (
        f"pyproject.toml: 1: the library is for {ours}, and the wheel's tag would be linux_{other}: leave out the "
        f"targets for {ours}, or build the wheel for it with _PYTHON_HOST_PLATFORM=linux-{ours}"
    )


def test_another_offload_does_not_make_editable_modules_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (table,) = read_tables(copy_of("setuptools", tmp_path) / "pyproject.toml")
    digests = []
    for version in ("1.0", "2.0"):
        monkeypatch.setattr(freshness, "__version__", version)
        digests.append([freshness.digest_of_table(table, None, editable) for editable in (True, False)])
    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]


def test_files_of_targets_that_stand_in_place_of_the_declared_ones(tmp_path: Path) -> None:
    """OFFLOAD_TARGETS may name what kernels are linked with: a change of it is one of the module."""
    package = copy_of("setuptools", tmp_path)
    (table,) = read_tables(package / "pyproject.toml")
    linked, digests = package / "twice.ll", set()
    for text in ("; none", "; another"):
        linked.write_text(text)
        for instead in (["host,link=twice.ll"], ["host"], None):
            digests.add(freshness.digest_of_table(table, instead, editable=True))
    assert len(digests) == 4
    linked.unlink()
    freshness.digest_of_table(table, ["host,link=twice.ll"], editable=True)  # the build says that it is not there


def test_in_place_as_other_extensions(tmp_path: Path) -> None:
    """``build_ext --inplace`` puts kernels among the sources, and a wheel of the same run has its own."""
    package = copy_of("setuptools", tmp_path)
    (package / "setup.py").write_text(
        "from offload.hooks.setuptools import OffloadExtension\n"
        "from setuptools import setup\n"
        'setup(ext_modules=[OffloadExtension("vectorops.more", ["src/vectorops/*.mlir"])])\n'
    )
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", "bdist_wheel", cwd=package, environment=HOST)
    folder = package / "src" / "vectorops"
    made = {f"{name}{suffix}" for name in ("kernels", "more") for suffix in (".py", ".pyi", ".offload.so")}
    assert made <= {path.name for path in folder.iterdir()}
    assert "pyproject.toml" in (folder / "kernels.py").read_text()  # it builds itself again where a source changes
    with zipfile.ZipFile(next((package / "dist").glob("*-py3-none-*.whl"))) as wheel:
        assert {f"vectorops/{name}" for name in made} <= set(wheel.namelist())
        assert b"pyproject.toml" not in wheel.read("vectorops/kernels.py")
