"""``[tool.offload.matrix]``: what a package says of the jobs that `offload matrix` makes for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.config import DEFAULT_TARGETS
from offload.errors import OffloadError, TargetError
from offload.hooks.project import MATRIX_KEY, TOP_KEYS, check_keys, offload_table, read_tables, read_toml, strings
from offload.hooks.python_versions import declared_pythons, is_version, ordered

_KEYS = ("pythons", "targets", "runners")
DEFAULT_RUNNER = "default"
NATIVE = "native"


@dataclass(frozen=True)
class MatrixSettings:
    """What a matrix is made from.

    ``package`` is the project's name. ``targets`` maps spellings to the places where they are declared, for messages.
    ``falls_back`` says whether every module has code for the CPU. ``runners`` maps a target, a target with its chip,
    or ``default`` to the labels of machines; no labels: there is no such machine."""

    package: str
    pythons: tuple[str, ...]
    targets: Mapping[str, str]
    falls_back: bool
    runners: Mapping[str, tuple[str, ...]]


def read_settings(pyproject: Path) -> MatrixSettings:
    """Raises OffloadError that names file, key and remedy."""
    try:
        there, is_folder = pyproject.is_file(), pyproject.is_dir()
    except OSError as error:  # a folder that may not be looked into
        raise OffloadError(f"cannot read {pyproject}: {error.strerror or error}") from error
    if is_folder:
        raise OffloadError(f"{pyproject} is a folder; name the file in it: --pyproject {pyproject / 'pyproject.toml'}")
    if not there:
        raise OffloadError(
            f"there is no {pyproject}; run this in the folder of a package, or name it: --pyproject FILE"
        )
    where = f"{pyproject.name}: [tool.offload.matrix]"
    tool = offload_table(pyproject)
    check_keys(f"{pyproject.name}: [tool.offload]", tool, TOP_KEYS)
    given = tool.get(MATRIX_KEY, {})
    if not isinstance(given, Mapping):
        raise OffloadError(f'{pyproject.name}: [tool.offload]: key "matrix" is a table: write [tool.offload.matrix]')
    check_keys(where, given, _KEYS)
    project = read_toml(pyproject).get("project", {})
    if not isinstance(project, Mapping):
        raise OffloadError(f"{pyproject.name}: project is a table: write [project]")
    strings(f"{pyproject.name}: [project]", "classifiers", project.get("classifiers", []))
    pythons = strings(where, "pythons", given.get("pythons", []))
    for version in pythons:
        if not is_version(version):
            raise OffloadError(f'{where}: key "pythons": {version!r} is no version of Python; write "3.12"')
    targets, falls_back = _targets(pyproject, where, strings(where, "targets", given.get("targets", [])), tool)
    return MatrixSettings(
        str(project.get("name", pyproject.resolve().parent.name)),  # setup.cfg and setup.py may have the name
        tuple(ordered(pythons)) or declared_pythons(project, f"{pyproject.name}: [project]"),
        targets,
        falls_back,
        _runners(where, given.get("runners", {})),
    )


def _targets(
    pyproject: Path, where: str, named: tuple[str, ...], tool: Mapping[str, Any]
) -> tuple[dict[str, str], bool]:
    """The targets of all modules, and whether the CPU is among each one's."""
    if named:  # kernels of a setup.py or of CMake are declared there
        return dict.fromkeys(named, f'{where}: key "targets"'), _has_cpu(named)
    if "kernels" not in tool:
        raise OffloadError(
            f"{pyproject.name}: [tool.offload]: there are no kernels to test; declare them in "
            f"[[tool.offload.kernels]], or, where setup.py or CMake has them, their targets: {where.split(': ')[1]} "
            'targets = ["…"]'
        )
    found: dict[str, str] = {}
    falls_back = True
    for table in read_tables(pyproject, files=False):
        specs = (*(table.targets or DEFAULT_TARGETS), *table.optional_targets)
        falls_back = falls_back and _has_cpu(specs)
        for spec in specs:
            key = "optional-targets" if spec in table.optional_targets else "targets"
            found.setdefault(spec, f'{table.where}: key "{key}"')
    return found, falls_back


def _has_cpu(specs: tuple[str, ...]) -> bool:
    return any(spec.strip().replace(",", ":").split(":")[0] in ("host", "native") for spec in specs)


def _runners(where: str, given: Any) -> dict[str, tuple[str, ...]]:
    from offload.targets import parse_target

    where = f'{where}: key "runners"'
    if not isinstance(given, Mapping):
        raise OffloadError(f'{where} is a table, as {{ {DEFAULT_RUNNER} = "ubuntu-latest" }}')
    found: dict[str, tuple[str, ...]] = {}
    for name, labels in given.items():
        if name not in (DEFAULT_RUNNER, NATIVE):
            try:
                parse_target(name)
            except TargetError as error:
                raise OffloadError(f'{where}: {error}; or write "{DEFAULT_RUNNER}" for all machines') from error
            if "," in name:
                known = name.partition(",")[0]
                raise OffloadError(f'{where}: key "{name}": machines are by target and chip: "{known}"')
        if labels is False and name != DEFAULT_RUNNER:
            found[name] = ()
        elif isinstance(labels, str) and labels:
            found[name] = (labels,)
        elif isinstance(labels, list) and labels and all(isinstance(label, str) and label for label in labels):
            found[name] = tuple(labels)
        else:
            what = "a label or a list of labels"
            if name != DEFAULT_RUNNER:
                what = "a label, a list of labels, or false where no machine is"
            raise OffloadError(f'{where}: key "{name}": {what}, not {labels!r}')
    return found
