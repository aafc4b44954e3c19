"""What a check is: programs that are compiled beforehand, and a function that runs them and compares."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

HOST, CUDA = "host", "cuda"
EVERYWHERE = (HOST, CUDA)


class NotRun(Exception):
    """A check cannot run here; the text says why. It is counted, and is neither a success nor a failure."""


@dataclass(frozen=True)
class Program:
    """A program in MLIR and what it is compiled for.

    ``source`` may be a function, for programs that hold compiled code: it is called where there is a compiler, and
    ``label`` stands for the text then. ``options`` are further arguments of :func:`offload.compile`.
    """

    source: str | Callable[[], str]
    targets: Sequence[str] = ("nvvm:sm_90", "host")
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else self.source()

    @property
    def key(self) -> str:
        """The name under which the compiled program is kept: it changes with all that decides the program."""
        told = self.label or self.source
        if not isinstance(told, str):
            raise ValueError("a program that is made by a function needs a label")
        material = json.dumps([told, list(self.targets), dict(self.options)], sort_keys=True, default=str)
        return hashlib.sha256(material.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Check:
    """One check. ``run`` gets a library for each of ``programs``, on the backend that is checked.

    ``alone``: it leaves a device behind on which nothing runs any more, or takes all of it: nothing else runs in its
    process. ``needs`` are Python packages. ``seconds`` is how long it may take. ``module`` is the one whose
    ``checks()`` has it.
    """

    group: str
    name: str
    programs: Sequence[Program]
    run: Callable[..., None]
    backends: Sequence[str] = EVERYWHERE
    needs: Sequence[str] = ()
    alone: bool = False
    seconds: float = 60
    module: str = ""

    @property
    def id(self) -> str:
        return f"{self.group}/{self.name}"

    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        for name in self.needs:
            if not _is_there(name):
                return f"no {name}"
        return ""


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


@functools.cache
def checks_of(module: str) -> Mapping[str, Check]:
    """The checks of a module by their names. Raises ValueError where two have the same."""
    found: dict[str, Check] = {}
    for check in importlib.import_module(module).checks():
        if check.id in found:
            raise ValueError(f"two checks are called {check.id}")
        found[check.id] = replace(check, module=module)
    return found
