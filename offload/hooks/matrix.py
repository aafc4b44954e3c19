"""The jobs in which a package is tested: its for each target and Python, with and without a device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.errors import OffloadError, TargetError
from offload.hooks.matrix_settings import DEFAULT_RUNNER, NATIVE, MatrixSettings, read_settings
from offload.targets import parse_target

CPU = "host"


@dataclass(frozen=True)
class Job:
    """One build of a package for one target (and the CPU, where the package has code for it), and its tests.

    ``target``, ``chip`` and ``backend`` are those of the target; ``spec`` is its spelling. ``device``: the job needs a
    machine that has one; the CPU is always there. ``run``: something can run its tests. ``labels`` are the machine's,
    empty for the CI system's default. ``env`` are offload's variables for build and tests."""

    spec: str
    target: str
    chip: str
    backend: str
    python: str
    device: bool
    run: bool
    labels: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        """For people: ``py3.12 nvvm:sm_90 device``."""
        needs = "" if self.backend in (CPU, "") else " device" if self.device else " no device"
        return f"py{self.python} {self.spec}{needs}"

    @property
    def factor(self) -> str:
        """The target in the name of an environment: ``nvvm_sm_90``; features that are on and off are two."""
        return re.sub(r"[\W_]+", "_", self.spec.replace("+", "_plus_")).strip("_")

    @property
    def slug(self) -> str:
        """The job in the name of an environment: ``py312-nvvm_sm_90-device``."""
        needs = "-device" if self.device and self.backend not in (CPU, "") else ""
        return f"py{self.python.replace('.', '')}-{self.factor}{needs}"


def jobs_of(pyproject: Path, pythons: Sequence[str] | None = None) -> tuple[str, list[Job]]:
    """The package's name and its jobs; ``pythons`` are in place of the declared ones.

    Raises OffloadError that names file, key and remedy."""
    settings = read_settings(pyproject)
    targets: dict[str, str] = {}
    for spec, where in settings.targets.items():
        targets.setdefault(_canonical(spec.strip(), where), spec.strip())
    _check_runners(pyproject, settings, targets.values())
    found = [
        job
        for spec in targets.values()
        for python in (pythons or settings.pythons)
        for job in _jobs(settings, spec, python)
    ]
    if not found:
        raise OffloadError(
            f'{pyproject.name}: [tool.offload.matrix]: key "runners": nothing is left to do; give a target its machine'
        )
    return settings.package, found


def _canonical(spec: str, where: str) -> str:
    if spec == NATIVE:
        return spec
    try:
        return str(parse_target(spec))
    except TargetError as error:
        raise TargetError(f"{where}: {error}") from error


def _check_runners(pyproject: Path, settings: MatrixSettings, specs: Iterable[str]) -> None:
    """Raises OffloadError for machines of a chip that nothing is built for: jobs of others would go without them."""
    built = {f"{target.name}:{target.chip}" for target in (parse_target(spec) for spec in specs if spec != NATIVE)}
    for name in settings.runners:
        if ":" in name and name not in built:
            known = ", ".join(sorted(built)) or NATIVE
            raise OffloadError(
                f'{pyproject.name}: [tool.offload.matrix]: key "runners": nothing is built for "{name}" (there are: '
                f"{known})"
            )


_NOWHERE: tuple[str, ...] = ()
"""The labels of what no machine is for."""


def _jobs(settings: MatrixSettings, spec: str, python: str) -> Iterator[Job]:
    """One job for the CPU or for what the machine has; two for others."""
    anywhere = settings.runners.get(DEFAULT_RUNNER, ())
    if spec == NATIVE:
        labels = settings.runners.get(NATIVE)
        machine = anywhere if labels is None else labels
        if labels != _NOWHERE:
            yield Job(spec, NATIVE, NATIVE, "", python, True, True, machine, {"OFFLOAD_TARGETS": spec})
        return
    target = parse_target(spec)
    labels = _labels(settings, target.name, target.chip)
    if target.backend == CPU:
        env = {"OFFLOAD_TARGETS": spec, "OFFLOAD_BACKEND": CPU}
        machine = anywhere if labels is None else labels
        if labels != _NOWHERE:
            yield Job(spec, target.name, target.chip, CPU, python, True, True, machine, env)
        return
    # The CPU's code goes with it: it is what can run where no device is.
    built = {"OFFLOAD_TARGETS": f"{spec};{CPU}" if settings.falls_back else spec}
    without = {**built, "OFFLOAD_BACKEND": CPU} if settings.falls_back else built
    described = (spec, target.name, target.chip, target.backend, python)
    yield Job(*described, False, settings.falls_back, anywhere, without)
    if labels != _NOWHERE:
        yield Job(*described, True, True, labels or (), {**built, "OFFLOAD_BACKEND": target.backend})


def _labels(settings: MatrixSettings, target: str, chip: str) -> tuple[str, ...] | None:
    """The labels of a target's machines; empty where there are none, None where nothing is said."""
    for name in (f"{target}:{chip}", target):
        if name in settings.runners:
            return settings.runners[name]
    return None
