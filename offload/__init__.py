"""GPU kernels as ordinary Python packages: MLIR in, one shared library for NVIDIA, AMD and the CPU out.

``compile`` builds a program, keeps it in a cache and loads it; ``build`` writes a shared library; ``load`` loads one.
Importing this package loads no LLVM, no driver and not even NumPy, and next to nothing at all: what it offers is
imported when it is first named, ``offload.artifact`` (what a library carries), ``offload.errors``,
``offload.targets`` and ``offload.runtime`` too.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

from offload._version import __version__


class _Sources:
    """Says why there is no ``offload.targets`` where the sources of this package are, and Python finds these before
    the installed package. The last of the finders is asked for nothing that another one has found."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == f"{__name__}.targets":
            raise ModuleNotFoundError(
                f"{__path__[0]} has the sources of offload, and Python found them before the installed package: start "
                "it as `python -I` here, or in another folder (and `pytest` in place of `python -m pytest`)",
                name=name,
            )


# Half of the package is there, which can load libraries.
if any(os.access(f"{place}/../runtime_c", os.F_OK) for place in __path__):
    sys.meta_path.append(_Sources)

_MODULES = ("api", "artifact", "errors", "runtime", "targets")

if TYPE_CHECKING:
    from offload import api as api
    from offload import artifact as artifact
    from offload import errors as errors
    from offload import runtime as runtime
    from offload import targets as targets
    from offload.api import backend, build, build_all, compile, load, stage, use
    from offload.errors import (
        ArtifactError,
        BuildWarning,
        CacheWarning,
        CompileError,
        CompilerCrash,
        DeviceError,
        Diagnostic,
        LinkError,
        OffloadError,
        SignatureError,
        TargetError,
        ToolkitError,
        UsageError,
    )

__all__ = [
    "ArtifactError",
    "BuildWarning",
    "CacheWarning",
    "CompileError",
    "CompilerCrash",
    "DeviceError",
    "Diagnostic",
    "LinkError",
    "OffloadError",
    "SignatureError",
    "TargetError",
    "ToolkitError",
    "UsageError",
    "__version__",
    "backend",
    "build",
    "build_all",
    "compile",
    "load",
    "stage",
    "use",
]


if not TYPE_CHECKING:  # type checkers would let any name be one of the package

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"{__name__}.{'errors' if name[0].isupper() else 'api'}")
        value = globals()[name] = getattr(home, name)  # the next time it is found without this function
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES} - {"TYPE_CHECKING", "Any", "os", "sys"})
