"""The checks, by group: each module here has ``checks()``."""

from __future__ import annotations

import pkgutil

from device.checks import Check, checks_of


def all_checks() -> list[Check]:
    """The checks of every module of this folder, by the modules' names."""
    modules = sorted(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    return [check for module in modules for check in checks_of(module).values()]
