"""Targets: what a GPU module can be compiled for. Installed as ``offload.targets``; loads no LLVM and no driver."""

from typing import TYPE_CHECKING, Any

from offload.targets.base import Stage, Target
from offload.targets.images import Image, ReadyImage
from offload.targets.registry import Registry, parse_target, parse_targets, registry
from offload.targets.tools import Found, Tool, run_tool

if TYPE_CHECKING:
    from offload.targets.devices import Device, Discovery

__all__ = [
    "Device",
    "Discovery",
    "Found",
    "Image",
    "ReadyImage",
    "Registry",
    "Stage",
    "Target",
    "Tool",
    "parse_target",
    "parse_targets",
    "registry",
    "run_tool",
]


def __getattr__(name: str) -> Any:
    if name not in ("Device", "Discovery"):  # which no build needs
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from offload.targets import devices

    return getattr(devices, name)
