"""``offload inspect``: what a shared library carries, read without running it."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from offload import artifact
from offload.artifact import Artifact, Image
from offload.errors import OffloadError, ToolkitError
from offload.targets import run_tool


def inspect(options: argparse.Namespace) -> int:
    """Prints, extracts, disassembles; returns the exit code. Raises ArtifactError, ToolkitError, OffloadError."""
    found = artifact.read(options.file)
    if options.extract:
        try:
            paths = artifact.extract(found, options.extract)
        except OSError as error:
            raise OffloadError(f"cannot write into {options.extract}: {error.strerror or error}") from error
        if not options.json:
            print("\n".join(map(str, paths)))
    if options.json:
        print(json.dumps(artifact.describe(found), indent=2))
    elif options.disassemble:
        for image in found.images:
            print(f"----- {image.filename}\n{_disassemble(image)}")
    elif not options.extract:
        _print(found)
    return 0


def _print(found: Artifact) -> None:
    metadata = found.metadata
    made_by = ", ".join(f"{name} {version}" for name, version in sorted(metadata.producer.items()))
    print(f"{found.path}: made by {made_by}; runtime {metadata.runtime}")
    print("functions:")
    for function in metadata.functions:
        arguments = ", ".join(f"{argument.name}: {argument}" for argument in function.args)
        results = ", ".join(str(result) for result in function.results) or "None"
        print(f"  {function.name}({arguments}) -> {results}")
    print("kernels:")
    for kernel in metadata.kernels:
        arguments = ", ".join(f"{argument.name}: {argument}" for argument in kernel.args)
        pointers = " with bare pointers" if kernel.bare_pointers else ""
        print(f"  {kernel.module}::{kernel.name}({arguments}){pointers}")
    print("images:")
    for image, info in zip(found.images, metadata.images, strict=True):
        print(f"  {image.module:<24} {image.target:<6} {image.chip:<12} {image.format:<8} {len(image.data):>9,} bytes")
        for name, values in sorted(info.resources.items()):
            used = ", ".join(f"{what} {value}" for what, value in values.items())
            print(f"      {name}: {used}")


def _disassemble(image: Image) -> str:
    """The image as text: what it is already, or through the vendor's or LLVM's disassembler."""
    if image.format == "isa":
        return image.data.decode(errors="replace")
    if image.format == "offload":
        command = [_tool("llvm-dis", "llvm-22"), "-o", "-"]
    elif image.target == "nvvm":
        command = [_tool("cuobjdump", "nvidia-cuda-cuobjdump (pip)"), "-sass"]
    else:
        command = [_tool("llvm-objdump", "llvm-22"), "-d"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / image.filename
        path.write_bytes(image.data)
        return run_tool([*command, path], f"disassemble {image.filename}")


def _tool(name: str, package: str) -> str:
    for candidate in (f"{name}-22", name):
        if found := shutil.which(candidate):
            return found
    raise ToolkitError(f"{name} was not found on PATH; it comes with {package}")
