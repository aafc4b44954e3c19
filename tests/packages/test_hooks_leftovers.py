"""What earlier builds left among the sources stays out of packages, and what is an author's own stays in."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging_tools import backend, copy_of, names, run
from test_hooks_mixed import HATCH, HOST, SETUPTOOLS, edit, wheel_of


def sdist_of(package: Path, folder: Path, front_end: str) -> list[str]:
    backend(package, "build_sdist", folder, front_end)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as file:
        return file.getnames()


@pytest.mark.parametrize("front_end", [SETUPTOOLS, HATCH])
def test_modules_of_tables_that_were_renamed(front_end: str, tmp_path: Path) -> None:
    name, package_name = ("setuptools", "vectorops") if front_end == SETUPTOOLS else ("hatchling", "rowwise")
    package = copy_of(name, tmp_path)
    backend(package, "build_editable", tmp_path / "editable", front_end, environment=HOST)
    edit(package / "pyproject.toml", f'"{package_name}.kernels"', f'"{package_name}.newer"')
    wheel = wheel_of(package, tmp_path / "out", front_end)
    assert f"{package_name}/newer.py" in names(wheel)
    assert not [entry for entry in names(wheel) if "/kernels." in entry]
    backend(package, "build_sdist", tmp_path / "out", front_end)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        assert not [entry for entry in file.getnames() if "/kernels." in entry or "/newer." in entry]


@pytest.mark.parametrize("front_end", [SETUPTOOLS, HATCH])
def test_a_copy_of_a_module_leaves_the_file_whose_name_it_ends_as(front_end: str, tmp_path: Path) -> None:
    name, package_name = ("setuptools", "vectorops") if front_end == SETUPTOOLS else ("hatchling", "rowwise")
    package = copy_of(name, tmp_path)
    backend(package, "build_editable", tmp_path / "editable", front_end, environment=HOST)
    folder = package / "src" / package_name
    (folder / "kernels.old.py").write_bytes((folder / "kernels.py").read_bytes())
    (folder / "old.py").write_text("mine = 1\n")
    assert f"{package_name}/old.py" in names(wheel_of(package, tmp_path / "out", front_end))
    backend(package, "build_sdist", tmp_path / "out", front_end)
    with tarfile.open(next((tmp_path / "out").glob("*.tar.gz"))) as file:
        assert [entry for entry in file.getnames() if entry.endswith("/old.py")]


PROJECTS = [(SETUPTOOLS, "setuptools", "vectorops"), (HATCH, "hatchling", "rowwise")]


@pytest.mark.parametrize(("front_end", "name", "package_name"), PROJECTS)
def test_modules_that_moved_to_another_package(front_end: str, name: str, package_name: str, tmp_path: Path) -> None:
    package = copy_of(name, tmp_path)
    backend(package, "build_editable", tmp_path / "editable", front_end, environment=HOST)
    (package / "src" / package_name / "deeper").mkdir()
    (package / "src" / package_name / "deeper" / "__init__.py").write_text("")
    edit(package / "pyproject.toml", f'"{package_name}.kernels"', f'"{package_name}.deeper.kernels"')
    found = [entry for entry in names(wheel_of(package, tmp_path / "out", front_end)) if "/kernels." in entry]
    assert sorted(found) == [f"{package_name}/deeper/kernels{suffix}" for suffix in (".offload.so", ".py", ".pyi")]
    assert not [entry for entry in sdist_of(package, tmp_path / "out", front_end) if "/kernels." in entry]
    # And back, where the other one is left.
    backend(package, "build_editable", tmp_path / "editable", front_end, environment=HOST)
    edit(package / "pyproject.toml", f'"{package_name}.deeper.kernels"', f'"{package_name}.kernels"')
    again = names(wheel_of(package, tmp_path / "again", front_end))
    assert f"{package_name}/kernels.offload.so" in again
    assert not [entry for entry in again if "/deeper/kernels.py" in entry]


@pytest.mark.parametrize(("front_end", "name", "package_name"), PROJECTS)
def test_compiled_modules_that_an_author_ships(front_end: str, name: str, package_name: str, tmp_path: Path) -> None:
    """They were compiled for a package elsewhere, and lie beside one that is compiled here."""
    package = copy_of(name, tmp_path)
    unpacked = tmp_path / "unpacked"
    wheel = wheel_of(package, tmp_path / "first", front_end)
    with zipfile.ZipFile(wheel) as file:
        made = [entry for entry in file.namelist() if "/kernels." in entry]
        file.extractall(unpacked, made)
    for entry in made:
        to = package / "src" / entry.replace("/kernels.", "/vendored.")
        to.write_bytes((unpacked / entry).read_bytes().replace(b"/kernels.", b"/vendored."))
    if front_end == SETUPTOOLS:
        with (package / "pyproject.toml").open("a") as file:
            file.write('\n[tool.setuptools.package-data]\n"*" = ["*.so", "*.pyi"]\n')
    expected = {entry.replace("/kernels.", "/vendored.") for entry in made}
    assert len(expected) == 3
    for folder in ("second", "third"):  # setuptools has its folder by then
        assert expected <= names(wheel_of(package, tmp_path / folder, front_end))
    entries = sdist_of(package, tmp_path / "second", front_end)
    assert {entry.partition("/src/")[2] for entry in entries if "/vendored." in entry} == expected


@pytest.mark.parametrize(("front_end", "name", "package_name"), PROJECTS)
def test_no_sdist_leaves_out_an_authors_file_of_a_modules_name(
    front_end: str, name: str, package_name: str, tmp_path: Path
) -> None:
    """As a wheel, it is refused: without the author's file it would look right."""
    package = copy_of(name, tmp_path)
    (package / "src" / package_name / "kernels.py").write_text("mine = 1\n")
    said = backend(package, "build_sdist", tmp_path / "out", front_end, fails=True)
    assert "kernels.py is there, and offload did not make it; choose another name" in " ".join(said.split())


