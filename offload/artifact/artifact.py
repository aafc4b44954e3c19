"""The artifact as a whole: reads a library without running it, writes the object that goes into one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from offload.artifact import container, elf
from offload.artifact.container import Image
from offload.artifact.meta import INTERFACE, Argument, Metadata
from offload.errors import ArtifactError, OffloadError
from offload.files import free_name, read_whole
from offload.paths import named

IMAGES_SECTION = ".llvm.offloading"
METADATA_SECTION = ".offload.meta"
IMAGES_ALIGNMENT = 64


class Artifact(NamedTuple):
    """A library as read. ``images`` and ``metadata.images`` describe the same images in the same order;
    ``machine`` is the ELF number of the host machine and ``needed`` the libraries it wants."""

    path: Path
    metadata: Metadata
    images: tuple[Image, ...]
    machine: int
    needed: tuple[str, ...]


def read(path: str | os.PathLike[str]) -> Artifact:
    """Reads the library at ``path``; never runs it.

    Raises `ArtifactError` for a file that cannot be read, is no ELF file, is truncated, was not built by
    offload, or is damaged."""
    try:
        path = named(path)
    except OffloadError as error:
        raise ArtifactError(str(error)) from None
    file = _elf_file(path)
    section = file.section(METADATA_SECTION)
    if section is None or file.type != elf.ET_DYN:
        raise ArtifactError(
            f"{path}: an ELF file, but not an artifact of offload: expected a shared library with a "
            f"section {METADATA_SECTION}; build one with `offload build`"
        )
    metadata = Metadata.from_json(file.contents(section), f"{path}: {METADATA_SECTION}")
    section = file.section(IMAGES_SECTION)
    if section is not None and section.type != container.SHT_LLVM_OFFLOADING:
        raise ArtifactError(
            f"{path}: expected section {IMAGES_SECTION} of type {container.SHT_LLVM_OFFLOADING:#x}, "
            f"found {section.type:#x}"
        )
    images = container.read(file.contents(section), f"{path}: {IMAGES_SECTION}") if section is not None else []
    _check_same(path, metadata, images)
    return Artifact(path, metadata, tuple(images), file.machine, tuple(file.needed()))


def functions_for_c(path: Path, metadata: Metadata) -> dict[str, str]:
    """The functions that a library has besides those that Python calls, by name, each with its symbol: ones of types
    that have no counterpart in Python, and those of object files. Raises `ArtifactError`."""
    known = {function.name for function in metadata.functions}
    functions: dict[str, str] = {}
    symbols = dict.fromkeys(_elf_file(path).exported_functions())
    for symbol in symbols:
        if symbol.partition(".")[2] in symbols:  # the second name that own_symbol gives it
            continue
        name = symbol.removeprefix(INTERFACE)
        if name not in known and symbol != "offload_api" and (name != symbol or name not in functions):
            functions[name] = symbol
    return functions


def _elf_file(path: Path) -> elf.ElfFile:
    try:
        data = read_whole(path)
    except OSError as error:
        why = _of_an_archive(path) if isinstance(error, NotADirectoryError) else error.strerror or error
        raise ArtifactError(f"{path}: cannot read the artifact: {why}") from error
    return elf.ElfFile(data, str(path))


def _of_an_archive(path: Path) -> str:
    """What to do about a package that Python imports from a zip file."""
    archive = next(folder for folder in path.parents if folder.exists())
    return f"{archive} is a file; libraries cannot be loaded from inside of one: install the package, or unpack it"


def _check_same(path: Path | str, metadata: Metadata, images: Sequence[Image]) -> None:
    told = [(info.module, info.target, info.chip, info.format, info.kernels) for info in metadata.images]
    held = [(image.module, image.target, image.chip, image.format, tuple(image.kernels)) for image in images]
    if told != held:

        def names(entries: list[tuple[str, str, str, str, tuple[str, ...]]]) -> str:
            return ", ".join(".".join(entry[:4]) + f" ({', '.join(entry[4])})" for entry in entries) or "none"

        raise ArtifactError(
            f"{path}: the metadata tells of other images than the container holds: expected "
            f"{names(told)}; found {names(held)}"
        )


def container_object(images: Sequence[Image], metadata: Metadata, machine: int | str) -> bytes:
    """An ELF relocatable object that makes a library an artifact once it is linked in.

    It holds the images in ``.llvm.offloading`` between the hidden symbols ``offload_images_begin`` and
    ``offload_images_end``, and the metadata in ``.offload.meta``. ``machine`` is an e_machine number or a
    name such as "x86_64". Equal inputs give equal bytes. Raises `ArtifactError` where images and metadata do
    not agree."""
    if isinstance(machine, str):
        if machine not in elf.MACHINES:
            raise ArtifactError(f"expected one of the host machines {', '.join(elf.MACHINES)}, found {machine!r}")
        machine = elf.MACHINES[machine]
    _check_same("new artifact", metadata, images)
    data = container.write(images)
    # Retained, because nothing in the library refers to the metadata and --gc-sections would drop it.
    flags = elf.SHF_ALLOC | elf.SHF_GNU_RETAIN
    return elf.relocatable_object(
        [
            elf.NewSection(IMAGES_SECTION, container.SHT_LLVM_OFFLOADING, flags, IMAGES_ALIGNMENT, data),
            elf.NewSection(METADATA_SECTION, elf.SHT_PROGBITS, flags, 1, metadata.to_json().encode()),
        ],
        [
            elf.NewSymbol("offload_images_begin", 0, 0, len(data), visibility=elf.STV_HIDDEN),
            elf.NewSymbol("offload_images_end", 0, len(data), 0, visibility=elf.STV_HIDDEN),
        ],
        machine,
    )


def _argument(argument: Argument) -> dict[str, Any]:
    full = argument.to_json()
    return {key: full[key] for key in ("name", "kind", "dtype", "rank", "shape", "optional") if key in full}


def without_signature(artifact: Artifact) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What a library has that Python cannot call: the functions of :func:`functions_for_c`, and kernels with a type
    that has no counterpart in Python, with their modules. Reads the file again. Raises `ArtifactError`."""
    described = {(kernel.module, kernel.name) for kernel in artifact.metadata.kernels}
    carried = dict.fromkeys((image.module, kernel) for image in artifact.images for kernel in image.kernels)
    functions = functions_for_c(artifact.path, artifact.metadata)
    return dict(sorted(functions.items())), [kernel for kernel in carried if kernel not in described]


