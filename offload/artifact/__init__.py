"""Reading and writing what an artifact carries: image container, signatures. No LLVM; never runs the file."""

from offload.artifact.artifact import (
    Artifact,
    container_object,
    describe,
    extract,
    functions_for_c,
    read,
    without_signature,
)
from offload.artifact.container import Image
from offload.artifact.meta import INTERFACE, SCHEMA, Argument, ImageInfo, KernelSignature, Metadata, Signature

__all__ = [
    "INTERFACE",
    "SCHEMA",
    "Argument",
    "Artifact",
    "Image",
    "ImageInfo",
    "KernelSignature",
    "Metadata",
    "Signature",
    "container_object",
    "describe",
    "extract",
    "functions_for_c",
    "read",
    "without_signature",
]
