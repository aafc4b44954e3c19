"""Programs with compiled code in them, for tests: real images of one small kernel, made here, and MLIR around them."""

from __future__ import annotations

import functools
import struct
import tempfile
from pathlib import Path

import pytest
from compiling import emit

import offload
from offload import artifact
from offload.artifact import Artifact
from offload.errors import CompileError

SOURCE = """
module attributes {gpu.container_module} {
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>, %a: f32) kernel {
    %i = gpu.thread_id x
    memref.store %a, %x[%i] : memref<?xf32>
    gpu.return
  }
}
}
"""
"""The kernel that all images hold: it stores ``a`` into the first elements of ``x``, one per thread."""

BODY = SOURCE.split("gpu.module @m {\n")[1].rsplit("}\n}\n")[0]
DECLARATION = "llvm.func @k(!llvm.ptr, !llvm.ptr, i64, i64, i64, f32) attributes {gpu.kernel}\n"
LAUNCH = (
    "gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<?xf32>, %a : f32)"
)


@functools.cache
def image(target: str, stage: str = "object") -> bytes:
    """The kernel's code for a target, as a stage of the compiler gives it."""
    (item,) = emit(SOURCE, stage, [target])
    return item.data


def bitcode(target: str) -> bytes:
    """The kernel as bitcode of LLVM for a target."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.mlir"
        source.write_text(SOURCE)
        library = offload.build(source, Path(folder) / "program.so", targets=[f"{target},format=offload"])
        (made,) = artifact.read(library).images
    return made.data


CUBIN = image("nvvm:sm_90")
OLDER = image("nvvm:sm_80")
PTX = image("nvvm:sm_90", "isa")
FATBIN = image("nvvm:sm_90,format=fatbin", "fat")
HSACO = image("rocdl:gfx942")
BUNDLE = image("rocdl:gfx942,format=fatbin", "fat")


def escaped(data: bytes) -> str:
    """Bytes as an MLIR string."""
    plain = set(range(32, 127)) - set(b'"\\')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:02X}" for byte in data) + '"'


def host(launch: str = LAUNCH) -> str:
    """A function ``f(x, a)`` that launches the kernel, and the end of the program."""
    return f"""
func.func @f(%x: memref<?xf32>, %a: f32) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  {launch} // launch
  return
}}
}}
"""


def annotated(attributes: dict[str, bytes], body: str = DECLARATION, launch: str = LAUNCH) -> str:
    """A gpu.module @m with attributes that hold code."""
    words = ", ".join(f"{name} = {escaped(data)}" for name, data in attributes.items())
    return (
        "module attributes {gpu.container_module} {\n"
        f"gpu.module @m attributes {{{words}}} {{ // here\n{body}}}\n{host(launch)}"
    )


def nvvm_object(chip: str, data: bytes, form: str = "bin = ", more: str = "") -> str:
    """An object for NVIDIA; ``more`` are properties or kernels."""
    return f'#gpu.object<#nvvm.target<chip = "{chip}">, {more}{form}{escaped(data)}>'


def rocdl_object(chip: str, data: bytes, form: str = "bin = ", more: str = "") -> str:
    """An object for AMD; ``more`` are properties or kernels."""
    return f'#gpu.object<#rocdl.target<chip = "{chip}">, {more}{form}{escaped(data)}>'


def binary(*objects: str, handler: str = "", launch: str = LAUNCH) -> str:
    """A gpu.binary @m."""
    return (
        "module attributes {gpu.container_module} {\n"
        f"gpu.binary @m {handler} [{', '.join(objects)}] // here\n{host(launch)}"
    )


def bundled(images: dict[str, bytes]) -> bytes:
    """clang's offload bundle: a count, then offset, size, length of the id and the id for each; the host's is empty."""
    entries = {"host-x86_64-unknown-linux-gnu-": b""}
    entries |= {f"hipv4-amdgcn-amd-amdhsa--{chip}": data for chip, data in images.items()}
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    position = len(head) + sum(24 + len(name) for name in entries)
    body = b""
    for name, data in entries.items():
        head += struct.pack("<QQQ", position + len(body), len(data), len(name)) + name.encode()
        body += data
    return head + body


def built(source: str, folder: Path, **options: object) -> Artifact:
    """The program as a library on disk, read back."""
    path = folder / "program.mlir"
    path.write_text(source)
    return artifact.read(offload.build(path, folder / "program.so", **options))  # type: ignore[arg-type]


def held(found: Artifact) -> list[tuple[str, str, str, bytes]]:
    return [(image.target, image.chip, image.format, image.data) for image in found.images]


def refusal(source: str, **options: object) -> tuple[str, int]:
    """The first diagnostic of a program that cannot be built, and its line."""
    with pytest.raises(CompileError) as caught:
        offload.compile(source, **options)  # type: ignore[arg-type]
    first = caught.value.diagnostics[0]
    return first.message, first.line
