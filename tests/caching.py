"""What the tests of the cache share: a cache of a test's own, programs to put in it, and what a build had to do."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from compiling import EXAMPLES

import offload
from offload.cache import cache as layers
from offload.cache.folder import STAGES
from offload.cache.store import Store
from offload.runtime import Library

PROGRAM = (EXAMPLES / "saxpy.mlir").read_text()
OTHER = PROGRAM.replace("@saxpy", "@other")


class Refused(Exception):
    """A build that should not have been."""


def works(library: Library, name: str = "saxpy") -> bool:
    """Whether a library of PROGRAM computes what it should."""
    library.use("host")
    x, y = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
    library.functions[name](2, x, y)
    return bool((y == 2 * x + 1).all())


def built(source: Path, output: Path, targets: Sequence[str] = ("host",), **options: object) -> list[str]:
    """Builds, and returns what the build compiled, took from the cache, or linked, in order."""
    said: list[str] = []
    offload.build(source, output, targets=targets, progress=said.append, **options)  # type: ignore[arg-type]
    return [line for line in said if line.split()[0] in ("compiling", "taking", "linking")]


def entries(folder: Path) -> dict[str, list[Path]]:
    """The files of every stage of a cache."""
    return {stage: sorted((folder / stage).iterdir()) if (folder / stage).is_dir() else [] for stage in STAGES}


def leftovers(folder: Path) -> list[Path]:
    """Locks and temporary files, which nobody should leave."""
    return [path for name in ("locks", "tmp") for path in (folder / name).iterdir()]


def all_whole(folder: Path) -> bool:
    """Whether every entry is what its trailer says."""
    store = Store(folder)
    found = [
        (path, store.read(stage, path.name.removesuffix(".so")))
        for stage, paths in entries(folder).items()
        for path in paths
    ]
    return all(payload is not None for _, payload in found)


def numbers(folder: Path) -> dict[str, int]:
    """What a cache counted."""
    return dict(json.loads((folder / "ledger.json").read_bytes()))


def told(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """The texts of the cache's warnings among those that were caught."""
    return [str(warning.message) for warning in caught if issubclass(warning.category, offload.CacheWarning)]


class Machines:
    """Machines of a team: each has a local cache of its own, all have the shared one."""

    def __init__(self, folder: Path, url: str, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.url, self._patch = folder, url, patch
        patch.setattr(layers, "_said", set())

    def use(self, name: str, mode: str | None = None, secret: str | None = None) -> Path:
        """From here on this process is that machine, with these settings; its cache folder is returned."""
        layers._shared_store.cache_clear()
        settings = {"DIR": str(self.folder / name)}
        for key, value in (("OFFLOAD_SHARED_CACHE_MODE", mode), ("OFFLOAD_SHARED_CACHE_KEY", secret)):
            self._patch.delenv(key, raising=False)
            if value is not None:
                self._patch.setenv(key, value)
        self._patch.setenv("OFFLOAD_CACHE_DIR", settings["DIR"])
        self._patch.setenv("OFFLOAD_SHARED_CACHE", self.url)
        return self.folder / name
