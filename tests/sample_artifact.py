"""Images and metadata that the tests of artifacts share, and the library that they make."""

from __future__ import annotations

import subprocess
from pathlib import Path

from offload.artifact import (
    Argument,
    Image,
    ImageInfo,
    KernelSignature,
    Metadata,
    Signature,
    container_object,
)

CUBIN = Image("blas", "nvvm", "sm_90", "nvptx64-nvidia-cuda", "bin", ("saxpy", "dot"), b"\x7fELF cubin")
HSACO = Image("blas", "rocdl", "gfx942:sramecc+", "amdgcn-amd-amdhsa", "bin", ("saxpy", "dot"), b"h" * 77)
HOST = Image("blas", "host", "x86-64-v3", "x86_64-unknown-linux-gnu", "bin", ("saxpy", "dot"), b"")
PTX = Image("blas", "nvvm", "sm_80", "nvptx64-nvidia-cuda", "isa", ("saxpy", "dot"), b".version 8.0\n")
IMAGES = [CUBIN, HSACO, HOST, PTX]

X = Argument("x", "memref", "float32", (None, 4))
STRIDED = Argument("y", "memref", "complex64", (8,), (None,), None, "device")
SIGNATURE = Signature("f", "_mlir_ciface_f", (X, STRIDED), (Argument("", "scalar", "int64"),))
KERNEL = KernelSignature("saxpy", "blas", (STRIDED, Argument("a", "scalar", "bool")))


def meta_of(images: list[Image]) -> Metadata:
    infos = tuple(
        ImageInfo(i.module, i.target, i.chip, i.format, i.kernels, {"saxpy": {"registers": 16}}) for i in images
    )
    return Metadata((SIGNATURE,), (KERNEL,), infos, {"name": "offload", "version": "1"})


def link(path: Path, images: list[Image], *flags: str, meta: Metadata | None = None) -> Path:
    source = path.with_suffix(".c")
    source.write_text(
        "extern const char offload_images_begin[], offload_images_end[];\n"
        "long images(void) { return offload_images_end - offload_images_begin; }\n"
    )
    obj = path.with_suffix(".o")
    obj.write_bytes(container_object(images, meta or meta_of(images), "x86_64"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source, obj, *flags], check=True)
    return path
