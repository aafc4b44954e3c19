"""Compiled code: what a target makes of a module, and what a program may carry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from offload.errors import CompileError


class Image(NamedTuple):
    """Code for one module and one chip. ``resources`` maps kernel names to registers, spills and memory in bytes.

    ``warnings`` are what a tool that made it warned of, each (severity, message, file, line, column, notes)."""

    data: bytes
    resources: Mapping[str, Mapping[str, int]] = {}
    warnings: Sequence[tuple[Any, ...]] = ()


class ReadyImage(NamedTuple):
    """Compiled code that a program carries, as its own bytes describe it.

    ``format`` is one of those of `offload.targets.base`. ``chips`` are those it is for, the oldest first; empty where
    the bytes do not tell. ``kernels`` are all that it holds, None where the bytes do not tell. ``parts`` are images of
    single chips inside of a bundle. ``parameters`` are the sizes in bytes of what a kernel takes, for the kernels of
    which the bytes tell.
    """

    image: Image
    format: str
    chips: tuple[str, ...] = ()
    kernels: tuple[str, ...] | None = None
    parts: tuple[ReadyImage, ...] = ()
    parameters: Mapping[str, tuple[int, ...]] = {}


def chip_in_attribute(attribute: str, dialect: str, default: str) -> str | None:
    """The chip of ``#DIALECT.target<…>``, or MLIR's default, which it does not print; None for another attribute."""
    if not re.match(rf"#{dialect}\.target\b", attribute):
        return None
    chip = re.search(r'\bchip = "([^"]*)"', attribute)
    return chip.group(1) if chip else default


def damaged(what: str, data: bytes, error: Exception) -> CompileError:
    """What to raise for compiled code of a vendor's whose own structure does not hold together."""
    return CompileError(
        f"a damaged {what}: of its {len(data)} bytes some are missing or changed; make it anew "
        f"(what does not fit: {error.args[0]})"
    )
