"""What a build made, as a table of sizes, and the refusal of one that lacks what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload import artifact
from offload.artifact import Artifact, elf
from offload.config import DEFAULT_TARGETS
from offload.errors import OffloadError
from offload.targets import Target


def check_images(built: Artifact, where: str, targets: Sequence[Target], instead: bool = False) -> None:
    """Raises OffloadError where a target has no image, or only ones without kernels or without code. Sources without
    kernels are for the CPU, and for whatever targets one build has ``instead`` of those that it declares.

    An image is looked for by its target's name: compiled code that a program carries may be for an older chip than
    the one asked for, and the compiler has seen to it that it fits."""
    modules = dict.fromkeys(image.module for image in built.images)
    if not any(image.kernels for image in built.images):
        named = ", ".join(str(target) for target in targets if target.name not in DEFAULT_TARGETS)
        if named and not instead:
            raise OffloadError(
                f"{where}: the sources have no kernel, and these targets were asked for: {named}; leave them out"
            )
    for target in targets:
        for module in modules:
            images = [image for image in built.images if (image.module, image.target) == (module, target.name)]
            if not any(image.data for image in images):
                raise OffloadError(f"{where}: the library has no code of {module} for {target}; leave that target out")


def check_platform(where: str, library: Path, platform: str) -> None:
    """Raises OffloadError where a library's system or processor is not that of a wheel's platform: ``linux_x86_64``."""
    built = artifact.read(library).machine
    made = next(name for name, number in elf.MACHINES.items() if number == built)
    if not platform.startswith(("linux_", "manylinux", "musllinux")):
        raise OffloadError(
            f"{where}: the library is for Linux on {made}, and the wheel's tag would be {platform}: leave plat-name out"
        )
    wanted = next((number for name, number in elf.MACHINES.items() if platform.endswith(f"_{name}")), built)
    if built != wanted:
        raise OffloadError(
            f"{where}: the library is for {made}, and the wheel's tag would be {platform}: leave out the targets for "
            f"{made}, or build the wheel for it with _PYTHON_HOST_PLATFORM=linux-{made}"
        )


def size_table(built: Artifact, path: Path, name: str) -> str:
    """A line for the library and one for each image."""
    rows = [
        (f"  {image.target}:{image.chip}", image.module, ", ".join(image.kernels), f"{len(image.data):,} bytes")
        for image in built.images
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    lines = [f"{name}: {path.name}, {path.stat().st_size:,} bytes"]
    for target, module, kernels, size in rows:
        lines.append(
            f"{target:<{widths[0]}}  {module:<{widths[1]}}  {size:>{widths[3]}}  {_shortened(kernels)}".rstrip()
        )
    return "\n".join(lines)


def _shortened(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 2] + " …"
