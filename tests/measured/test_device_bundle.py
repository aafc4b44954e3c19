"""The bundle for machines without a compiler: a small one is made and runs on the CPU; its suite tells what fails."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compiling import HERE, ROOT
from device import sanitizer, suite
from device.checks import checks_of

sys.path += [str(ROOT / "bench"), str(ROOT / "scripts")]
import device_bundle
from hardware import ours

SMALL = (
    r"^(examples/saxpy, (sm_90a?|PTX)$|printf/every type|two libraries/a copy|faults/an assertion among barriers|"
    r"packages/streams of ours|host programs/async: no dependencies|hopper/clusters|operations/arith.addf, f32)"
)


PLANTED = list(checks_of("device.planted").values())


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    made = run(
        sys.executable, ROOT / "scripts" / "device_bundle.py", folder / "bundle", "--only", SMALL, cwd=folder,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    return folder / "bundle"


def stages(bundle: Path, *names: str, **variables: str) -> tuple[int, dict[str, Any], str]:
    """Runs stages on the CPU with the offload under test: exit code, the summary, what was said."""
    variables = {"PYTHON": sys.executable, "INSTALLED": "offload", "OFFLOAD_BACKEND": "host", "JOBS": "1"} | variables
    done = run("sh", bundle / "run.sh", *names, cwd=bundle.parent, **variables)
    summary = bundle / "out" / "summary.json"
    found = json.loads(summary.read_text()) if summary.exists() else {}
    return done.returncode, found, done.stdout + done.stderr


def imported(path: Path) -> Iterator[str]:
    """What a file imports when it is imported, and not only when one of its functions is called."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))


