"""``offload inspect``: what a shared library carries, read without running it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from offload import artifact
from offload.artifact import Artifact, Image, Metadata
from offload.errors import OffloadError
from offload.targets import registry, run_tool
from offload.targets.tools import from_path, search


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
        _print_machine_code(found)
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
    functions, kernels = artifact.without_signature(found)
    if functions:
        print(f"  for C alone: {', '.join(name + _because(metadata, name) for name in functions)}")
    print("kernels:")
    for kernel in metadata.kernels:
        arguments = ", ".join(f"{argument.name}: {argument}" for argument in kernel.args)
        pointers = " with bare pointers" if kernel.bare_pointers else ""
        print(f"  {kernel.module}::{kernel.name}({arguments}){pointers}")
    for module, name in kernels:
        because = _because(metadata, name, module)
        print(f"  {module}::{name}: for host code alone, with a type that has no counterpart in Python{because}")
    print("images:")
    for image, info in zip(found.images, metadata.images, strict=True):
        print(f"  {image.module:<24} {image.target:<6} {image.chip:<12} {image.format:<8} {len(image.data):>9,} bytes")
        for name, values in sorted(info.resources.items()):
            used = ", ".join(f"{what} {value}" for what, value in values.items())
            print(f"      {name}: {used}")


def _because(metadata: Metadata, name: str, module: str = "") -> str:
    why = metadata.why_refused(name, module)
    return f" ({why})" if why else ""


def _print_machine_code(found: Artifact) -> None:
    from offload.compiler import places
    from offload.compiler.scratch import scratch

    # Where this process is told to end, so is the disassembler, and its files go.
    with places.short_lived(), scratch() as folder:
        for image in found.images:
            print(f"----- {image.filename}\n{_disassemble(image, Path(folder))}")


def _disassemble(image: Image, folder: Path) -> str:
    """The image as text: what it is already, or through the vendor's or LLVM's disassembler."""
    if image.format == "isa":
        return image.data.decode(errors="replace")
    target = registry().all().get(image.target)
    theirs = None if target is None or image.format == "offload" else target.disassembler(image.format)
    command: list[str | Path]
    if theirs is not None:
        command = [theirs[0].need(), *theirs[1]]
    elif image.format == "offload":
        command = [_of_llvm("llvm-dis"), "-o", "-"]
    else:
        command = [_of_llvm("llvm-objdump"), "-d"]
    shown = []
    for data in (image.data,) if target is None else target.machine_code(image.format, image.data):
        path = folder / image.filename
        try:
            path.write_bytes(data)
        except OSError as error:
            raise OffloadError(
                f"cannot write temporary files in {folder.parent}: {error.strerror}; make room there, or set TMPDIR to "
                "another folder"
            ) from error
        # LLVM's names the file, whose folder has another name each time.
        shown.append(run_tool([*command, path], f"disassemble {image.filename}").replace(f"{folder}/", ""))
    return "\n".join(shown)


def _of_llvm(name: str) -> Path:
    places = [from_path(f"{name}-22"), from_path(name)]
    return search(name, [f"bin/{name}-22", f"bin/{name}"], places, "apt-get install llvm-22").need()
