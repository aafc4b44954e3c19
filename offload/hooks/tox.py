"""Jobs as environments of tox: the sections that run them, and whether a tox.ini has them."""

from __future__ import annotations

import configparser
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from offload.config import VARIABLES
from offload.errors import OffloadError
from offload.hooks.matrix import CPU, Job

_PACKAGE = ".pkg_"
_LEAST_TOX = "4.58"  # older ones keep the \\ of \\;, which newer ones want: ; begins a condition there
_TOOLKITS = ", ".join(name for name in VARIABLES if name.endswith(("_HOME", "_PATH")))
_REFERENCE, _DEEPEST = re.compile(r"{\[([^\]{}]+)\](\w+)}"), 8
_TESTS = "pytest {posargs:tests}"
_CHECKED = ("set_env", "wheel_build_env")


def as_tox(package: str, jobs: Sequence[Job]) -> str:
    """Sections for a tox.ini. A target's wheel is built once, for all Pythons; environments with the factor
    ``device`` are not in ``env_list``, as they fail where none is.

    Raises OffloadError for two targets of which tox would make one."""
    targets = {job.factor: job for job in jobs}
    for job in jobs:
        if targets[job.factor].spec != job.spec:
            both = f"{job.spec} and {targets[job.factor].spec}"
            raise OffloadError(f"{both} would be one environment of tox, {job.factor}; leave one of them out")
    pythons = ",".join(dict.fromkeys(job.python.removeprefix("3.") for job in jobs))
    lines = ["[tox]", f"min_version = {_LEAST_TOX}", f"env_list = py3{{{pythons}}}-{{{','.join(targets)}}}"]
    lines += ["", "[testenv]", f"description = {package or 'the package'}, one target at a time", "package = wheel"]
    lines += ["wheel_build_env =", *(f"    {factor}: {_PACKAGE}{factor}" for factor in targets), "deps = pytest"]
    lines += [f"pass_env = {_TOOLKITS}"]
    lines += ["set_env =", *dict.fromkeys(line for job in jobs for line in _conditions(job))]
    lines += _commands(jobs)
    for factor, job in targets.items():
        escaped = job.env["OFFLOAD_TARGETS"].replace(";", r"\;")
        lines += [
            "",
            f"[testenv:{_PACKAGE}{factor}]",
            f"pass_env = {_TOOLKITS}",
            f"set_env = OFFLOAD_TARGETS={escaped}",
        ]
    return "\n".join(lines) + "\n"


def _commands(jobs: Sequence[Job]) -> list[str]:
    """Tests, but where nothing can run them: such environments build the package and are done."""
    if all(job.run for job in jobs):
        return [f"commands = {_TESTS}"]
    conditions = dict.fromkeys(_factors(job) for job in jobs if job.run)
    return ["commands =", *(f"    {condition}: {_TESTS}" for condition in conditions)]


def _factors(job: Job) -> str:
    """The condition that the job's environments meet, and no others of the target's."""
    return job.factor if job.backend in (CPU, "") else f"{job.factor}-device" if job.device else f"{job.factor}-!device"


def _conditions(job: Job) -> Iterator[str]:
    backend = job.env.get("OFFLOAD_BACKEND")
    if backend is None:
        return
    yield f"    {_factors(job)}: OFFLOAD_BACKEND={backend}"
    if job.device and job.backend != CPU:
        yield f"    {_factors(job)}: PYTEST_ADDOPTS=--offload-require={backend}"


def check_tox(path: Path, package: str, jobs: Sequence[Job]) -> None:
    """Raises OffloadError where a tox.ini lacks an environment of a job, has one that builds or runs something else,
    or one for a target that is gone. What its environments do besides is the author's."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # as tox reads it
    except OSError as error:
        raise OffloadError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise OffloadError(f"{path}: {error}; tox wants UTF-8, too") from error
    here, wanted = _Ini(text, str(path)), _Ini(as_tox(package, jobs), "")
    problems = [f"env_list: {name} is missing" for name in wanted.environments if name not in here.environments]
    sections = dict.fromkeys(f"testenv:{_PACKAGE}{job.factor}" for job in jobs)
    for name in dict.fromkeys([*wanted.environments, *(job.slug for job in jobs)]):
        for key in _CHECKED:
            problems += _differences(f"[testenv]: {key} of {name}", wanted, here, ("testenv", key, name))
    for section in sections:
        problems += _differences(f"[{section}]: set_env", wanted, here, (section, "set_env", ""))
    gone = [name for name in here.sections(f"testenv:{_PACKAGE}") if name not in sections]
    problems += [f"[{name}]: there is no such target any more" for name in gone]
    if problems:
        raise OffloadError(
            "\n  ".join([f"{path} is not what [tool.offload] asks for:", *problems])
            + "\n  offload matrix --format tox prints the sections as they should be"
        )


def _differences(what: str, wanted: _Ini, here: _Ini, place: tuple[str, str, str]) -> Iterator[str]:
    found = here.lines(*place)
    for line in wanted.lines(*place):
        if line not in found:
            yield f"{what}: there is no {line}"


class _Ini:
    """A tox.ini, as far as environments and conditions on their factors go."""

    def __init__(self, text: str, name: str) -> None:
        self._parser = configparser.RawConfigParser()  # as tox reads it
        try:
            self._parser.read_string(text, name)
        except configparser.Error as error:
            raise OffloadError(f"{name}: {error}") from error
        listed = self._parser.get("tox", "env_list", fallback=self._parser.get("tox", "envlist", fallback=""))
        self.environments = [name for word in re.split(r",(?![^{]*})|\n", listed) for name in _expanded(word.strip())]

    def sections(self, prefix: str) -> list[str]:
        return [name for name in self._parser.sections() if name.startswith(prefix)]

    def _text(self, section: str, key: str, depth: int = 0) -> str:
        """A setting with those that it refers to: ``{[base]set_env}``."""
        text = self._parser.get(section, key, fallback=self._parser.get(section, key.replace("_", ""), fallback=""))
        if depth == _DEEPEST:
            return text
        return _REFERENCE.sub(lambda found: self._text(found[1], found[2], depth + 1), text)

    def lines(self, section: str, key: str, environment: str) -> list[str]:
        """The lines of a setting that hold for an environment, blanks around ``=`` left out."""
        text = self._text(section, key)
        found = []
        for line in text.splitlines():
            condition = re.match(r"([\w.,!{}-]+):\s+(.*)", line.strip())
            if condition is None or any(_holds(word, environment) for word in _expanded(condition[1])):
                found.append(re.sub(r"\s*=\s*", "=", (condition[2] if condition else line).strip(), count=1))
        return [line for line in found if line]


def _holds(condition: str, environment: str) -> bool:
    """Whether an environment has the factors ``a-!b``; one of several such will do (``a,b``)."""
    factors = environment.split("-")
    return any(
        all((factor.lstrip("!") in factors) != factor.startswith("!") for factor in each.split("-"))
        for each in condition.split(",")
    )


def _expanded(text: str) -> list[str]:
    """``py3{10,11}-{a,b}`` written out; ``{10-13}`` is a range."""
    parts = re.split(r"{([^}]*)}", text)
    choices = [[part] if index % 2 == 0 else _choices(part) for index, part in enumerate(parts)]
    return [name for name in map("".join, itertools.product(*choices)) if name]


def _choices(text: str) -> list[str]:
    span = re.fullmatch(r"(\d+)-(\d+)", text)
    if span is not None:
        return [str(number) for number in range(int(span[1]), int(span[2]) + 1)]
    return [word.strip() for word in text.split(",")]
