"""The Python files of targets that other packages bring: they decide the bytes, and a worker keeps what it loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from offload.cache.contents import stamp
from offload.targets import Target


def files_of(target: type[Target]) -> Iterator[Path | None]:
    """The files of a target's classes that are not ours; None for code that is in no file, as a notebook's."""
    for cls in target.__mro__:
        module = cls.__module__
        if issubclass(cls, Target) and not module.startswith("offload."):
            place = _place_of(module)
            yield from python_files(place) if place else (None,)


def stamps(targets: Iterable[type[Target]]) -> dict[Path, str]:
    """The files of targets, each with what changes when it does."""
    found = {}
    for path in (path for target in targets for path in files_of(target)):
        if path is not None and path.exists():
            found[path] = stamp(path)
    return found


def python_files(*places: Path) -> Iterator[Path]:
    """The files of modules, and of packages, whose folders are given."""
    for place in places:
        if not place.is_dir():
            yield place
        for folder, _, names in os.walk(place):  # of a file there is none; Path.rglob() takes three times as long
            yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))


def _place_of(module: str) -> Path | None:
    """The file of a module that is imported, or the folder of the whole package that it is part of, whose other modules
    it may call; None without a file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    package = getattr(sys.modules[module], "__package__", None)
    if not package:
        return Path(file)
    folder = Path(file).parent
    for _ in range(package.count(".")):
        if not (folder.parent / "__init__.py").is_file():  # a namespace, which is several packages'
            break
        folder = folder.parent
    return folder
