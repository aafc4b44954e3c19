"""Jobs as CI systems take them: GitHub's ``strategy.matrix``, a child pipeline of GitLab's, JSON for others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from offload.errors import OffloadError
from offload.hooks.matrix import CPU, Job

SCHEMA = 1
"""The number of JSON's shape: one more when a key changes its meaning or goes."""
MOST_JOBS = 256
"""GitHub refuses matrices of more."""
GITHUB_RUNNER = "ubuntu-latest"
TEMPLATE = ".offload"
"""The hidden job that a GitLab project writes; those made here extend it."""


def as_json(package: str, jobs: Sequence[Job]) -> str:
    """Indented, with the package's name."""
    return json.dumps({"schema": SCHEMA, "package": package, "include": _include(jobs)}, indent=2) + "\n"


def as_github(package: str, jobs: Sequence[Job]) -> str:
    """One line for ``$GITHUB_OUTPUT``: what ``strategy.matrix: ${{ fromJSON(…) }}`` takes. Raises OffloadError."""
    if len(jobs) > MOST_JOBS:
        raise OffloadError(
            f"{len(jobs)} jobs; GitHub takes {MOST_JOBS} in a matrix: name fewer Pythons with --python or in "
            "[tool.offload.matrix] pythons"
        )
    return json.dumps({"include": _include(jobs)}) + "\n"


def as_gitlab(package: str, jobs: Sequence[Job]) -> str:
    """A child pipeline, to be triggered together with a file that has the job ``.offload``."""
    lines = [f"# {package}: a job for each target, Python and machine. Made by offload matrix --format gitlab."]
    for job in jobs:
        variables = {"PYTHON_VERSION": job.python, "RUN_TESTS": "yes" if job.run else "no", **job.env}
        tags = _device_labels(job, ())
        # JSON's strings and lists are YAML's.
        lines += [f"{json.dumps(job.name)}:", f"  extends: {TEMPLATE}"]
        lines += [f"  tags: {json.dumps(list(tags))}"] if tags else []
        lines += ["  variables:", *(f"    {name}: {json.dumps(value)}" for name, value in variables.items())]
    return "\n".join(lines) + "\n"


def _include(jobs: Sequence[Job]) -> list[Mapping[str, Any]]:
    return [
        {
            "name": job.name,
            "target": job.target,
            "chip": job.chip,
            "backend": job.backend,
            "python": job.python,
            "device": job.device,
            "run": job.run,
            "runner": _runner(job),
            "env": dict(job.env),
        }
        for job in jobs
    ]


def _runner(job: Job) -> str | list[str]:
    """What ``runs-on`` takes: a label, or a list of them."""
    labels = _device_labels(job, ("self-hosted",)) or (GITHUB_RUNNER,)
    return labels[0] if len(labels) == 1 else list(labels)


def _device_labels(job: Job, before: tuple[str, ...]) -> tuple[str, ...]:
    """The labels that the package names, or else the backend's name for machines with a device."""
    if job.labels or not job.device or job.backend in (CPU, ""):
        return job.labels
    return (*before, job.backend)


FORMATS: Mapping[str, Callable[[str, Sequence[Job]], str]] = {
    "json": as_json,
    "github": as_github,
    "gitlab": as_gitlab,
}
