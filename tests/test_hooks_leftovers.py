"""What earlier builds left among the sources stays out of packages, and what is an author's own stays in."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging_tools import backend, copy_of, names
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
def test_an_sdist_keeps_what_has_the_name_of_a_module(
    front_end: str, name: str, package_name: str, tmp_path: Path
) -> None:
    """As a wheel, it is refused: without the author's file it would look right."""
    package = copy_of(name, tmp_path)
    (package / "src" / package_name / "kernels.py").write_text("mine = 1\n")
    said = backend(package, "build_sdist", tmp_path / "out", front_end, fails=True)
    assert "kernels.py is there, and offload did not make it; choose another name" in " ".join(said.split())
