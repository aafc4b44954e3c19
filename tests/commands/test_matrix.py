"""``offload matrix``: `[tool.offload]` as the jobs of CI systems, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from compiling import EXAMPLES
from packaging_tools import EXAMPLES as PACKAGES

from offload.cli import main
from offload.errors import OffloadError
from offload.hooks.project import declares_kernels, read_tables
from offload.hooks.python_versions import KNOWN, declared_pythons

KERNELS = '[[tool.offload.kernels]]\nmodule = "pkg.kernels"\nsources = ["saxpy.mlir"]\n'
TARGETS = 'targets = ["nvvm:sm_90a,fast", "host"]\n'
JOB_KEYS = ["name", "target", "chip", "backend", "python", "device", "run", "runner", "env"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pyproject.toml of a package in the current folder."""
    shutil.copy(EXAMPLES / "saxpy.mlir", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "pyproject.toml"


def matrix(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints."""
    code = main(["matrix", *arguments])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    return said.out


def jobs(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(matrix(capsys, *arguments))["include"]
    return found


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert main(["matrix", *arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def test_a_package_that_is_named_elsewhere(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In setup.cfg or setup.py."""
    package.write_text(KERNELS)
    assert json.loads(matrix(capsys))["package"] == package.parent.name


def test_jobs_are_targets_times_pythons_times_devices(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(f'[project]\nname = "pkg"\nrequires-python = ">=3.12,<3.14"\n{KERNELS}{TARGETS}')
    found = json.loads(matrix(capsys))
    assert list(found) == ["schema", "package", "include"]
    assert (found["schema"], found["package"]) == (1, "pkg")
    assert [job["name"] for job in found["include"]] == [
        "py3.12 nvvm:sm_90a,fast no device",
        "py3.12 nvvm:sm_90a,fast device",
        "py3.13 nvvm:sm_90a,fast no device",
        "py3.13 nvvm:sm_90a,fast device",
        "py3.12 host",
        "py3.13 host",
    ]
    assert {tuple(job) for job in found["include"]} == {tuple(JOB_KEYS)}
    without, device, *_, cpu = found["include"]
    assert device == {
        "name": "py3.12 nvvm:sm_90a,fast device",
        "target": "nvvm",
        "chip": "sm_90a",
        "backend": "cuda",
        "python": "3.12",
        "device": True,
        "run": True,
        "runner": ["self-hosted", "cuda"],
        "env": {"OFFLOAD_TARGETS": "nvvm:sm_90a,fast;host", "OFFLOAD_BACKEND": "cuda"},
    }
    assert (without["device"], without["run"], without["runner"]) == (False, True, "ubuntu-latest")
    # The wheel is the same; its tests run on the CPU.
    assert without["env"] == {"OFFLOAD_TARGETS": "nvvm:sm_90a,fast;host", "OFFLOAD_BACKEND": "host"}
    assert (cpu["backend"], cpu["device"], cpu["runner"]) == ("host", True, "ubuntu-latest")


def test_a_python_that_is_named_twice(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(KERNELS)
    found = json.loads(matrix(capsys, "--python", "3.13,3.12", "--python", "3.9", "--python", "3.12"))
    assert [job["name"] for job in found["include"]] == ["py3.9 host", "py3.12 host", "py3.13 host"]


def test_github_takes_one_line(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(KERNELS + TARGETS)
    said = matrix(capsys, "--format", "github", "--python", "3.12")
    assert said.count("\n") == 1
    found = json.loads(said)
    assert list(found) == ["include"]
    assert found["include"] == jobs(capsys, "--python", "3.12")


def test_github_takes_so_many_jobs(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chips = [f'"nvvm:sm_90,max_threads={count}"' for count in range(1, 60)]
    package.write_text(f"{KERNELS}targets = [{', '.join(chips)}]\n")
    assert "590 jobs; GitHub takes 256 in a matrix: name fewer Pythons" in refusal(capsys, "--format", "github")
    assert len(jobs(capsys)) == 590


def test_a_child_pipeline_of_gitlab(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(f'{KERNELS}{TARGETS}[tool.offload.matrix]\nrunners = {{ nvvm = ["gpu", "h100"] }}\n')
    pipeline = yaml.safe_load(matrix(capsys, "--format", "gitlab", "--python", "3.10"))
    assert list(pipeline) == [job["name"] for job in jobs(capsys, "--python", "3.10")]
    assert pipeline["py3.10 nvvm:sm_90a,fast device"] == {
        "extends": ".offload",
        "tags": ["gpu", "h100"],
        "variables": {
            "PYTHON_VERSION": "3.10",
            "RUN_TESTS": "yes",
            "OFFLOAD_TARGETS": "nvvm:sm_90a,fast;host",
            "OFFLOAD_BACKEND": "cuda",
        },
    }
    assert "tags" not in pipeline["py3.10 host"]


def test_machines_of_the_package(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(
        f'{KERNELS}targets = ["nvvm:sm_80", "nvvm:sm_90", "rocdl:gfx942", "host"]\n[tool.offload.matrix]\n'
        'pythons = ["3.12"]\n[tool.offload.matrix.runners]\ndefault = "debian"\n"nvvm:sm_90" = ["linux", "h100"]\n'
        'nvvm = "a100"\nrocdl = false\n'
    )
    assert [(job["name"], job["runner"]) for job in jobs(capsys)] == [
        ("py3.12 nvvm:sm_80 no device", "debian"),
        ("py3.12 nvvm:sm_80 device", "a100"),
        ("py3.12 nvvm:sm_90 no device", "debian"),
        ("py3.12 nvvm:sm_90 device", ["linux", "h100"]),
        ("py3.12 rocdl:gfx942 no device", "debian"),
        ("py3.12 host", "debian"),
    ]


def test_no_machine_for_the_cpu(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = 'pythons = ["3.12"]\n[tool.offload.matrix.runners]\nhost = false\nnative = "box"\n'
    package.write_text(f'{KERNELS}targets = ["native", "host"]\n[tool.offload.matrix]\n{settings}')
    assert [(job["name"], job["runner"]) for job in jobs(capsys)] == [("py3.12 native", "box")]


def test_without_code_for_the_cpu_a_job_only_builds(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(f'{KERNELS}targets = ["nvvm:sm_90"]\n')
    without, device = jobs(capsys, "--python", "3.12")
    assert (without["run"], without["env"]) == (False, {"OFFLOAD_TARGETS": "nvvm:sm_90"})
    assert (device["run"], device["env"]["OFFLOAD_BACKEND"]) == (True, "cuda")
    # One module of two is enough for the other to fail.
    package.write_text(package.read_text() + KERNELS.replace("pkg.kernels", "pkg.others") + TARGETS)
    assert not jobs(capsys, "--python", "3.12")[0]["run"]


def test_files_that_a_build_writes(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They need not be there where jobs are planned; in a path that no build takes they are still refused."""
    targets = 'targets = ["nvvm:sm_90,link=made.bc", "host"]\noptions = { objects = ["made.o"] }\n'
    for name in ("made.mlir", "made/*.mlir"):
        package.write_text(KERNELS.replace("saxpy.mlir", name) + targets)
        assert [job["target"] for job in jobs(capsys, "--python", "3.12")] == ["nvvm", "nvvm", "host"]
        with pytest.raises(OffloadError):
            read_tables(package)
    package.write_text(KERNELS.replace("saxpy.mlir", "../*.mlir"))
    assert 'key "sources": "../*.mlir" is outside of the package' in refusal(capsys)


def test_native_is_what_the_machine_has(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(f'{KERNELS}targets = ["native"]\n')
    (job,) = jobs(capsys, "--python", "3.12")
    assert (job["name"], job["backend"], job["run"]) == ("py3.12 native", "", True)
    assert job["env"] == {"OFFLOAD_TARGETS": "native"}


def test_targets_that_others_declare(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a package whose kernels stand in a setup.py or in CMake; its builds have nothing to read here."""
    package.write_text('[tool.offload.matrix]\ntargets = ["rocdl:gfx942", "host"]\npythons = ["3.12"]\n')
    assert not declares_kernels(package)
    assert [job["target"] for job in jobs(capsys)] == ["rocdl", "rocdl", "host"]


@pytest.mark.parametrize("name", ["setuptools", "hatchling", "scikit_build_core"])
def test_builds_pass_over_the_matrix(name: str, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PACKAGES / name / "pyproject.toml").read_text()
    shutil.copytree(PACKAGES / name / "src", package.parent / "src")
    package.write_text(f'{text}\n[tool.offload.matrix]\npythons = ["3.12"]\n')
    assert declares_kernels(package)
    (table,) = read_tables(package)
    declared = [*table.targets, *table.optional_targets]
    assert {job["env"]["OFFLOAD_TARGETS"].split(";")[0] for job in jobs(capsys)} == set(declared)


def test_every_example_has_a_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    for path in PACKAGES.glob("*/pyproject.toml"):
        found = jobs(capsys, "--pyproject", str(path), "--python", "3.12")
        assert sorted(job["target"] for job in found) == ["host", "nvvm", "nvvm", "rocdl", "rocdl"], path


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ("", "pyproject.toml: [tool.offload]: there are no kernels to test; declare them in ", 1),
        (
            KERNELS + "[tool.offload.matrix]\npython = []",
            'pyproject.toml: [tool.offload.matrix]: unknown key "python"; did you mean "pythons"? (there ',
            1,
        ),
        (
            KERNELS + "[tool.offload]\nmatrx = 1",
            'pyproject.toml: [tool.offload]: unknown key "matrx"; did you mean "matrix"? (there are: kernels, ',
            1,
        ),
        (
            KERNELS + "[tool.offload]\nmatrix = 1",
            'pyproject.toml: [tool.offload]: key "matrix" is a table: write [tool.offload.matrix]',
            1,
        ),
        (
            KERNELS + "[tool.offload.matrix]\npythons = [3.12]",
            'pyproject.toml: [tool.offload.matrix]: key "pythons" is a list of strings, not [3.12]',
            1,
        ),
        (
            KERNELS + '[tool.offload.matrix]\npythons = ["312"]',
            "[tool.offload.matrix]: key \"pythons\": '312' is no version of Python; write \"3.12\"",
            1,
        ),
        (
            KERNELS + '[tool.offload.matrix]\nrunners = { nvmm = "a" }',
            "pyproject.toml: [tool.offload.matrix]: key \"runners\": unknown target 'nvmm'; did you mean 'nvvm'?",
            1,
        ),
        (
            KERNELS + '[tool.offload.matrix]\nrunners = { "nvvm:sm_90,O=2" = "a" }',
            'key "runners": key "nvvm:sm_90,O=2": machines are by target and chip: "nvvm:sm_90"',
            1,
        ),
        (
            KERNELS + 'targets = ["nvvm:sm_90", "host"]\n[tool.offload.matrix]\nrunners = { "nvvm:sm_100" = "a" }',
            'pyproject.toml: [tool.offload.matrix]: key "runners": nothing is built for "nvvm:sm_100" (there are: '
            "host:x86-64, nvvm:sm_90)",
            1,
        ),
        (
            KERNELS + "[tool.offload.matrix]\nrunners = { nvvm = [] }",
            '[tool.offload.matrix]: key "runners": key "nvvm": a label, a list of labels, or false where no machine is',
            1,
        ),
        (
            KERNELS + "[tool.offload.matrix]\nrunners = { nvvm = true }",
            'key "runners": key "nvvm": a label, a list of labels, or false where no machine is, not True',
            1,
        ),
        (
            KERNELS + "[tool.offload.matrix]\nrunners = { default = false }",
            'key "runners": key "default": a label or a list of labels, not False',
            1,
        ),
        (
            KERNELS + 'targets = ["nvvm:sm_9O"]',
            "pyproject.toml: [[tool.offload.kernels]] 1 (\"pkg.kernels\"): key \"targets\": unknown chip 'sm_9O' ",
            2,
        ),
        (f"project = 3\n{KERNELS}", "pyproject.toml: project is a table: write [project]", 1),
        (
            f"[project]\nclassifiers = 3\n{KERNELS}",
            'pyproject.toml: [project]: key "classifiers" is a list of strings, not 3',
            1,
        ),
        (
            f'[project]\nrequires-python = ">=4"\n{KERNELS}',
            'pyproject.toml: [project]: key "requires-python": ">=4" admits none of 3.10, ',
            1,
        ),
        (
            f'[project]\nrequires-python = "===3.12"\n{KERNELS}',
            "pyproject.toml: [project]: key \"requires-python\": '===3.12' is not understood; name Pythons in ",
            1,
        ),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str, code: int, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(text)
    assert message in refusal(capsys, code=code)


def test_no_package_here(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = "there is no pyproject.toml; run this in the folder of a package, or name it: --pyproject FILE"
    assert refusal(capsys) == f"offload: error: {told}\n"


def test_the_folder_of_a_package_is_not_its_file(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(KERNELS)
    told = f"{package.parent} is a folder; name the file in it: --pyproject {package.parent}/pyproject.toml"
    assert refusal(capsys, "--pyproject", str(package.parent)) == f"offload: error: {told}\n"


def test_a_package_that_cannot_be_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a folder of somebody else's, but for every user who runs this."""
    path = f"{'x' * 300}/pyproject.toml"
    assert refusal(capsys, "--pyproject", path) == f"offload: error: cannot read {path}: File name too long\n"


@pytest.mark.parametrize("given", ["3", "3.12,", "2.7"])
def test_no_version_of_python(given: str, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package.write_text(KERNELS)
    with pytest.raises(SystemExit) as caught:
        main(["matrix", "--python", given])
    assert caught.value.code == 2
    assert "is no version of Python; write 3.12 or 3.12,3.13" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        ("", KNOWN),
        (">=3.12", KNOWN[2:]),
        (">=3.12.4", KNOWN[2:]),
        (">3.12", KNOWN[2:]),
        (">=3.10,<3.12", KNOWN[:2]),
        ("<3.12.1, >=3.9", KNOWN[:3]),
        ("<=3.11", KNOWN[:2]),
        (">=3.10,<4", KNOWN),
        (">=3.10,!=3.11.*", ("3.10", *KNOWN[2:])),
        (">=3.10,!=3.11.2", KNOWN),
        ("~=3.11", KNOWN[1:]),
        ("~=3.11.2", ("3.11",)),
        ("==3.12.*", ("3.12",)),
        ("==3.*", KNOWN),
        ("== 3.12.4", ("3.12",)),
    ],
)
def test_pythons_that_are_required(required: str, expected: tuple[str, ...]) -> None:
    assert declared_pythons({"requires-python": required}, "") == expected


def test_pythons_of_the_classifiers() -> None:
    listed = ["Programming Language :: Python :: 3", "Typing :: Typed"]
    listed += [f"Programming Language :: Python :: 3.{minor}" for minor in (13, 11, 8, 12)]
    assert declared_pythons({"classifiers": listed}, "") == ("3.11", "3.12", "3.13")
    assert declared_pythons({"classifiers": listed, "requires-python": ">=3.12"}, "") == ("3.12", "3.13")
    with pytest.raises(OffloadError, match=r'"<3\.11" admits none of 3\.11, 3\.12, 3\.13'):
        declared_pythons({"classifiers": listed, "requires-python": "<3.11"}, "")
