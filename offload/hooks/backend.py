"""A PEP 517 backend before another one, for ``pip … -C offload.targets=…``: setuptools and hatchling pass no config
settings on to their plugins, and say nothing of those that they do not know.

    [build-system]
    build-backend = "offload.hooks.backend"
    [tool.offload]
    build-backend = "hatchling.build"       # default: setuptools.build_meta
"""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any

from offload.errors import OffloadError
from offload.hooks.build import outputs_of
from offload.hooks.overrides import from_config_settings
from offload.hooks.project import BACKEND_KEY, declares_kernels, read_backend, read_tables

_HOOKS = {  # the position of config_settings
    "build_sdist": 1,
    "build_wheel": 1,
    "build_editable": 1,
    "get_requires_for_build_sdist": 0,
    "get_requires_for_build_wheel": 0,
    "get_requires_for_build_editable": 0,
    "prepare_metadata_for_build_wheel": 1,
    "prepare_metadata_for_build_editable": 1,
}


def __getattr__(name: str) -> Any:
    """The backend's hook, if it has it: front ends ask whether optional ones are there."""
    if name not in _HOOKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        hook = getattr(_backend(), name)
    except OffloadError as error:
        sys.exit(f"error: {error}")
    position = _HOOKS[name]

    def call(*arguments: Any, **named: Any) -> Any:
        values = list(arguments)
        given = values[position] if len(values) > position else named.get("config_settings")
        try:
            with from_config_settings(given) as settings:
                if len(values) > position:
                    values[position] = settings
                elif "config_settings" in named:
                    named["config_settings"] = settings
                made = hook(*values, **named)
                if name == "build_wheel":
                    _check_wheel(Path(values[0] if values else named["wheel_directory"]) / made)
                return made
        except OffloadError as error:
            sys.exit(f"error: {error}")

    return call


def _check_wheel(wheel: Path) -> None:
    """Removes a wheel that lacks a declared module, and raises OffloadError: nobody told the backend to make it."""
    pyproject = Path("pyproject.toml")
    if not declares_kernels(pyproject):
        return
    with zipfile.ZipFile(wheel) as archive:
        files = [f"/{name}" for name in archive.namelist()]
    for table in read_tables(pyproject):
        library = outputs_of(table.module, Path(table.folder)).library.as_posix()
        # A wheel has them at its root, or in NAME.data/platlib.
        if not any(file.endswith(f"/{library}") for file in files):
            wheel.unlink()
            raise OffloadError(
                f"{table.where}: {read_backend(pyproject)} made a wheel without {library}; setuptools compiles kernels "
                "by itself, hatchling where pyproject.toml has the table [tool.hatch.build.hooks.offload], CMake where "
                "it calls offload_add_modules(), Meson where it runs offload.hooks, others do not"
            )


def _backend() -> Any:
    """The backend behind this one; ``module:object`` as PEP 517 has it. Raises OffloadError where there is none."""
    named = read_backend(Path("pyproject.toml"))
    module, _, path = named.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in filter(None, path.split(".")):
            found = getattr(found, part)
    except (AttributeError, ModuleNotFoundError) as error:
        missing = getattr(error, "name", None) or ""
        if isinstance(error, ModuleNotFoundError) and module != missing and not module.startswith(f"{missing}."):
            raise  # the backend is there, and something that it needs is not
        raise OffloadError(
            f'pyproject.toml: [tool.offload]: {BACKEND_KEY}: there is no backend "{named}" here; "requires" in '
            "[build-system] names the package that has it"
        ) from error
    return found