def test_what_is_packed_imports_what_is_packed(tmp_path: Path) -> None:
    """A file of tests that comes to import one that is left out would be found when the bundle runs, if at all."""
    device_bundle.copy(device_bundle.TESTS, HERE, tmp_path)
    for name in device_bundle.COMPILING:
        (tmp_path / name).unlink()
    missing = {
        f"{path.relative_to(tmp_path)} imports {name}"
        for path in tmp_path.rglob("*.py")
        for name in imported(path)
        for file in (f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__init__.py")
        if (HERE / file).exists() and not (tmp_path / file).exists()
    }
    assert missing == set()


def test_a_bundle_runs_without_this_repository(bundle: Path) -> None:
    names = ["suite", "calls", "launch", "first", "kernels", "matmul", "sanitizer"]
    code, summary, said = stages(bundle, *names)
    assert code == 0, said
    by_name = {stage["stage"]: stage for stage in summary["stages"]}
    assert list(by_name) == names
    passed = {
        group: counts["passed"] for stage in by_name.values() for group, counts in stage.get("groups", {}).items()
    }
    assert passed == {
        "examples": 3, "hopper": 0, "operations": 1, "host programs": 1, "printf": 1, "two libraries": 1, "faults": 1,
        "packages": 1,
    }  # fmt: skip
    kernels = json.loads((bundle / "out" / "kernels.json").read_text())
    assert kernels["wrong"] == []
    measured = {row["kernel"]: row["engines"]["offload"]["median"] for row in kernels["problems"][1:]}
    assert set(measured) == set(ours.KERNELS)
    assert all(seconds > 0 for seconds in measured.values())
    assert by_name["matmul"]["missing"]["offload"] == "the kernel is made of a vendor's instructions"
    assert by_name["sanitizer"]["reasons"] == {"it is for cuda": 1}
    assert summary["device"]["backend"] == "host"
    assert {"offload", "python", "numpy"} <= set(summary["versions"])
    # What is for a GPU alone is counted, and is no success.
    assert by_name["suite"]["groups"]["hopper"] == {"passed": 0, "failed": 0, "not run": 1}
    assert by_name["suite"]["reasons"] == {"it is for cuda": 1}
    results = json.loads((bundle / "out" / "suite.json").read_text())["results"]
    assert all((result["outcome"] == "passed") == (result["why"] == "") for result in results)

    # A program that is not there fails its check alone.
    (check,) = [check for check in checks_of("device.groups.examples").values() if check.id == "examples/saxpy, PTX"]
    (bundle / "work" / "artifacts" / f"{check.programs[0].key}.so").unlink()
    code, summary, said = stages(bundle, "suite")
    assert code == 1
    (stage,) = summary["stages"]
    assert stage["groups"]["examples"] == {"passed": 2, "failed": 1, "not run": 0}
    assert stage["groups"]["operations"]["passed"] == 1
    assert "is not among the compiled programs" in said
    assert said.count("Traceback") == (bundle / "out" / "log.txt").read_text().count("Traceback") == 1


def test_a_stage_that_is_none(bundle: Path) -> None:
    code, _, said = stages(bundle, "sanitizer", "dance")
    assert code == 2
    assert "there is no stage dance; there are: suite calls" in said
    assert "== sanitizer" not in said


def test_without_a_device_nothing_begins(bundle: Path, tmp_path: Path) -> None:
    """Which it is that there is none of, and why; not a failure of each check."""
    folders = {"OUT": str(tmp_path / "out"), "WORK": str(tmp_path / "work")}
    code, _, said = stages(bundle, "suite", OFFLOAD_BACKEND="cuda", **folders)
    assert code == 2
    assert 'asks for the backend "cuda", which has no device here' in said
    assert "there is nothing to run on; OFFLOAD_BACKEND=host is the CPU" in said
    assert "Traceback" not in said
    assert "== suite" not in said


def tree(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_folders_elsewhere_leave_the_bundle_as_it_is(bundle: Path, tmp_path: Path) -> None:
    """It may be on a disk that cannot be written. The runtime half is installed from source; there is no home."""
    before = tree(bundle)
    variables = {"OUT": str(tmp_path / "out"), "WORK": str(tmp_path / "work"), "HOME": "/nowhere", "INSTALLED": ""}
    code, _, said = stages(bundle, "calls", "kernels", **variables)
    assert code == 0, said
    assert tree(bundle) == before
    assert (tmp_path / "work" / "site" / "offload" / "__init__.py").exists()
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [stage["exit_code"] for stage in told["stages"]] == [0, 0]

    # What was made for another bundle is made anew.
    (tmp_path / "work" / "artifacts" / "checks.json").unlink()
    (tmp_path / "work" / "ready").write_text("another bundle's")
    code, _, said = stages(bundle, "calls", **{**variables, "INSTALLED": "offload"})
    assert code == 0, said
    assert not (tmp_path / "work" / "site").exists()
    assert (tmp_path / "work" / "artifacts" / "checks.json").exists()


def test_a_stage_that_is_ended_has_no_results_of_before(bundle: Path, tmp_path: Path) -> None:
    folders = {"OUT": str(tmp_path / "out"), "WORK": str(tmp_path / "work")}
    assert stages(bundle, "launch", **folders)[0] == 0
    assert (tmp_path / "out" / "launch.json").exists()
    # The time is over at once: all stages are given none.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "timeout").write_text('#!/bin/sh\n[ "$3" = 120 ] || exit 124\nshift 3\nexec "$@"\n')
    (tmp_path / "bin" / "timeout").chmod(0o755)
    code, _, said = stages(bundle, "launch", PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", **folders)
    assert code == 1
    assert "ended: it took longer than 180 s" in said
    assert not (tmp_path / "out" / "launch.json").exists()
    (stage,) = json.loads((tmp_path / "out" / "summary.json").read_text())["stages"]
    assert (stage["exit_code"], "missing" in stage) == (124, False)


def test_a_part_of_everything_stays_a_part(bundle: Path, tmp_path: Path) -> None:
    """With SHORT, whatever stage came before."""
    folders = {"OUT": str(tmp_path / "out"), "WORK": str(tmp_path / "work")}
    stages(bundle, "calls", "suite", SHORT="1", **folders)
    assert len(json.loads((tmp_path / "out" / "suite.json").read_text())["results"]) == 1


TOOL = """#!/bin/sh
echo "========= COMPUTE-SANITIZER"
grep -q "one element" && { echo "========= Invalid __global__ write of size 4 bytes"; exit 9; }
exec sleep 60
"""


def test_a_tool_that_never_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "compute-sanitizer").write_text(TOOL)
    (tmp_path / "compute-sanitizer").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sanitizer, "SECONDS", 1)
    planted, clean = sanitizer.results(tmp_path, every=400)
    assert planted["outcome"] == "passed"
    assert clean["outcome"] == "failed"
    assert clean["why"].endswith("it took longer than 1 s")


def test_a_folder_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    made = run(sys.executable, ROOT / "scripts" / "device_bundle.py", tmp_path, cwd=tmp_path)
    assert made.returncode == 2
    assert "is not empty and no bundle" in made.stderr
    assert (tmp_path / "mine").read_text() == "precious"


def test_the_suite_tells_what_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that crashes, hangs or ends its process costs its own result alone."""
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    found = {
        result["id"].removeprefix("planted/"): result
        for result in suite.run(PLANTED, tmp_path, "host", time.monotonic() + 120)
    }
    outcomes = {name: result["outcome"] for name, result in found.items()}
    assert outcomes == {
        "first": "passed", "raises": "failed", "after it": "passed", "crashes": "failed",
        "before what hangs": "passed", "hangs": "failed",
        "leaves": "failed", "alone": "passed", "after what was alone": "passed", "not run": "not run",
        "needs": "not run", "needs a part": "not run", "pytest's failure": "failed",
    }  # fmt: skip
    assert "wrong on purpose" in found["raises"]["why"]
    assert "said before it failed" in found["raises"]["printed"]
    assert found["crashes"]["why"] == "the process ended: by SIGABRT"
    assert found["hangs"]["why"] == "it took longer than 1 s"
    assert found["leaves"]["why"] == "the process ended: with 3"
    assert found["not run"]["why"] == "no such thing"
    assert found["needs"]["why"] == "no no_package_of_this_name"
    assert found["needs a part"]["why"] == "no no_package_of_this_name.part"
    assert "it did not raise" in found["pytest's failure"]["why"]
    told = suite.summary(list(found.values()))
    assert told["groups"] == {"planted": {"passed": 5, "failed": 5, "not run": 3}}


def test_time_that_is_over_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    found = list(suite.run(PLANTED, tmp_path, "host", time.monotonic() - 1))
    assert {result["outcome"] for result in found} == {"failed"}
    assert "not reached" in found[0]["why"]
