"""The workflows in examples/ci: they take from `offload matrix` what it gives, and their steps work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from compiling import ROOT
from packaging_tools import EXAMPLES as PACKAGES

from offload.hooks.matrix import jobs_of
from offload.hooks.matrix_formats import TEMPLATE, as_github, as_gitlab

CI = ROOT / "examples" / "ci"
EXAMPLE = PACKAGES / "setuptools"


def workflow(name: str) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((CI / name).read_text())
    return found


def texts(value: Any) -> Iterator[str]:
    """Every string in a document."""
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(item)


def shell(script: str, folder: Path, code: int = 0, **variables: str) -> str:
    """Runs a step as GitHub does, with ``offload`` and ``pip`` those of this Python, pip only told what to do."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    for name, runs in {"offload": f'{sys.executable} -m offload "$@"', "pip": 'echo pip "$@"'}.items():
        (commands / name).write_text(f"#!/bin/sh\nexec {runs}\n")
        (commands / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", **variables}
    where = EXAMPLE if code == 0 else folder
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_keys_that_github_uses_are_there() -> None:
    jobs = workflow("github.yml")["jobs"]
    used = {name for text in texts(jobs["test"]) for name in re.findall(r"\bmatrix\.([\w.]+)", text)}
    used.remove("outputs.jobs")
    _, made = jobs_of(EXAMPLE / "pyproject.toml")
    include = json.loads(as_github("", made))["include"]
    assert used == {"name", "runner", "python", "run", "env.OFFLOAD_TARGETS", "env.OFFLOAD_BACKEND"}
    for job in include:
        assert used - {f"env.{name}" for name in job["env"]} <= set(job)
    assert jobs["test"]["needs"] == "matrix"
    assert jobs["test"]["strategy"]["matrix"] == "${{ fromJSON(needs.matrix.outputs.jobs) }}"
    assert jobs["matrix"]["outputs"]["jobs"] == "${{ steps.matrix.outputs.jobs }}"


def test_the_step_that_makes_githubs_matrix(tmp_path: Path) -> None:
    (step,) = (step for step in workflow("github.yml")["jobs"]["matrix"]["steps"] if step.get("id") == "matrix")
    output = tmp_path / "output"
    shell(step["run"], tmp_path, RUNNER_TEMP=str(tmp_path), GITHUB_OUTPUT=str(output))
    name, _, value = output.read_text().partition("=")
    assert name == "jobs"
    assert json.loads(value) == json.loads(as_github("", jobs_of(EXAMPLE / "pyproject.toml")[1]))
    # Where there is no package, the step fails.
    shell(step["run"], tmp_path, code=1, RUNNER_TEMP=str(tmp_path), GITHUB_OUTPUT=str(output))


def test_gitlabs_pipeline_with_the_job_that_it_extends(tmp_path: Path) -> None:
    parent, template = workflow("gitlab.yml"), workflow("gitlab-job.yml")
    package, jobs = jobs_of(EXAMPLE / "pyproject.toml")
    child = yaml.safe_load(as_gitlab(package, jobs))
    assert list(template) == [TEMPLATE]
    assert {job["extends"] for job in child.values()} == {TEMPLATE}
    used = {name for text in texts(template) for name in re.findall(r"\$(\w+)", text)}
    for job in child.values():
        assert used <= set(job["variables"])
        assert all(isinstance(value, str) for value in job["variables"].values())
        assert set(job) <= {"extends", "tags", "variables"}
    included = parent["test"]["trigger"]["include"]
    assert included == [{"artifact": "offload-jobs.yml", "job": "matrix"}, {"local": ".gitlab/offload-job.yml"}]
    assert parent["matrix"]["artifacts"]["paths"] == ["offload-jobs.yml"]
    script = "\n".join(parent["matrix"]["script"]).replace("offload-jobs.yml", str(tmp_path / "jobs.yml"))
    shell(script, tmp_path)
    assert yaml.safe_load((tmp_path / "jobs.yml").read_text()) == child


@pytest.mark.parametrize(("run", "expected"), [("yes", "pytest --offload-require=host tests\n"), ("no", "")])
def test_the_steps_of_a_gitlab_job(run: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pytest").write_text('#!/bin/sh\necho pytest "$@"\n')
    (tmp_path / "bin" / "pytest").chmod(0o755)
    script = "\n".join(workflow("gitlab-job.yml")[TEMPLATE]["script"])
    said = shell(script, tmp_path, RUN_TESTS=run, OFFLOAD_BACKEND="host")
    assert said == f"pip install pytest .\n{expected}"


def against_schema(schema: str, *files: Path, fails: bool = False) -> str:
    """What the CI system's published schema says of files."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    if schema == "gitlab-ci":
        command += ["--data-transform", "gitlab-ci"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


def test_they_fit_the_published_schemas(tmp_path: Path) -> None:
    package, jobs = jobs_of(EXAMPLE / "pyproject.toml")
    child = tmp_path / "child.yml"
    child.write_text((CI / "gitlab-job.yml").read_text() + as_gitlab(package, jobs))
    against_schema("github-workflows", CI / "github.yml")
    against_schema("gitlab-ci", CI / "gitlab.yml", CI / "gitlab-job.yml", child)
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((CI / "github.yml").read_text().replace("runs-on", "run-on"))
    assert "run-on" in against_schema("github-workflows", wrong, fails=True)
    wrong.write_text(child.read_text().replace("extends: .offload", "extend: .offload"))
    assert "extend" in against_schema("gitlab-ci", wrong, fails=True)
