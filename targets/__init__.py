"""Targets: what a GPU module can be compiled for. Installed as ``offload.targets``; loads no LLVM and no driver."""

from offload.targets.base import Device, Image, ReadyImage, Stage, Target
from offload.targets.registry import Registry, parse_target, parse_targets, registry
from offload.targets.tools import Found, Tool, run_tool

__all__ = [
    "Device",
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
