"""The Pythons that a package is for, as X.Y: what its classifiers and ``requires-python`` say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from offload.errors import OffloadError

KNOWN = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""The Pythons that offload itself is for."""

_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_CLAUSE = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?")


def declared_pythons(project: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Those of the classifiers, or else all known ones, as far as ``requires-python`` admits them.

    ``project`` is the table [project], ``where`` is what errors call its file. Raises OffloadError."""
    required = project.get("requires-python", "")
    listed = [match[1] for each in project.get("classifiers", ()) if (match := _CLASSIFIER.fullmatch(str(each)))]
    wanted = [version for version in ordered(listed) if _numbers(version) >= _numbers(KNOWN[0])] or KNOWN
    clauses = [text.strip() for text in str(required).split(",") if text.strip()]
    found = tuple(version for version in wanted if all(_admits(text, version, where) for text in clauses))
    if not found:
        raise OffloadError(
            f'{where}: key "requires-python": "{required}" admits none of {", ".join(wanted)}; name Pythons in '
            "[tool.offload.matrix] pythons, or with --python"
        )
    return found


def ordered(versions: Iterable[str]) -> list[str]:
    """Without repetitions, oldest first."""
    return sorted(dict.fromkeys(versions), key=_numbers)


def is_version(text: str) -> bool:
    """Whether a text is such as 3.12."""
    return re.fullmatch(r"3\.\d+", text) is not None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _admits(clause: str, version: str, where: str) -> bool:
    """Whether some release of X.Y fits a clause, as ``>=3.10`` or ``!=3.11.*``."""
    match = _CLAUSE.fullmatch(clause)
    if match is None or (match[3] and match[1] not in ("==", "!=")):
        raise OffloadError(
            f'{where}: key "requires-python": {clause!r} is not understood; name Pythons in [tool.offload.matrix] '
            "pythons, or with --python"
        )
    operator, bound = match[1], _numbers(match[2])
    series, first = _numbers(version), (*bound, 0)[:2]
    within = series[: len(bound)] == bound[:2]
    if operator == "==":
        return within
    if operator == "!=":  # of a series, all but one release are left
        return not (match[3] and within and len(bound) <= 2)
    if operator == "~=":
        return series >= first and series[: len(bound) - 1] == bound[:-1][:2]
    if operator == "<":
        return series < first or (series == first and any(bound[2:]))
    return series <= first if operator == "<=" else series >= first
