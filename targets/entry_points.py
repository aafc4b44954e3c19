"""The entry points of a group, as installers write them into the folders beside the packages.

importlib.metadata reads them too, and much else; importing it, with the parser of e-mail that it has for the rest, and
reading every line of every package takes longer than all else that a build does whose result is in the cache.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from offload.paths import import_path


class EntryPoint(Protocol):
    """What is asked of an entry point, ours and importlib.metadata's."""

    @property
    def name(self) -> str:
        """What it is called, within its group."""

    @property
    def value(self) -> str:
        """Where it leads, as ``module:attribute``."""

    def load(self) -> Any:
        """The object that it leads to. Raises whatever importing does."""


class Declared(NamedTuple):
    """A line of an installed package's ``entry_points.txt``."""

    name: str
    value: str

    def load(self) -> Any:
        module, _, attributes = self.value.partition("[")[0].partition(":")
        found: Any = importlib.import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            found = getattr(found, attribute)
        return found


def entry_points(group: str) -> list[EntryPoint]:
    """The entry points of a group; of a package that is there twice, those that importing it would take."""
    if not _all_are_folders():
        from importlib import metadata

        places = import_path()
        if len(places) == len(sys.path):
            return list(metadata.entry_points(group=group))
        # Finders of someone's own may trip over what is no text there.
        found = (point for package in metadata.distributions(path=places) for point in package.entry_points)
        return list({(point.name, point.value): point for point in found if point.group == group}.values())
    mark = f"[{group}]".encode()
    return [
        point for text in _declarations() if mark in text for point in _of_group(text.decode(errors="replace"), group)
    ]


def _all_are_folders() -> bool:
    """Whether packages are found in plain folders alone: not in archives or eggs, nor by finders of someone's own."""
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_distributions"))
    if any(getattr(finder, "__name__", "") != "PathFinder" for finder in finders):
        return False
    return not any(os.path.isfile(place) or place.rstrip("/").endswith(".egg") for place in import_path())  # noqa: PTH113


def _declarations() -> Iterator[bytes]:
    """The files ``entry_points.txt`` of all installed packages. Strings, not Path, which would take twice as long."""
    seen = set()
    for place in import_path():
        try:
            names = os.listdir(place or ".")  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            stem, _, suffix = name.rpartition(".")
            if suffix.lower() not in ("dist-info", "egg-info"):
                continue
            package = stem.partition("-")[0].replace(".", "_").lower()
            if package in seen:
                continue
            seen.add(package)
            try:
                with open(f"{place or '.'}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123
                    yield file.read()
            except OSError:  # most packages have none
                continue


def _of_group(text: str, group: str) -> Iterator[Declared]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Declared(name.strip(), value.strip())
