"""Devices in this machine, as targets find them: what users choose by, and who was asked."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple


@dataclass(frozen=True)
class Device:
    """A device in this machine: ``chip`` as a target of its vendor would spell it.

    ``index`` is its number, from 0: the one that its driver gives it, by which the runtime opens it, where a driver
    was asked; else its place among the vendor's devices in the machine. ``memory`` is in bytes. ``multiprocessors``
    are what runs blocks: multiprocessors, compute units (some drivers count pairs of these as one), hardware threads
    of a CPU. ``driver`` names what drives the device with its version (``"CUDA 13.0"``: the newest CUDA that the
    driver runs). What nobody told is None.
    """

    target: str
    chip: str
    name: str
    index: int = 0
    memory: int | None = None
    multiprocessors: int | None = None
    driver: str | None = None

    def size(self) -> str:
        """Memory and multiprocessors for readers, ``"79.6 GiB, 132 multiprocessors"``; empty where unknown."""
        memory = [f"{self.memory / 2**30:.1f} GiB"] if self.memory is not None else []
        processors = [f"{self.multiprocessors} multiprocessors"] if self.multiprocessors is not None else []
        return ", ".join([*memory, *processors])


class Discovery(NamedTuple):
    """The devices that were found, what they were found ``through`` (empty where there is only one way), and
    ``notes``: a sentence for each that was asked and told less than it should, in the order of asking."""

    devices: tuple[Device, ...] = ()
    through: str = ""
    notes: tuple[str, ...] = ()


class Refused(Exception):
    """A driver was asked, and answered that it could not: the text says which call and what it said."""


def optional_module(name: str, notes: list[str]) -> ModuleType | None:
    """A module of a package that need not be installed; None where it is not.

    Where it is and cannot be imported, None too, and why is added to ``notes``: packages for GPUs load libraries when
    they are imported, and may raise anything.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        notes.append(f"{name} cannot be imported: {error}")
    except Exception as error:
        notes.append(f"{name} cannot be imported: {error}")
    return None


def with_version(name: str, distribution: str) -> str:
    """``"cuda.bindings 13.0.1"``; the name alone where the distribution is not known."""
    from importlib import metadata  # not at the top: builds import this module, and it takes a while

    try:
        return f"{name} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return name
