"""GPU kernels as ordinary Python packages: MLIR in, one shared library for NVIDIA, AMD and the CPU out.

``compile`` builds a program, keeps it in a cache and loads it; ``build`` writes a shared library; ``load`` loads one.
Importing this package loads no LLVM, no driver and not even NumPy. ``offload.artifact`` (what a library carries),
``offload.targets`` and ``offload.runtime`` are imported when they are first named.
"""

from importlib import import_module
from types import ModuleType

from offload._version import __version__
from offload.api import backend, build, build_all, compile, load, stage, use
from offload.errors import (
    ArtifactError,
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
)

__all__ = [
    "ArtifactError",
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
    "__version__",
    "backend",
    "build",
    "build_all",
    "compile",
    "load",
    "stage",
    "use",
]


def __getattr__(name: str) -> ModuleType:
    if name in ("artifact", "runtime", "targets"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