def test_extensions_of_setup_py_that_were_renamed(tmp_path: Path) -> None:
    """Their modules do not look at their sources, and were compiled among them all the same."""
    package = copy_of("setuptools", tmp_path)
    edit(package / "pyproject.toml", "[[tool.offload.kernels]]", "[tool.unused]")
    setup = package / "setup.py"
    setup.write_text(
        "from setuptools import setup\nfrom offload.hooks.setuptools import OffloadExtension\n"
        'setup(ext_modules=[OffloadExtension("vectorops.older", ["src/vectorops/scale.mlir"])])\n'
    )
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", "bdist_wheel", cwd=package, environment=HOST)
    assert (package / "src" / "vectorops" / "older.offload.so").is_file()
    edit(setup, "vectorops.older", "vectorops.newer")
    for folder in ("first", "second"):
        found = names(wheel_of(package, tmp_path / folder, SETUPTOOLS))
        assert "vectorops/newer.offload.so" in found
        assert not [entry for entry in found if "/older." in entry]
    assert not [entry for entry in sdist_of(package, tmp_path / "first", SETUPTOOLS) if "/older." in entry]


def test_hatchling_that_is_told_what_to_include_alone(tmp_path: Path) -> None:
    """It names no packages then."""
    package = copy_of("hatchling", tmp_path)
    (package / "src" / "rowwise").rename(package / "rows")
    path = package / "pyproject.toml"
    edit(path, 'packages = ["src/rowwise"]', 'only-include = ["rows"]')
    edit(path, "src/rowwise", "rows")
    edit(path, '"rowwise.kernels"', '"rows.kernels"')
    backend(package, "build_editable", tmp_path / "editable", HATCH, environment=HOST)
    assert (package / "rows" / "kernels.py").is_file()
    (package / "pyvenv.cfg").write_text("")  # python -m venv .
    (package / "rows" / "deeper").mkdir()
    (package / "rows" / "deeper" / "__init__.py").write_text("")
    edit(path, '"rows.kernels"', '"rows.deeper.kernels"')
    found = [entry for entry in names(wheel_of(package, tmp_path / "out", HATCH)) if "kernels." in entry]
    assert sorted(found) == [f"rows/deeper/kernels{suffix}" for suffix in (".offload.so", ".py", ".pyi")]
    assert not [entry for entry in sdist_of(package, tmp_path / "out", HATCH) if "/kernels." in entry]


@pytest.mark.parametrize(("front_end", "name", "package_name"), PROJECTS)
def test_a_file_that_nobody_packages_is_not_in_the_way(
    front_end: str, name: str, package_name: str, tmp_path: Path
) -> None:
    """In ``python``, where scikit-build-core finds packages by itself; these tell where the package is."""
    package = copy_of(name, tmp_path)
    own = package / "python" / package_name / "kernels.py"
    own.parent.mkdir(parents=True)
    own.write_text("mine = 1\n")
    assert f"{package_name}/kernels.py" in names(wheel_of(package, tmp_path / "out", front_end))
    assert own.read_text() == "mine = 1\n"