def describe(artifact: Artifact) -> dict[str, Any]:
    """The artifact as JSON values: what `offload inspect --json` prints. ``size`` is in bytes."""
    metadata = artifact.metadata
    functions, kernels = without_signature(artifact)
    silent = {"functions": list(functions), "kernels": [{"name": name, "module": module} for module, name in kernels]}
    why = {"why": [entry._asdict() for entry in metadata.refused]} if metadata.refused else {}
    return {
        "functions": [
            {
                "name": function.name,
                "args": [_argument(a) for a in function.args],
                "results": [_argument(r) for r in function.results],
                **({"equal": [sizes.to_json() for sizes in function.equal]} if function.equal else {}),
                **({"result_sizes": [list(each) for each in sizes]} if (sizes := function.result_sizes) else {}),
                **({"doc": function.doc} if function.doc else {}),
            }
            for function in metadata.functions
        ],
        "kernels": [
            {
                "name": kernel.name,
                "module": kernel.module,
                "args": [_argument(a) for a in kernel.args],
                **({"bare_pointers": True} if kernel.bare_pointers else {}),
                **({"doc": kernel.doc} if kernel.doc else {}),
            }
            for kernel in metadata.kernels
        ],
        "images": [
            {
                "target": image.target,
                "chip": image.chip,
                "format": image.format,
                "size": len(image.data),
                "kernels": list(image.kernels),
                "resources": {kernel: dict(values) for kernel, values in info.resources.items()},
            }
            for image, info in zip(artifact.images, metadata.images, strict=True)
        ],
        "producer": dict(metadata.producer),
        **({"without_signature": silent | why} if functions or kernels else {}),
    }


def extract(artifact: Artifact, directory: str | os.PathLike[str]) -> list[Path]:
    """Writes each image as ``<module>.<target>.<chip>.<suffix>`` into ``directory``, which is made if need
    be.

    A name that is taken by an earlier image gets a number before its suffix. Returns the paths, in the
    images' order. Raises OSError where a file cannot be written."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    taken: set[str] = set()
    for image in artifact.images:
        path = folder / free_name(image.filename.removesuffix(image.suffix), image.suffix, taken)
        path.write_bytes(image.data)
        paths.append(path)
    return paths
