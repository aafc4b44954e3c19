"""What a library carries besides its host code: the images and the metadata, as an object file to link."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from offload import artifact
from offload._version import __version__
from offload.compiler.device import Linked
from offload.compiler.native import native
from offload.compiler.request import BuildRequest
from offload.compiler.warned import NOTHING_TO_CALL, say
from offload.targets import Image


def container(request: BuildRequest, module: Any, builds: Sequence[Linked], images: Sequence[Image]) -> bytes:
    """The container of a program's images, one for each build."""
    signatures = json.loads(module.signatures())
    if request.bare_pointers:
        signatures["kernels"] = [{"bare_pointers": True, **kernel} for kernel in signatures["kernels"]]
    metadata = artifact.Metadata.from_json(
        json.dumps(
            {
                "schema": artifact.SCHEMA,
                "producer": {"offload": __version__, "llvm": native().llvm_version},
                "runtime": request.runtime,
                "functions": signatures["functions"],
                "kernels": signatures["kernels"],
                "refused": signatures["refused"],
                "images": [_info(*pair) for pair in zip(builds, images, strict=True)],
            }
        )
    )
    entries = [_entry(*pair) for pair in zip(builds, images, strict=True)]
    if not (signatures["functions"] or signatures["refused"] or entries or request.objects):
        _warn_of_nothing(request)
    return artifact.container_object(entries, metadata, request.architecture)


def _warn_of_nothing(request: BuildRequest) -> None:
    names = ", ".join(source.name for source in request.sources)
    say(
        f"{names}: warning: {NOTHING_TO_CALL}: no function is public, and there is no kernel; leave `private` out of "
        "the functions that are to be called"
    )


def _entry(build: Linked, image: Image) -> artifact.Image:
    return artifact.Image(
        module=build.name,
        target=build.target_name,
        chip=build.chip,
        triple=build.triple,
        format=build.format,
        kernels=build.kernels,
        data=image.data,
        jit_level=build.jit_level,
    )


def _info(build: Linked, image: Image) -> dict[str, Any]:
    return {
        "module": build.name,
        "target": build.target_name,
        "chip": build.chip,
        "format": build.format,
        "kernels": list(build.kernels),
        "resources": {kernel: dict(values) for kernel, values in image.resources.items()},
    }
