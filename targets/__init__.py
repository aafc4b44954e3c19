"""Targets: what a GPU module can be compiled for. Installed as ``offload.targets``; loads no LLVM and no driver."""

from offload.targets.base import Image, ReadyImage, Stage, Target
from offload.targets.devices import Device, Discovery
from offload.targets.registry import Registry, parse_target, parse_targets, registry
from offload.targets.tools import Found, Tool, run_tool

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
