"""Environments of tox for the jobs of `offload matrix`: printed as tox reads them, and checked."""

from __future__ import annotations

import configparser
import re
import shutil
import sys
from pathlib import Path

import pytest
from compiling import EXAMPLES, ROOT
from packaging_tools import EXAMPLES as PACKAGES
from packaging_tools import run

from offload.cli import main
from offload.hooks.project import read_toml
from offload.hooks.python_versions import declared_pythons

PYPROJECT = """
[project]
name = "pkg"
requires-python = ">=3.11,<3.13"
[[tool.offload.kernels]]
module = "pkg.kernels"
sources = ["saxpy.mlir"]
targets = ["nvvm:sm_90", "host"]
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a package and the tox.ini that is printed for it."""
    shutil.copy(EXAMPLES / "saxpy.mlir", tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    assert main(["matrix", "--format", "tox"]) == 0
    (tmp_path / "tox.ini").write_text(capsys.readouterr().out)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(["matrix", "--check-tox", "tox.ini"]) == code
    return capsys.readouterr().err


def test_what_tox_makes_of_it(package: Path) -> None:
    listed = run(sys.executable, "-m", "tox", "list", "--no-desc", "-d", cwd=package).stdout.split()
    assert listed == ["py311-nvvm_sm_90", "py311-host", "py312-nvvm_sm_90", "py312-host"]
    names = "py311-nvvm_sm_90,py311-nvvm_sm_90-device,py312-host,.pkg_nvvm_sm_90,.pkg_host"
    said = run(
        sys.executable, "-m", "tox", "config", "-e", names, "-k", "set_env", "wheel_build_env", "base_python",
        cwd=package,
    ).stdout  # fmt: skip
    told = re.compile(r"(?:OFFLOAD_\w+|PYTEST_ADDOPTS)=\S+|(?<=build_env = )\.pkg_\w+|py3\d+$", re.MULTILINE)
    found = {part.split("]")[0]: set(told.findall(part)) for part in said.split("[testenv:")[1:]}
    assert found == {
        "py311-nvvm_sm_90": {".pkg_nvvm_sm_90", "OFFLOAD_BACKEND=host", "py311"},
        "py311-nvvm_sm_90-device": {
            ".pkg_nvvm_sm_90", "OFFLOAD_BACKEND=cuda", "PYTEST_ADDOPTS=--offload-require=cuda", "py311",
        },
        "py312-host": {".pkg_host", "OFFLOAD_BACKEND=host", "py312"},
        ".pkg_nvvm_sm_90": {"OFFLOAD_TARGETS=nvvm:sm_90;host"},
        ".pkg_host": {"OFFLOAD_TARGETS=host"},
    }  # fmt: skip


def test_where_nothing_can_run_the_tests_the_package_is_built(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = package / "pyproject.toml"
    path.write_text(
        path.read_text().replace('"host"', '"rocdl:gfx942,features=+xnack", "rocdl:gfx942,features=-xnack"')
    )
    assert main(["matrix", "--format", "tox"]) == 0
    (package / "tox.ini").write_text(capsys.readouterr().out)
    assert check(capsys) == ""
    factors = ("nvvm_sm_90", "rocdl_gfx942_features_plus_xnack", "rocdl_gfx942_features_xnack")
    names = [f"py311-{factor}{device}" for factor in factors for device in ("", "-device")]
    said = run(sys.executable, "-m", "tox", "config", "-e", ",".join(names), "-k", "commands", cwd=package).stdout
    found = {part.split("]")[0]: "pytest tests" in part for part in said.split("[testenv:")[1:]}
    assert found == {name: name.endswith("-device") for name in names}


def test_two_targets_of_one_name(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.b.bc", "a_b.bc"):
        (package / name).touch()
    path = package / "pyproject.toml"
    path.write_text(path.read_text().replace('"host"', '"host,link=a.b.bc", "host,link=a_b.bc"'))
    assert main(["matrix", "--format", "tox"]) == 1
    assert "host,link=a.b.bc and host,link=a_b.bc would be one environment of tox, " in capsys.readouterr().err


def test_what_is_printed_holds(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys) == ""


def test_a_byte_order_mark_is_none_of_the_text(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Editors of Windows write one, and tox reads past it."""
    (package / "tox.ini").write_text((package / "tox.ini").read_text(), encoding="utf-8-sig")
    check(capsys)


def test_what_authors_may_change(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other environments, commands, spellings of lists, blanks."""
    path = package / "tox.ini"
    text = path.read_text().replace(
        "env_list = py3{11,12}-{nvvm_sm_90,host}", "envlist =\n  lint, py3{11-12}-nvvm_sm_90"
    )
    text = text.replace("-nvvm_sm_90\n", "-nvvm_sm_90\n  py311-host, py312-host\n", 1)
    text = text.replace("commands = pytest {posargs:tests}", "commands = pytest -x\nskip_install = true")
    text = text.replace("OFFLOAD_BACKEND=cuda", "OFFLOAD_BACKEND = cuda")
    path.write_text(text + "\n[testenv:lint]\ncommands = ruff check .\n")
    assert check(capsys) == ""


def test_what_a_tox_ini_lacks(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = package / "tox.ini"
    text = path.read_text().replace("py3{11,12}", "py3{11}").replace("-device: OFFLOAD_BACKEND=cuda", "-device: A=b")
    path.write_text(text.replace("nvvm:sm_90\\;host", "nvvm:sm_90") + "[testenv:.pkg_rocdl]\nset_env = A=b\n")
    assert check(capsys, code=1) == (
        "offload: error: tox.ini is not what [tool.offload] asks for:\n"
        "  env_list: py312-nvvm_sm_90 is missing\n"
        "  env_list: py312-host is missing\n"
        "  [testenv]: set_env of py311-nvvm_sm_90-device: there is no OFFLOAD_BACKEND=cuda\n"
        "  [testenv]: set_env of py312-nvvm_sm_90-device: there is no OFFLOAD_BACKEND=cuda\n"
        "  [testenv:.pkg_nvvm_sm_90]: set_env: there is no OFFLOAD_TARGETS=nvvm:sm_90\\;host\n"
        "  [testenv:.pkg_rocdl]: there is no such target any more\n"
        "  offload matrix --format tox prints the sections as they should be\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read tox.ini: No such file or directory"),
        ("env_list", "tox.ini: File contains no section headers"),
        ("# gr\udcfcn", "tox.ini: 'utf-8' codec can't decode byte 0xfc in position 4: invalid start byte"),
    ],
)
def test_no_tox_ini(text: str | None, message: str, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "tox.ini").unlink()
    if text is not None:
        (package / "tox.ini").write_bytes(text.encode(errors="surrogateescape"))
    assert message in check(capsys, code=1)


def test_the_tox_ini_of_an_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(PACKAGES / "setuptools")
    assert check(capsys) == ""


def test_our_own_tox_ini() -> None:
    """It tests every Python that the package is for and every backend, and says what each environment is."""
    tox = configparser.RawConfigParser()
    tox.read(ROOT / "tox.ini")
    pythons = declared_pythons(read_toml(ROOT / "pyproject.toml")["project"], "pyproject.toml")
    listed = re.search(r"py3{([\d,]+)}", tox["tox"]["env_list"])
    assert listed is not None
    assert tuple(f"3.{minor}" for minor in listed[1].split(",")) == pythons
    assert {"testenv:host", "testenv:cuda", "testenv:rocm"} <= set(tox.sections())
    assert all(tox[name].get("description") for name in tox.sections() if name.startswith("testenv"))


def test_settings_that_refer_to_others(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And comments as tox has them, and a colon."""
    path = package / "tox.ini"
    text = path.read_text()
    (settings,) = re.findall(r"^set_env =\n((?: +.*\n)+)", text, re.MULTILINE)
    moved = text.replace(f"set_env =\n{settings}", "set_env =\n    {[base]variables}\n    ; more\n    A=b\n")
    path.write_text(
        f"; settings of tox\n[base]\nvariables =\n{settings}{moved}".replace("package = wheel", "package: wheel")
    )
    check(capsys)
    path.write_text(path.read_text().replace("OFFLOAD_BACKEND=host", "OFFLOAD_BACKEND=hast", 1))
    assert "there is no OFFLOAD_BACKEND=host" in check(capsys, 1)
