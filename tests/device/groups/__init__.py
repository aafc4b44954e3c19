"""The checks, by group: each module here has ``checks()``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from device.checks import Check, unique


@functools.cache
def all_checks() -> tuple[Check, ...]:
    """The checks of every module of this folder, by the modules' names."""
    found: list[Check] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        found += importlib.import_module(f"{__name__}.{module.name}").checks()
    return tuple(unique(found))
