"""What the modules of editable installations do when they are imported: build themselves again if need be."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from offload import artifact
from offload.errors import ArtifactError, OffloadError, ToolkitError
from offload.hooks.freshness import digest_of_table
from offload.hooks.project import KernelTable, read_tables


def refresh(
    module: str, file: str, pyproject: str, targets: Sequence[str] | None, digest: str, names: Sequence[str]
) -> list[str]:
    """The names that a module exports, after it was built again where a source or its table has changed.

    ``pyproject`` counts from the folder of ``file``, which may be a link. ``digest`` and ``names`` are those of the
    last build. Raises ImportError where the module cannot be built, with the reason and what to do."""
    damaged, project = None, Path(os.path.normpath(Path(file).resolve().parent / pyproject))
    if not _is_there(project):
        raise ImportError(
            f"{module} is installed as editable, and its project is not where it was built ({project}): install it, or "
            "copy the project with it"
        )
    try:
        table = _table(module, project)
        built = file.removesuffix(".py") + ".offload.so"
        damaged = _damage(Path(built))
        if damaged is None and digest_of_table(table, targets, editable=True) == digest:
            return list(names)
        from offload.hooks.build import build_module
        from offload.hooks.generate import names_in

        outputs = build_module(table, Path(file).parent, targets=targets, editable=True, say=_say)
    except ToolkitError as error:
        why = f"has to be built again ({damaged})" if damaged else "its sources have changed"
        raise ImportError(
            f"{module} is installed as editable and {why}, but it cannot be built here: {error}\n"
            "  or build it again where its tools are: pip install -e ."
        ) from None
    except OffloadError as error:
        raise ImportError(
            f"{module} is installed as editable and {'is damaged' if damaged else 'has changed'}; building it again "
            f"failed:\n{error}"
        ) from None
    return names_in(outputs.loader.read_text(encoding="utf-8"))


def _damage(built: Path) -> str | None:
    """What is wrong with the library; None where it can be loaded."""
    try:
        artifact.read(built)
    except ArtifactError as error:
        return str(error)
    return None


def _table(module: str, pyproject: Path) -> KernelTable:
    for table in read_tables(pyproject):
        if table.module == module:
            return table
    raise OffloadError(
        f"{pyproject} has no table for {module} any more; install the package again, or remove the module"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _is_there(path: Path) -> bool:
    """Also of a file that may not be looked at."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # who reads it says why
        return True
    return True
